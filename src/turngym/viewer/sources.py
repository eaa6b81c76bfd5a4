"""What goes on a page: episode files, or episodes in hand, and which of them when there are too many."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, get_args

from turngym.episode_file import EpisodeFile
from turngym.errors import ConfigError, FileFormatError
from turngym.types import Episode

Keep = Literal["newest", "first", "even"]

NAMED_FILES = 3
"""Most episode files of a folder that an error names."""


@dataclass(frozen=True, slots=True)
class Source:
    """Where episodes come from, and which of them go on the page.

    Attributes:
        name: shown on the page.
        path: the file; None for episodes in hand.
        changed: when the file was last written, or "".
        num_episodes: whole episodes that it holds.
        half_lines: broken last lines, which are dropped.
        keep: how the episodes were chosen where not all go on the page.
        lines: numbers of the chosen episodes, from 1, rising.
        read: yields the chosen episodes in the order of `lines`.
    """

    name: str
    path: Path | None
    changed: str
    num_episodes: int
    half_lines: int
    keep: Keep
    lines: Sequence[int]
    read: Callable[[], Iterator[Episode]]


def file_source(path: Path, *, limit: int, keep: Keep) -> Source:
    """The source behind an episode file.

    Raises:
        FileFormatError: no such file, a folder, or a file without a whole line.
    """
    if path.is_dir():
        raise FileFormatError(f"{path} is a folder. {_offer(path)}")
    file = EpisodeFile(path)
    count = file.count()
    if count == 0:
        what = "only a half-written line" if file.half_lines else "nothing"
        raise FileFormatError(
            f"{path} holds {what}, so there is no episode to show. Give a file of episodes."
        )
    lines = chosen_lines(count, limit=limit, keep=keep)
    changed = datetime.fromtimestamp(path.stat().st_mtime, UTC).strftime("%Y-%m-%d %H:%M UTC")
    # An episode that a running trainer appends after the count is not among the lines.
    return Source(
        name=str(path),
        path=path,
        changed=changed,
        num_episodes=count,
        half_lines=file.half_lines,
        keep=keep,
        lines=lines,
        read=lambda: iter(EpisodeFile(path, lines=frozenset(lines))),
    )


def hand_source(episodes: Sequence[Episode], *, limit: int, keep: Keep) -> Source:
    """The source behind episodes in hand.

    Raises:
        ConfigError: there are none.
    """
    if not episodes:
        raise ConfigError("There are no episodes to show. Give one or more, or a file of episodes.")
    lines = chosen_lines(len(episodes), limit=limit, keep=keep)
    return Source(
        name="episodes in hand",
        path=None,
        changed="",
        num_episodes=len(episodes),
        half_lines=0,
        keep=keep,
        lines=lines,
        read=lambda: (episodes[line - 1] for line in lines),
    )


def chosen_lines(count: int, *, limit: int, keep: Keep) -> Sequence[int]:
    """Numbers, from 1 and rising, of at most `limit` episodes of `count`.

    Raises:
        ConfigError: `limit` below 1, or no such way to keep.
    """
    if limit < 1:
        raise ConfigError(f"limit = {limit}: show one episode or more.")
    if keep not in get_args(Keep):
        raise ConfigError(f"keep = {keep!r} is not known. Choose newest, first or even.")
    if count <= limit:
        return range(1, count + 1)
    if keep == "first":
        return range(1, limit + 1)
    if keep == "newest":
        return range(count - limit + 1, count + 1)
    if limit == 1:
        return (1,)
    return tuple(1 + place * (count - 1) // (limit - 1) for place in range(limit))


def _offer(folder: Path) -> str:
    """Names the episode files of a run's folder."""
    found = sorted(folder.glob("*/*.jsonl")) + sorted(folder.glob("*.jsonl"))
    files = [str(path) for path in found if path.name != "metrics.jsonl"]
    if not files:
        return "Give a file of episodes."
    more = ", ..." if len(files) > NAMED_FILES else ""
    return f"Give one of its episode files: {', '.join(files[:NAMED_FILES])}{more}"
