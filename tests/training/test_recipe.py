"""Recipes by name, path or mapping; dotted overrides; what is wrong stops the run and says what is right."""

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from turngym.errors import ConfigError, UnknownNameError
from turngym.training.recipe import load_recipe, load_saved, recipe_names, recipe_text, save_recipe
from turngym.training.settings import FolderModel, Recipe, RlSettings, SftSettings, TinyModel


def values(*stages: dict[str, Any], **more: Any) -> dict[str, Any]:
    sft = {"sft": {"steps": 3}}
    rl = {"rl": {"updates": 2, "advantage": {"name": "grpo", "gamma": 0.9}}}
    return {"envs": [{"id": "Rooms-v0"}], "stages": list(stages) or [sft, rl], **more}


def sft_of(recipe: Recipe) -> SftSettings:
    return next(stage.sft for stage in recipe.stages if stage.sft is not None)


def rl_of(recipe: Recipe) -> RlSettings:
    return next(stage.rl for stage in recipe.stages if stage.rl is not None)


def message(*overrides: str, of: dict[str, Any] | None = None, **changes: Any) -> str:
    """The error of a recipe: at most three lines of plain sentences."""
    with pytest.raises(ConfigError) as caught:
        load_recipe(of or values(), overrides, **changes)
    text = str(caught.value)
    assert len(text) < 320 and text.count("\n") < 3 and text.rstrip(")").endswith((".", "?", "`"))
    return text


@pytest.mark.parametrize("name", recipe_names())
def test_every_bundled_recipe_loads_and_says_what_it_shows(name: str) -> None:
    recipe = load_recipe(name)
    assert recipe.description
    assert load_recipe(recipe) == recipe


def test_a_recipe_is_found_by_path(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("# kept\nenvs: [{id: Rooms-v0}]\nstages: [{sft: {steps: 007}}]\n", encoding="utf-8")
    assert sft_of(load_recipe(str(path))).steps == 7
    assert recipe_text(str(path)).startswith("# kept")


def test_an_unknown_recipe_suggests_or_lists() -> None:
    name = recipe_names()[0]
    with pytest.raises(UnknownNameError, match=f"No recipe '{name}s'. Did you mean '{name}'?"):
        load_recipe(f"{name}s")
    with pytest.raises(UnknownNameError, match="No recipe file 'no/such.yaml'. `turngym list recipes`"):
        load_recipe("no/such.yaml")


def test_a_recipe_that_is_no_mapping_or_no_yaml_is_named(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text("- a\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"my\.yaml: expected settings"):
        load_recipe(str(path))
    path.write_text("envs: [\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"my\.yaml line 2: not valid YAML"):
        load_recipe(str(path))


def test_the_mapping_given_is_not_changed() -> None:
    given = values()
    load_recipe(given, ["rl.advantage=rloo", "run.seed=2"])
    assert given == values()


def test_a_top_level_key_is_set() -> None:
    recipe = load_recipe(values(), ["run.seed=7", "envs.0.weight=2", "validation={every: 3}"])
    assert (recipe.run.seed, recipe.envs[0].weight, recipe.validation.every) == (7, 2.0, 3)


def test_a_key_that_one_stage_has_is_meant() -> None:
    recipe = load_recipe(values(), ["steps=9", "group_size=4", "policy_loss.clip_high=0.3"])
    assert (sft_of(recipe).steps, rl_of(recipe).group_size, rl_of(recipe).policy_loss.clip_high) == (
        9,
        4,
        0.3,
    )


def test_a_key_that_several_stages_have_lists_what_to_write() -> None:
    assert message("optim.lr=1e-4") == (
        "optim.lr is a setting of several stages. Write one of: sft.optim.lr, rl.optim.lr."
    )
    recipe = load_recipe(values(), ["sft.optim.lr=1e-6", "rl.optim.lr=3e-4"])
    assert (sft_of(recipe).optim.lr, rl_of(recipe).optim.lr) == (1e-6, 3e-4)


def test_stages_of_one_kind_are_told_apart_by_name() -> None:
    two = values(
        {"rl": {"updates": 1, "advantage": "rloo"}},
        {"rl": {"name": "hard", "updates": 1, "advantage": "rloo"}},
    )
    assert message("optim.lr=1e-4", of=two).endswith("Write one of: rl.optim.lr, hard.optim.lr.")
    recipe = load_recipe(two, ["rl.optim.lr=1e-4", "hard.optim.lr=2e-4"])
    assert [stage.settings.optim.lr for stage in recipe.stages] == [1e-4, 2e-4]
    named = values(
        {"rl": {"name": "easy", "updates": 1, "advantage": "rloo"}},
        {"rl": {"name": "hard", "updates": 1, "advantage": "rloo"}},
    )
    assert message("rl.updates=3", of=named).endswith("Use one of their names: easy, hard.")


def test_two_stages_of_one_name_are_refused() -> None:
    same = {"sft": {"steps": 1}}
    assert "two stages are called 'sft'" in message(of=values(same, same))


def test_an_override_reaches_a_stage_without_settings() -> None:
    recipe = load_recipe(values({"sft": None}), ["sft.steps=4"])
    assert sft_of(recipe).steps == 4


@pytest.mark.parametrize("stages", [None, 3, ["sft"], [None], [{}], [{"sft": 3}], [{"sfd": {}}]])
def test_malformed_stages_are_a_config_error(stages: Any) -> None:
    message("steps=4", of={"envs": [{"id": "Rooms-v0"}], "stages": stages})
    message(of={"envs": [{"id": "Rooms-v0"}], "stages": stages})


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("updats=3", "updats is not a setting of this recipe. Did you mean 'updates'?"),
        ("rl.updats=3", "recipe: stages.1.rl.updats is not a setting. Did you mean 'updates'?"),
        ("run.sed=3", "recipe: run.sed is not a setting. Did you mean 'seed'?"),
        ("model.hiden=3", "recipe: model: hiden is not a setting. Did you mean 'hidden'?"),
        ("rll.updates=3", "rll is not a setting of this recipe. Did you mean 'rl'?"),
        ("sft=3", "sft names a stage. Name a setting of it, as in sft.optim.lr=1e-4."),
        ("seed", "'seed' is no override. Write key=value, as in advantage.gamma=0.95."),
        ("=3", "'=3' is no override. Write key=value, as in advantage.gamma=0.95."),
        ("envs.2.id=x", "envs.2.id: '2' is no place in a list of 1. Count from 0."),
        ("imports=[no_such_module]", "recipe: imports: no module 'no_such_module'. Run from its folder or install it."),
    ],
)  # fmt: skip
def test_a_wrong_override_says_what_would_be_right(override: str, expected: str) -> None:
    assert message(override) == expected


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("advantage=rlo", "No advantage 'rlo'. Did you mean 'rloo'?"),
        ("advantage.gama=0.9", "advantage.gama is not a setting of grpo. Did you mean 'gamma'?"),
        ("advantage.credit=token", "advantage.credit = 'token': Input should be 'turn' or 'episode'."),
        ("advantage={gamma: 1}", "give a name, as in `advantage: NAME`"),
        ("kl=rewrd", "kl.name = 'rewrd': Input should be 'none', 'reward' or 'loss'."),
        ("average=tokn", "average = 'tokn': Input should be 'token', 'turn', 'episode' or 'constant'."),
    ],
)
def test_a_wrong_choice_fails_at_load(override: str, expected: str) -> None:
    text = message(override)
    assert text.startswith("recipe: stages.1.rl.") and expected in text


def test_choosing_another_advantage_drops_the_old_settings() -> None:
    for recipe in (load_recipe(values(), ["advantage=rloo"]), load_recipe(values(), ["advantage.name=rloo"])):
        assert (rl_of(recipe).advantage.name, rl_of(recipe).advantage.gamma) == ("rloo", 1.0)


def test_naming_the_advantage_that_is_there_keeps_its_settings() -> None:
    for override in ("advantage=grpo", "advantage.name=grpo", "advantage.whiten=batch"):
        assert rl_of(load_recipe(values(), [override])).advantage.gamma == 0.9


def test_the_order_of_overrides_does_not_matter_where_one_chooses() -> None:
    for overrides in (
        ["advantage=rloo", "advantage.gamma=0.95"],
        ["advantage.gamma=0.95", "rl.advantage=rloo"],
    ):
        chosen = rl_of(load_recipe(values(), overrides)).advantage
        assert (chosen.name, chosen.gamma) == ("rloo", 0.95)


def test_a_choice_written_as_a_bare_name_takes_settings() -> None:
    plain = values({"rl": {"updates": 1, "advantage": "grpo"}})
    chosen = rl_of(load_recipe(plain, ["advantage.gamma=0.95"])).advantage
    assert (chosen.name, chosen.gamma) == ("grpo", 0.95)


def test_python_changes_are_overrides_with_double_underscores() -> None:
    recipe = load_recipe(values(), advantage="rloo", run__seed=2, sft__optim__lr=1e-5)
    assert (rl_of(recipe).advantage.name, recipe.run.seed, sft_of(recipe).optim.lr) == ("rloo", 2, 1e-5)
    assert message(run__sed=2) == "recipe: run.sed is not a setting. Did you mean 'seed'?"


def test_the_model_is_tiny_or_a_folder() -> None:
    assert load_recipe(values(model="tiny"), ["model.hidden=64"]).model == TinyModel(hidden=64)
    sized = values(model={"hidden": 64})
    for recipe in (load_recipe(sized, ["model=a/b"]), load_recipe(sized, ["model.path=a/b"])):
        assert recipe.model == FolderModel(path="a/b")
    assert load_recipe(values(model="a/b"), ["model=tiny"]).model == TinyModel()


# Case 56: the declared type decides.
@pytest.mark.parametrize(
    ("override", "number"),
    [("rl.optim.lr=1e-6", 1e-6), ("rl.optim.lr=5e-4", 5e-4), ("rl.optim.lr=1", 1.0), ("rl.optim.lr='1e-6'", 1e-6)],
)  # fmt: skip
def test_a_learning_rate_is_a_number(override: str, number: float) -> None:
    got = rl_of(load_recipe(values(), [override])).optim.lr
    assert got == number and isinstance(got, float)


@pytest.mark.parametrize("text", ["yes", "no", "1", "'true'", "on"])
def test_booleans_are_strict(text: str) -> None:
    expected = "Write true or false." if text != "''" else ""
    assert message(f"save_episodes={text}").endswith(expected)


@pytest.mark.parametrize(
    "key", ["run.seed", "rl.optim.lr", "group_size", "model.hidden", "advantage.gamma", "rl.optim.betas"]
)
def test_a_boolean_is_no_number(key: str) -> None:
    value = "[0.9, true]" if key.endswith("betas") else "true"
    assert "true and false are booleans" in message(f"{key}={value}")


def test_a_text_that_looks_like_a_number_must_be_quoted() -> None:
    assert message("run.out=7e30") == (
        "recipe: run.out = 7e+30 reads as a number or boolean. Put it in quotes to make it text."
    )
    assert load_recipe(values(), ["run.out='7e30'"]).run.out == "7e30"


def test_a_resolved_recipe_saved_and_loaded_is_equal(tmp_path: Path) -> None:
    given = values(
        {"sft": {"steps": 1, "augment": [{"name": "names"}], "demos": {"noise": [0.0, 1e-6]}}},
        {"rl": {"updates": 1, "advantage": {"name": "gae", "lam": 0.9}, "truncation": "bootstrap"}},
        description="a: b # c\n'quoted' \u2028 é",
    )
    given["envs"][0]["kwargs"] = {"level": "007", "limit": None, "words": ["no", 1e-6]}
    recipe = load_recipe(given, ["run.seed=3"])
    save_recipe(recipe, tmp_path / "recipe.yaml")
    assert load_saved(tmp_path / "recipe.yaml") == recipe
    assert load_recipe(str(tmp_path / "recipe.yaml")) == recipe
    assert [path.name for path in tmp_path.iterdir()] == ["recipe.yaml"]


ESTIMATOR = '''
from torch import Tensor

from turngym.training.advantages import AdvantageSettings, register_advantage


class Halved(AdvantageSettings):
    """Half of each reward."""

    limit: float | None = 3.0


def halved(rewards: Tensor, *, limit: float | None) -> Tensor:
    return rewards / 2


register_advantage("halved", Halved, halved)
'''


def test_a_module_under_imports_registers_an_estimator(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "halved_estimator.py").write_text(ESTIMATOR, encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    recipe = load_recipe(
        values(imports=["halved_estimator"]),
        ["advantage=halved", "advantage.gamma=0.5", "advantage.limit=null"],
    )
    assert rl_of(recipe).advantage.model_dump() == {
        "name": "halved",
        "gamma": 0.5,
        "whiten": "none",
        "limit": None,
    }
    save_recipe(recipe, tmp_path / "recipe.yaml")
    assert load_saved(tmp_path / "recipe.yaml") == recipe
    assert "advantage.limt is not a setting of halved. Did you mean 'limit'?" in message(
        "advantage.limt=1",
        of=values({"rl": {"updates": 1, "advantage": "halved"}}, imports=["halved_estimator"]),
    )


def test_a_module_that_lacks_one_of_its_own_imports_says_which(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "needy_estimator.py").write_text("import no_such_library\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(ModuleNotFoundError, match="no_such_library"):
        load_recipe(values(imports=["needy_estimator"]))
    assert "needy_estimator" not in sys.modules
