"""A peer's own Python environment, made once and kept in turngym's cache folder."""

import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sys
import time
from pathlib import Path

from turngym.cache_folder import cache_folder
from turngym.errors import MeasurementError

logger = logging.getLogger(__name__)

_STALE_S = 86400.0
"""A half-made environment that old was left behind by a killed process."""
_TOLD_CHARS = 160


def peers_folder() -> Path:
    """Where the environments of peers lie: in `$TURNGYM_CACHE`, else in `~/.cache/turngym`."""
    return cache_folder() / "peers"


def environment_folder(name: str, requirements: Path) -> Path:
    """The folder of a peer's environment, another one for other requirements, another Python or processor."""
    python = (
        f"{sys.implementation.name} {sys.version_info.major}.{sys.version_info.minor} {platform.machine()}"
    )
    key = hashlib.blake2b(requirements.read_bytes() + b"\0" + python.encode(), digest_size=6).hexdigest()
    return peers_folder() / f"{name}-{key}"


def peer_python(name: str, requirements: Path) -> str:
    """Path of a Python that has what the requirements file names; the first time its environment is made.

    Raises:
        MeasurementError: the environment cannot be made.
    """
    folder = environment_folder(name, requirements)
    if not _python_of(folder).exists():
        _make(name, requirements, folder)
    return str(_python_of(folder))


def _make(name: str, requirements: Path, folder: Path) -> None:
    """Makes the environment under another name and renames it, so that it is there whole or not at all."""
    logger.info("Making the environment of the peer %s, once; this may take minutes.", name)
    beside = folder.with_name(f".{folder.name}.{os.getpid()}")
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale(folder.parent)
        _run(name, "venv", [sys.executable, "-I", "-m", "venv", str(beside)])
        # Renaming breaks the programs beside it, pip among them, and not the Python itself, which alone is used later.
        python = str(_python_of(beside))
        _run(
            name,
            "pip",
            [python, "-I", "-m", "pip", "--disable-pip-version-check", "install", "-r", str(requirements)],
        )
        if not _python_of(folder).exists():
            shutil.rmtree(folder, ignore_errors=True)  # Its Python was removed from the machine.
            beside.rename(folder)
    except OSError as error:
        if not _python_of(folder).exists():  # Else another process was quicker.
            raise MeasurementError(
                f"The environment of the peer {name} cannot be written to {folder}: {error.strerror}. "
                "Free the disk, set TURNGYM_CACHE, or give an environment that you have: --peer-python PATH."
            ) from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _run(name: str, what: str, command: list[str]) -> None:
    variables = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    done = subprocess.run(
        command, env=variables, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
    )
    if done.returncode:
        raise MeasurementError(
            f"The environment of the peer {name} was not made: {what} failed with exit code {done.returncode}.\n"
            f"{_reason(done.stderr or done.stdout)}\n"
            "Mend that and run the same again, or give an environment that you have: --peer-python PATH."
        )


def _reason(said: str) -> str:
    """The line that says why: pip's last error, else the last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    found = [line for line in lines if line.startswith("ERROR:")] or lines or ["It said nothing."]
    return found[-1][:_TOLD_CHARS]


def _remove_stale(folder: Path) -> None:
    for path in folder.glob(".*"):
        if time.time() - path.stat().st_mtime > _STALE_S:
            shutil.rmtree(path, ignore_errors=True)


def _python_of(folder: Path) -> Path:
    return folder / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
