"""The five root folders, the links and the build table name the same things; importing stays light."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
BUILD = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["hatch"]["build"]
FOLDERS = [name for name in BUILD["targets"]["wheel"]["sources"] if not name.startswith("src/")]
SOURCES = sorted(
    path for folder in [*FOLDERS, "src/turngym", "tests"] for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("folder", FOLDERS)
def test_link_reaches_the_root_folder(folder: str) -> None:
    link = ROOT / "src" / "turngym" / folder
    assert link.resolve() == ROOT / folder, f"{link} is not a directory link: git config core.symlinks true"


def test_tables_agree() -> None:
    assert FOLDERS == ["envs", "agents", "training", "sandboxes", "benchmarks"]
    assert BUILD["exclude"] == [f"/src/turngym/{folder}" for folder in FOLDERS]
    assert BUILD["targets"]["wheel"]["only-include"] == ["src/turngym", *FOLDERS]
    assert BUILD["targets"]["sdist"]["only-include"] == ["src", *FOLDERS, "tests"]
    assert BUILD["targets"]["wheel"]["sources"] == {
        "src/turngym": "turngym",
        **{folder: f"turngym/{folder}" for folder in FOLDERS},
    }


def test_no_file_is_named_for_what_did_not_fit_elsewhere() -> None:
    vague = {"utils.py", "helpers.py", "common.py", "misc.py", "core_algos.py"}
    assert not [path for path in SOURCES if path.name in vague]


def test_every_source_file_is_where_the_wheel_takes_it_from() -> None:
    inside = {path.resolve() for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")}
    assert len(inside) > 10
    packages = {path.parent for path in inside}
    assert not [folder for folder in packages if not (folder / "__init__.py").exists()]


def test_import_turngym_loads_no_heavy_library() -> None:
    code = (
        "import json, sys, turngym; print(json.dumps(sorted({name.split('.')[0] for name in sys.modules})))"
    )
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env={"PYTHONPATH": str(ROOT / "src")},
    )
    loaded = set(json.loads(run.stdout))
    assert "turngym" in loaded
    assert not loaded & {
        "torch",
        "transformers",
        "tokenizers",
        "playwright",
        "textworld",
        "pydantic",
        "ruamel",
    }
