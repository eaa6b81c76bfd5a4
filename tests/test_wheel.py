"""The wheel and the source package hold all that an installed turngym needs."""

import json
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FOLDERS = ("envs", "agents", "training", "sandboxes", "benchmarks")

pytestmark = pytest.mark.slow  # builds three packages and starts two interpreters


def run(*command: str, folder: Path, path: Path | None = None) -> str:
    """Output of a Python command in a folder; `path` is the only place added to where it looks for modules."""
    environment = {"PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"}
    if path is not None:
        environment["PYTHONPATH"] = str(path)
    done = subprocess.run(
        [sys.executable, *command], cwd=folder, capture_output=True, text=True, env=environment, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def build(target: str, root: Path, out: Path) -> Path:
    """A package that hatchling builds from a folder, without network."""
    run("-m", "hatchling", "build", "--target", target, "--directory", str(out), folder=root)
    (package,) = out.iterdir()
    return package


def source_files() -> set[str]:
    """What must be inside: every file of the five folders and of the front door, by its place in the wheel."""
    door = ROOT / "src" / "turngym"
    files = {f"turngym/{path.relative_to(ROOT)}" for folder in FOLDERS for path in (ROOT / folder).rglob("*")}
    files |= {f"turngym/{path.name}" for path in door.iterdir()}
    for folder in door.iterdir():
        if folder.is_dir() and not folder.is_symlink():
            files |= {f"turngym/{path.relative_to(door)}" for path in folder.rglob("*")}
    return {
        name
        for name in files
        if "__pycache__" not in name and (ROOT / "src" / name).is_file() and not name.endswith(".pyc")
    }


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build("wheel", ROOT, tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A fresh folder that holds the wheel's files and nothing else."""
    folder = tmp_path_factory.mktemp("installed")
    run(
        "-m",
        "pip",
        "install",
        "-q",
        "--no-deps",
        "--no-index",
        "--target",
        str(folder),
        str(wheel),
        folder=folder,
    )
    return folder


def test_wheel_holds_every_file_of_the_folders(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    wanted = source_files()
    assert {Path(name).suffix for name in wanted} >= {
        ".py",
        ".yaml",
        ".json",
        ".typed",
        ".html",
        ".css",
        ".js",
    }
    assert wanted <= names
    extra = {name for name in names - wanted if ".dist-info/" not in name}
    assert not extra


def test_wheel_has_licence_and_command(wheel: Path) -> None:
    archive = zipfile.ZipFile(wheel)
    names = {name.split("/", 1)[1]: name for name in archive.namelist() if ".dist-info/" in name}
    assert "Apache License" in archive.read(names["licenses/LICENSE"]).decode()
    assert "turngym = turngym.cli:main" in archive.read(names["entry_points.txt"]).decode()


def test_installed_wheel_makes_an_environment(installed: Path) -> None:
    code = (
        "import json, turngym; env = turngym.make('Rooms-v0'); text, info = env.reset(seed=1);"
        "print(json.dumps([turngym.__file__, text, info['task']]))"
    )
    file, text, task = json.loads(run("-c", code, folder=installed, path=installed))
    assert Path(file) == installed / "turngym" / "__init__.py"
    assert text and task


@pytest.mark.parametrize(
    ("kind", "name"), [("recipes", "rooms-demo"), ("suites", "rooms-easy"), ("speed", "textworld")]
)
def test_installed_wheel_finds_its_data(kind: str, name: str, installed: Path) -> None:
    listed = run("-m", "turngym.cli", "list", kind, folder=installed, path=installed)
    assert name in {line.split()[0] for line in listed.splitlines()}


def test_installed_wheel_writes_a_page(installed: Path, tmp_path: Path) -> None:
    code = (
        "import sys, turngym; assert 'turngym.viewer' not in sys.modules;"
        "print(turngym.view(turngym.play('Rooms-v0'), out='page.html'))"
    )
    assert run("-c", code, folder=tmp_path, path=installed) == "page.html\n"
    assert "<main" in (tmp_path / "page.html").read_text(encoding="utf-8")


def test_wheel_built_from_the_source_package_is_the_same(wheel: Path, tmp_path: Path) -> None:
    package = build("sdist", ROOT, tmp_path / "sdist")
    with tarfile.open(package) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    (root,) = (tmp_path / "unpacked").iterdir()
    again = build("wheel", root, tmp_path / "again")
    assert set(zipfile.ZipFile(again).namelist()) == set(zipfile.ZipFile(wheel).namelist())
