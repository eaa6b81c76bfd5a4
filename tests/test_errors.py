"""The tree of errors, and the words in which they speak."""

import re
from pathlib import Path

import pytest

from turngym import errors
from turngym.errors import TurngymError, suggest

ROOT = Path(__file__).parents[1]
CLASSES = {
    name: value
    for name, value in vars(errors).items()
    if isinstance(value, type) and issubclass(value, TurngymError)
}


def drawn_tree() -> dict[str, tuple[str, str]]:
    """Name -> (parent, builtin) as the docstring draws them."""
    tree: dict[str, tuple[str, str]] = {}
    above: dict[int, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        row = re.match(r" {4}([│├└─ ]*)(\w+Error)(?: \((\w+)\))?", line)
        if row:
            depth = len(row[1]) // 4
            above[depth] = row[2]
            tree[row[2]] = (above.get(depth - 1, "Exception"), row[3] or "")
    return tree


def test_the_docstring_draws_every_class_under_its_parent() -> None:
    tree = drawn_tree()
    assert set(tree) == set(CLASSES)
    for name, (parent, builtin) in tree.items():
        bases = [base.__name__ for base in CLASSES[name].__bases__]
        assert bases == [parent, *([builtin] if builtin else [])]


def test_every_except_exception_stands_at_a_border_that_the_docstring_lists() -> None:
    listed = re.findall(r"`([\w/.]+)`", errors.__doc__ or "")
    found = [
        path.relative_to(ROOT).as_posix()
        for folder in ("envs", "agents", "training", "sandboxes", "benchmarks", "src/turngym")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if "except Exception" in path.read_text(encoding="utf-8") and path.name != "errors.py"
    ]
    strays = {
        path for path in found if not any(path.removeprefix("src/turngym/").startswith(one) for one in listed)
    }
    assert not strays


@pytest.mark.parametrize("name", sorted(CLASSES))
def test_a_message_reads_as_a_sentence_without_quotes(name: str) -> None:
    assert str(CLASSES[name]("No environment 'x'.")) == "No environment 'x'."
    assert str(CLASSES[name]()) == ""


def test_suggest_gives_the_nearest_or_the_list_or_where_it_is() -> None:
    assert suggest("rlo", ["rloo", "grpo"]) == "Did you mean 'rloo'?"
    assert suggest("zzz", ["rloo", "grpo"]) == "Known: grpo, rloo."
    many = [f"name{i}" for i in range(13)]
    assert suggest("zzz", many, listing="turngym list envs") == "`turngym list envs` lists all of them."
    assert suggest("zzz", many) == "Nothing of that kind is known."
    assert suggest("zzz", []) == "Nothing of that kind is known."
