"""Makes `faulty_env` importable here and in worker processes, as the command line does with the current folder."""

import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

PATIENCE_S = 60.0
"""How long a test waits for what should be over in a moment, before it fails."""


def is_running(pid: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


@pytest.fixture
def wait_for() -> Callable[[Callable[[], bool]], None]:
    """Waits until something holds, and fails where it never does."""

    def wait(holds: Callable[[], bool]) -> None:
        until = time.monotonic() + PATIENCE_S
        while not holds():
            assert time.monotonic() < until, "waited in vain"
            time.sleep(0.02)

    return wait


@pytest.fixture
def children() -> Callable[[], set[int]]:
    """Tells the running processes that this one has started and not ended yet."""

    def tell() -> set[int]:
        found = set()
        for entry in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = entry.read_text(encoding="utf-8").rpartition(")")[2].split()
            except OSError:
                continue
            if int(fields[1]) == os.getpid() and fields[0] != "Z":
                found.add(int(entry.parent.name))
        return found

    return tell


@pytest.fixture
def running() -> Callable[[int], bool]:
    """Tells whether a process runs."""
    return is_running
