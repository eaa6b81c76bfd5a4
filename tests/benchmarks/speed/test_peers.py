"""What runs in the environment of a peer knows nothing of turngym."""

import ast
import sys
from pathlib import Path

import pytest

from turngym.benchmarks.speed.entry import PEERS, entry_names, find_entry

SCRIPTS = sorted(path for path in PEERS.glob("*.py") if path.name != "__init__.py")


def imported(script: Path) -> set[str]:
    """Top-level names of all modules that a script imports, wherever in it."""
    found = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            found.add((node.module or "").partition(".")[0])
    return found


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.stem)
def test_a_peer_imports_its_own_package_and_the_standard_library(script: Path) -> None:
    assert imported(script) - set(sys.stdlib_module_names) == {script.stem}


@pytest.mark.parametrize("name", entry_names())
def test_the_peer_of_an_entry_has_pinned_requirements(name: str) -> None:
    entry = find_entry(name)
    assert entry.name == name
    lines = (PEERS / f"{entry.peer}.txt").read_text(encoding="utf-8").splitlines()
    wanted = [line for line in lines if line and not line.startswith("#")]
    assert wanted and all("==" in line for line in wanted)


def test_the_peer_of_textworld_is_the_version_that_turngym_plays() -> None:
    root = Path(__file__).parents[3]
    peer = set((PEERS / "textworld.txt").read_text(encoding="utf-8").splitlines())
    ours = set((root / "constraints.txt").read_text(encoding="utf-8").splitlines())
    pins = {line for line in peer if "==" in line}
    assert "textworld==1.7.0" in pins
    assert pins <= ours
