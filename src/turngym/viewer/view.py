"""Writes the page of episode files."""

import os
import webbrowser
from collections.abc import Sequence
from pathlib import Path
from typing import cast

from turngym.errors import ConfigError
from turngym.types import Episode
from turngym.viewer.build import MARK, PageBuilder
from turngym.viewer.pieces import Pieces
from turngym.viewer.sources import Keep, Source, file_source, hand_source

DEFAULT_LIMIT = 5000
HEAD_CHARS = 4000
"""A page of ours says so within its first characters."""


def view(
    episodes: str | Path | Sequence[str | Path] | Sequence[Episode],
    *,
    out: str | Path | None = None,
    tokenizer: str | Path | None = None,
    limit: int = DEFAULT_LIMIT,
    keep: Keep = "newest",
    show: bool = False,
) -> Path:
    """Writes a page to look at episodes, and returns its path.

    Args:
        episodes: an episode file, several, or episodes in hand.
        out: the page; None puts it beside the first file, with the ending .html. A page of ours is replaced.
        tokenizer: checkpoint folder whose tokenizer turns token ids into text; None looks for the one that the
            episodes name, and in their run's folders.
        limit: most episodes of each file; the page says what it leaves out.
        keep: which ones those are: `newest`, `first`, or `even`, spread over the file.
        show: also opens the page in the browser.

    Raises:
        FileFormatError: a file is missing, empty or holds something else.
        ConfigError: nothing to show, a page too large, a wrong tokenizer, or `out` is another file.
        CheckpointError: `tokenizer` holds none.
    """
    sources = _sources(episodes, limit, keep)
    target = _target(out, sources[0])
    builder = PageBuilder(Pieces(Path(tokenizer)) if tokenizer is not None else None)
    for source in sources:
        builder.add(source)
    _write(target, builder.page())
    if show:
        webbrowser.open(target.resolve().as_uri())
    return target


def _sources(
    episodes: str | Path | Sequence[str | Path] | Sequence[Episode], limit: int, keep: Keep
) -> list[Source]:
    if isinstance(episodes, str | Path):
        return [file_source(Path(episodes), limit=limit, keep=keep)]
    if episodes and all(isinstance(one, str | Path) for one in episodes):
        return [file_source(Path(cast(str, one)), limit=limit, keep=keep) for one in episodes]
    return [hand_source(cast(Sequence[Episode], episodes), limit=limit, keep=keep)]


def _target(out: str | Path | None, first: Source) -> Path:
    """Where the page goes; never the place of a file that is no page of ours."""
    if out is None and first.path is None:
        raise ConfigError("Episodes in hand have no folder for their page. Name it: out='episodes.html'.")
    target = Path(out) if out is not None else cast(Path, first.path).with_suffix(".html")
    if target.is_dir():
        raise ConfigError(f"{target} is a folder. Name a file in it, as in {target / 'episodes.html'}.")
    if target.exists():
        with target.open("rb") as file:
            if MARK.encode() not in file.read(HEAD_CHARS):
                raise ConfigError(
                    f"{target} exists and is no page of turngym. Name another file for the page."
                )
    return target


def _write(target: Path, page: str) -> None:
    """Writes beside the target and renames, so that a half-written page never stands there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    beside = target.with_name(f"{target.name}.{os.getpid()}.tmp")
    try:
        beside.write_text(page, encoding="utf-8", newline="\n")
        beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)
