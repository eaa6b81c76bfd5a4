"""Settings, YAML 1.2 and registries: the declared type decides, and a wrong name stops the run."""

from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from turngym.config import Registry, Settings, dump_yaml, parse_yaml, read_yaml, validate
from turngym.errors import ConfigError, UnknownNameError


class Optimizer(Settings):
    lr: float = 1e-3
    steps: int = 1
    max_grad_norm: Annotated[float, Field(gt=0)] = 1.0


class Recipe(Settings):
    training: Optimizer = Optimizer()
    name: str = ""
    flag: bool = False
    maybe: bool | None = None
    betas: tuple[float, ...] = ()
    either: bool | float = 0.0
    warmup: Literal["auto"] | int = "auto"
    kwargs: dict[str, Any] = {}


def load(text: str) -> Recipe:
    return validate(Recipe, parse_yaml(text, source="r.yaml"), source="r.yaml")


# Case 56: what the look of a text must not decide.
@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("lr: 1e-6", 1e-6),
        ("lr: 5e-4", 5e-4),
        ("lr: 1.0e-6", 1e-6),
        ("lr: 1", 1.0),
        ("lr: '1e-6'", 1e-6),
        ("steps: 007", 7),
        ("steps: 1_000", 1000),
        ("steps: 1e3", 1000),
    ],
)
def test_numbers_arrive_as_numbers(text: str, value: float) -> None:
    key = text.split(":")[0]
    got = getattr(load(f"training: {{{text}}}").training, key)
    assert got == value and type(got) is type(Optimizer.model_fields[key].default)


@pytest.mark.parametrize(
    "text", ["12:30", "no", "off", "2026-11-30", "2026-13-45", "1e", "'7e30'", "'007'", "~/x"]
)
def test_texts_arrive_as_texts(text: str) -> None:
    assert load(f"name: {text}").name == text.strip("'")


@pytest.mark.parametrize("text", ["7e30", "42E17", "1.10", "7", "true"])
def test_a_number_where_text_belongs_stops_the_run_and_says_to_quote(text: str) -> None:
    with pytest.raises(ConfigError, match=r"r\.yaml: name.* (quotes|Give a number or a text)"):
        load(f"name: {text}")


@pytest.mark.parametrize("text", ["no", "off", "yes", "1", "0", "1.0", "'true'", "[true]", "{a: true}"])
def test_only_true_and_false_are_booleans(text: str) -> None:
    with pytest.raises(ConfigError, match=r"r\.yaml: flag"):
        load(f"flag: {text}")


@pytest.mark.parametrize(
    "text",
    [
        "training: {steps: true}",
        "training: {lr: false}",
        "training: {max_grad_norm: true}",
        "betas: [0.9, true]",
        "warmup: true",
    ],
)
def test_a_boolean_is_no_number(text: str) -> None:
    with pytest.raises(ConfigError, match="true and false are booleans"):
        load(text)


def test_booleans_stand_where_they_are_declared() -> None:
    recipe = load("{flag: true, maybe: null, either: true, kwargs: {a: true, b: 1}}")
    assert (recipe.flag, recipe.maybe, recipe.either, recipe.kwargs) == (
        True,
        None,
        True,
        {"a": True, "b": 1},
    )


# Case 57: six files, one of them right.
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("training: {lrr: 1e-5}", "r.yaml: training.lrr is not a setting. Did you mean 'lr'?"),
        ("lr: 1e-5", "r.yaml: lr is not a setting. Known: betas, either, flag, kwargs, maybe, name, training, warmup."),
        ("training: {max-grad-norm: 1}", "r.yaml: training.max-grad-norm is not a setting. Did you mean 'max_grad_norm'?"),
        ("training: {env: {max_turns: 20}}", "r.yaml: training.env is not a setting. Known: lr, max_grad_norm, steps."),
        ("trainig: {steps: 20}", "r.yaml: trainig is not a setting. Did you mean 'training'?"),
    ],
)  # fmt: skip
def test_an_unknown_key_stops_the_run_with_a_suggestion(text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load(text)
    assert str(caught.value) == message


def test_a_known_key_is_set() -> None:
    assert load("training: {steps: 20}") == Recipe(training=Optimizer(steps=20))


def test_an_error_names_path_value_and_number_of_further_errors() -> None:
    with pytest.raises(ConfigError) as caught:
        load("training: {steps: 1.5, max_grad_norm: -1}")
    text = str(caught.value)
    assert text.startswith("r.yaml: training.steps = 1.5: ") and text.endswith("(1 more errors follow.)")


def test_a_prefix_stands_before_the_path() -> None:
    with pytest.raises(ConfigError, match=r"^cli: advantage\.lr is not a setting\."):
        validate(Recipe, {"lr": 1}, source="cli", prefix="advantage")


class Needs(Settings):
    path: str


def test_a_missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^r\.yaml: path is missing\."):
        validate(Needs, {}, source="r.yaml")


@pytest.mark.parametrize(
    "text", ["a: [", "a: 1\na: 2", "a: !!python/object x", "\x00", "a: b: c", "\t- x: *y"]
)
def test_broken_yaml_is_a_config_error_with_its_source(text: str) -> None:
    with pytest.raises(ConfigError, match=r"^r\.yaml.*not valid YAML"):
        parse_yaml(text, source="r.yaml")


def test_an_error_in_yaml_names_the_line() -> None:
    with pytest.raises(ConfigError, match=r"^r\.yaml line 3: "):
        parse_yaml("a: 1\nb: 2\na: 3\n", source="r.yaml")


SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(st.characters(min_codepoint=32, max_codepoint=0xFFFD, exclude_categories=("Cs", "Cc", "Cn"))),
    st.sampled_from(
        ["no", "null", "true", "007", "1_000", "0o7", "1e-6", "~", ".inf", "<<", "2026-11-30", "a: b", "#"]
    ),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text("abc_", max_size=4), inner, max_size=3)
    ),
)


@given(st.dictionaries(st.text("abc_", min_size=1, max_size=4), VALUES, max_size=4))
def test_what_is_dumped_is_parsed_back(value: dict[str, Any]) -> None:
    again = parse_yaml(dump_yaml(value), source="dump")
    assert repr(again) == repr(value)


def test_a_resolved_recipe_can_be_run_again() -> None:
    recipe = load("{training: {lr: 1e-6}, name: '7e30', betas: [0.9, 0.95], warmup: 10}")
    assert load(dump_yaml(recipe.model_dump(mode="json"))) == recipe


def test_reading_a_file_names_it_when_it_is_absent_or_no_mapping(tmp_path: Path) -> None:
    path = tmp_path / "r.yaml"
    with pytest.raises(ConfigError, match=r"Cannot read .*r\.yaml"):
        read_yaml(path)
    path.write_text("- 1\n")
    with pytest.raises(ConfigError, match=r"r\.yaml: expected settings .* got list"):
        read_yaml(path)
    path.write_text("lr: 1e-6\n")
    assert read_yaml(path) == {"lr": 1e-6}


def double(x: int) -> int:
    """Twice x."""
    return 2 * x


def test_a_registry_finds_lists_and_suggests() -> None:
    registry: Registry[Any] = Registry("test-kind-of-advantage")
    registry.register("rloo", Optimizer, double)
    registry.register("grpo", Optimizer, double)
    assert registry.names() == ("grpo", "rloo")
    assert registry["rloo"].function(2) == 4
    assert registry["rloo"].summary == "Twice x."
    with pytest.raises(UnknownNameError) as caught:
        registry["rlo"]
    assert str(caught.value) == "No test-kind-of-advantage 'rlo'. Did you mean 'rloo'?"
    assert isinstance(caught.value, KeyError)


def test_a_registry_keeps_a_name_that_another_module_took() -> None:
    registry: Registry[Any] = Registry("test-kind-of-loss")
    registry.register("clip", Optimizer, double)
    registry.register("clip", Optimizer, double)
    with pytest.raises(ConfigError, match="already registered by"):
        registry.register("clip", Optimizer, parse_yaml)
