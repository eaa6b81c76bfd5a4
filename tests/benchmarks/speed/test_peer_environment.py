"""A peer's environment: made once, whole or not at all, without network here."""

import os
import subprocess
import zipfile
from pathlib import Path

import pytest

from turngym.benchmarks.speed.peer_environment import environment_folder, peer_python, peers_folder
from turngym.errors import MeasurementError


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache folder, and a pip that asks nobody."""
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    return tmp_path / "cache"


def make_wheel(folder: Path) -> Path:
    """A package of one module."""
    path = folder / "toypeer-1.0-py3-none-any.whl"
    info = "toypeer-1.0.dist-info"
    parts = {
        "toypeer.py": "WORD = 'hello from the peer'\n",
        f"{info}/METADATA": "Metadata-Version: 2.1\nName: toypeer\nVersion: 1.0\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    with zipfile.ZipFile(path, "w") as archive:
        for name, text in parts.items():
            archive.writestr(name, text)
        archive.writestr(f"{info}/RECORD", "".join(f"{name},,\n" for name in [*parts, f"{info}/RECORD"]))
    return path


def requirements(folder: Path, text: str) -> Path:
    path = folder / "toy.txt"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.slow  # makes an environment with pip
def test_an_environment_is_made_once_and_works_after_renaming(tmp_path: Path, cache: Path) -> None:
    left = cache / "peers" / ".toy-left.1"
    left.mkdir(parents=True)
    os.utime(left, (0, 0))
    wanted = requirements(tmp_path, f"# One module.\n{make_wheel(tmp_path)}\n")
    python = peer_python("toy", wanted)
    assert Path(python).is_relative_to(environment_folder("toy", wanted))
    code = "import toypeer; print(toypeer.WORD)"
    told = subprocess.run([python, "-I", "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout == "hello from the peer\n"
    assert [path.name for path in peers_folder().iterdir()] == [environment_folder("toy", wanted).name]
    changed = environment_folder("toy", wanted).stat().st_mtime_ns
    assert peer_python("toy", wanted) == python
    assert environment_folder("toy", wanted).stat().st_mtime_ns == changed


@pytest.mark.slow  # makes an environment with pip
def test_a_package_that_pip_does_not_find_is_told_and_nothing_is_left(tmp_path: Path) -> None:
    with pytest.raises(MeasurementError) as failure:
        peer_python("toy", requirements(tmp_path, "toypeer-that-is-nowhere==1.0\n"))
    fact, value, step = str(failure.value).splitlines()
    assert fact == "The environment of the peer toy was not made: pip failed with exit code 1."
    assert value == "ERROR: No matching distribution found for toypeer-that-is-nowhere==1.0"
    assert "--peer-python PATH" in step
    assert not list(peers_folder().iterdir())


def test_an_unwritable_cache_is_told(tmp_path: Path, cache: Path) -> None:
    cache.write_text("a file", encoding="utf-8")
    with pytest.raises(
        MeasurementError, match="cannot be written to .*set TURNGYM_CACHE.*--peer-python PATH"
    ):
        peer_python("toy", requirements(tmp_path, ""))


def test_other_requirements_are_another_environment(tmp_path: Path, cache: Path) -> None:
    one = environment_folder("toy", requirements(tmp_path, "a==1\n"))
    other = environment_folder("toy", requirements(tmp_path, "a==2\n"))
    assert one != other
    assert one == environment_folder("toy", requirements(tmp_path, "a==1\n"))
    assert one.parent == cache / "peers"
    assert one.name.startswith("toy-")
