"""The folder that games are kept in: bounded, and safe for any number of processes.

The folder is `$TURNGYM_CACHE`, else `~/.cache/turngym`; it may be deleted at any time. A file is renamed into place
whole, so two processes may make the same game at once: the later one replaces equal bytes. Together the games take
at most about `$TURNGYM_CACHE_BYTES` (4 GB unless set; 0 sets no limit): beyond that the games that were not used for
longest are removed, but never those that this process has said it needs (`keep`). A game that another process
removed is made again when it is next asked for.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable, Iterable
from errno import EACCES, EDQUOT, ENOSPC, EPERM, EROFS
from pathlib import Path
from typing import NamedTuple

from turngym.cache_folder import cache_folder
from turngym.errors import ConfigError, InfraError

logger = logging.getLogger(__name__)

DEFAULT_BYTES = 4_000_000_000

_USED_S = 3600.0
"""Last use is noted to the hour, so that looking a game up rarely writes."""
_STALE_S = 86400.0
"""A temporary file that old was left behind by a killed process."""
_TARGET = 0.95
"""Share of the limit that is left after removing, so that not every new game removes one."""
_LOOK_SHARE = 0.02
"""Share of the limit that a process writes before it looks at the folder again."""
_TRIES = 3
"""Times that a file is written where its folder is deleted meanwhile."""

_kept: set[Path] = set()
_written: dict[Path, float] = {}
_reported: set[str] = set()


class _Entry(NamedTuple):
    used: float
    size: int
    path: Path


def cache_root() -> Path:
    """The folder of all games."""
    return cache_folder() / "textworld"


def cache_limit() -> int:
    """The most bytes that games may take; 0 for no limit.

    Raises:
        ConfigError: `TURNGYM_CACHE_BYTES` is no whole number.
    """
    text = os.environ.get("TURNGYM_CACHE_BYTES", "").strip()
    if not text:
        return DEFAULT_BYTES
    if re.fullmatch(r"[0-9]+(_[0-9]+)*", text) is None:
        raise ConfigError(
            f"TURNGYM_CACHE_BYTES = {text!r} is no size. Give a whole number of bytes, such as {DEFAULT_BYTES}; "
            "0 sets no limit."
        )
    return int(text)


def keep(paths: Iterable[Path]) -> None:
    """Marks games as needed by this process, so that it removes none of them, and as used now."""
    for path in paths:
        _kept.add(path)
        touch(path)


def touch(path: Path) -> None:
    """Notes that a game was used, if there is one."""
    try:
        if time.time() - path.stat().st_mtime > _USED_S:
            os.utime(path)
    except OSError:
        return  # Absent, removed meanwhile, or a folder that can only be read.


def write(path: Path, data: bytes, *, bound: bool = True) -> None:
    """Writes a game whole or not at all; with `bound`, removes old ones where that goes over the limit.

    Raises:
        InfraError: the disk is full, or the folder cannot be written to.
    """
    temporary = path.with_name(f".{path.name}.{os.getpid()}.{threading.get_ident()}")

    def put() -> None:
        try:
            temporary.write_bytes(data)
            os.replace(temporary, path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise

    _in_folder(path, put)
    if bound:
        _bound_after(len(data))


def append(path: Path, text: str) -> None:
    """Adds ASCII text, whole or not at all, to a file that several processes may add to.

    Raises:
        InfraError: the disk is full, or the folder cannot be written to.
    """
    data = text.encode("ascii")

    def put() -> None:
        with path.open("ab", buffering=0) as file:
            end = file.tell()
            if file.write(data) < len(data):
                # The half line would run into the next one, and read as another.
                file.truncate(end)
                raise OSError(ENOSPC, os.strerror(ENOSPC))

    _in_folder(path, put)


def _in_folder(path: Path, put: Callable[[], None]) -> None:
    """Calls `put`, which writes the path, with the folder there."""
    for attempt in range(_TRIES):
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            put()
            return
        except FileNotFoundError as error:
            # Somebody deletes the cache.
            if attempt == _TRIES - 1:
                raise InfraError(_failure(path, error)) from error
        except OSError as error:
            raise InfraError(_failure(path, error)) from error


def _failure(path: Path, error: OSError) -> str:
    """What to tell of a file of the cache that cannot be written."""
    if error.errno in (ENOSPC, EDQUOT):
        return (
            f"The disk is full: {path} was not written; what was made so far is kept. Free some space, or set "
            "TURNGYM_CACHE to a folder on another disk, then run the same again."
        )
    if error.errno in (EROFS, EACCES, EPERM):
        return f"{path} may not be written. Set TURNGYM_CACHE to a folder that you can write to."
    return f"{path} cannot be written: {error}. Set TURNGYM_CACHE to another folder."


def make_room(num_bytes: int = 0) -> None:
    """Removes the games that were not used for longest until the others and `num_bytes` more are within the limit."""
    limit = cache_limit()
    root = cache_root()
    _written[root] = 0.0
    entries = _entries(root)
    total = sum(entry.size for entry in entries) + num_bytes
    if not limit or total <= limit:
        return
    for entry in sorted(entries):
        if total <= limit * _TARGET:
            break
        if entry.path not in _kept and _removed(entry.path):
            total -= entry.size
    if total > limit:
        report_once(
            "limit",
            f"Games take about {total / 1e6:.0f} MB, more than TURNGYM_CACHE_BYTES = {limit}: this run needs them, "
            "or they are not ours to remove.",
        )


def _removed(path: Path) -> bool:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        return False  # Somebody else's, or in a folder that can only be read.
    return True


def report_once(what: str, text: str) -> None:
    """Logs a warning, once in a process for each `what`."""
    if what not in _reported:
        _reported.add(what)
        logger.warning("%s", text)


def _bound_after(num_bytes: int) -> None:
    limit, root = cache_limit(), cache_root()
    # The first write of a process looks: nobody else may be there to do it.
    written = _written.get(root, float(limit)) + num_bytes
    _written[root] = written
    if limit and written >= limit * _LOOK_SHARE:
        make_room()


def _entries(root: Path) -> list[_Entry]:
    """All games; removes what killed processes left behind."""
    entries, now = [], time.time()
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            try:
                stat = path.stat()
                if name.endswith(".zip"):
                    entries.append(_Entry(stat.st_mtime, stat.st_size, path))
                elif name.startswith(".") and now - stat.st_mtime > _STALE_S:
                    path.unlink()
            except OSError:
                continue  # Another process was quicker.
    return entries
