"""What `import turngym` offers is what is promised, and its examples run."""

import doctest
import inspect

import pytest

import turngym

PUBLIC = [
    "Demonstration",
    "Episode",
    "TaskRange",
    "Turn",
    "TurnEnv",
    "TurnInfo",
    "TurngymError",
    "Unicode",
    "__version__",
    "bench",
    "make",
    "make_vec",
    "play",
    "sft",
    "train",
    "view",
]
NAMES = [name for name in PUBLIC if name != "__version__"]


def test_public_names_are_the_promised_ones() -> None:
    assert sorted(turngym.__all__) == turngym.__all__ == PUBLIC


def test_every_public_name_exists_and_star_import_brings_all_of_them() -> None:
    brought: dict[str, object] = {}
    exec("from turngym import *", brought)
    assert set(PUBLIC) <= set(brought)


@pytest.mark.parametrize("name", NAMES)
def test_docstring_has_an_example_that_runs(name: str) -> None:
    public = getattr(turngym, name)
    text = inspect.getdoc(public) or ""
    example = doctest.DocTestParser().get_doctest(text, {name: public}, name, None, 0)
    assert example.examples, f"{name} has no example in its docstring"
    outcome = doctest.DocTestRunner().run(example)
    assert outcome.failed == 0


@pytest.mark.parametrize("name", ["bench", "play", "sft", "train", "view"])
def test_signature_is_written_out(name: str) -> None:
    parameters = inspect.signature(getattr(turngym, name)).parameters.values()
    positional = [one for one in parameters if one.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD]
    assert len(positional) == 1
    assert all(one.annotation is not inspect.Parameter.empty for one in parameters)
