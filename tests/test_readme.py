"""What README.md tells people to type exists and runs."""

import re
from pathlib import Path

import pytest

from turngym.benchmarks.suite import suite_names
from turngym.cli import app
from turngym.training.recipe import recipe_names

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^    turngym (\w+) ?(.*)$", README, re.MULTILINE)


def test_commands_exist() -> None:
    known = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    assert len(COMMANDS) > 8
    assert {name for name, _ in COMMANDS} <= known


def test_recipes_exist() -> None:
    named = {rest.split()[0] for name, rest in COMMANDS if name in ("train", "sft", "recipe", "sweep")}
    named |= set(re.findall(r'turngym\.(?:train|sft)\("([\w-]+)"', README))
    assert named - {"my.yaml"} <= set(recipe_names())


def test_suites_exist() -> None:
    named = {rest.split()[0] for name, rest in COMMANDS if name == "bench"}
    named |= set(re.findall(r'turngym\.bench\("([\w-]+)"', README))
    assert named <= set(suite_names())


def test_links_and_make_targets_exist() -> None:
    for link in re.findall(r"\]\(([\w/.-]+)\)", README):
        assert (ROOT / link).is_file(), link
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"^    make ([\w-]+)", README, re.MULTILINE):
        assert f"\n{target}:" in makefile


def test_first_python_block_runs(capsys: pytest.CaptureFixture[str]) -> None:
    block = re.findall(r"```python\n(.*?)```", README, re.DOTALL)[0]
    exec(block, {})
    assert len(capsys.readouterr().out.splitlines()) >= 3
