"""What a worker has started: the pool ends it all with the worker, however that ended."""

import contextlib
import os
import secrets
import signal
from pathlib import Path

_MARK = "TURNGYM_WORKER"


def new_mark() -> dict[str, str]:
    """A variable for a worker's environment; all that it starts inherits it."""
    return {_MARK: secrets.token_hex(8)}


def end_all(pid: int, mark: dict[str, str]) -> None:
    """Kills a worker that is not reaped yet, its process group, and what has left that.

    What has left it is known by the mark, even when its parents are gone, or by its parents, even when it has
    thrown away the mark; both only where there is `/proc`.
    """
    outside = _marked(mark) | descendants(pid)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    for each in outside:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(each, signal.SIGKILL)


def _marked(mark: dict[str, str]) -> set[int]:
    text = f"{_MARK}={mark[_MARK]}".encode()
    found = set()
    for entry in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):  # Of another user, or over meanwhile.
            if text in entry.read_bytes().split(b"\0"):
                found.add(int(entry.parent.name))
    return found


def descendants(pid: int) -> set[int]:
    """Processes that a process has started, and those that these have started; none where `/proc` is absent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name stands in brackets and may hold anything.
            parent = int(entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = list(children.get(pid, ()))
    for child in found:
        found.extend(children.get(child, ()))
    return set(found)
