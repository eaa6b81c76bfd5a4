"""The page as one text: template, style and script of this package, and the packed episodes."""

import base64
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

from turngym.errors import ConfigError
from turngym.types import Episode
from turngym.viewer.columns import Columns, pack
from turngym.viewer.pieces import Pieces, find_pieces
from turngym.viewer.sources import Source

MARK = '<meta name="generator" content="turngym view">'
"""Stands in every page of ours, so that another file is never overwritten."""

MAX_CHARS = 150_000_000
"""Longest page; browsers stall far beyond it."""

SCRIPTS = ("dom", "data", "statistics", "filters", "list", "turns", "tokens", "episode", "main")
"""Files of the page's script, in the order in which they are joined."""


@dataclass(slots=True)
class _Texts:
    """A tokenizer on the page, and the ids whose text the page needs."""

    pieces: Pieces
    used: set[int] = field(default_factory=set)

    def packed(self) -> dict[str, Any]:
        texts = {token: self.pieces.text(token) for token in sorted(self.used)}
        return {
            "folder": str(self.pieces.folder),
            "pieces": {token: text for token, text in texts.items() if text is not None},
        }


class PageBuilder:
    """Collects the episodes of sources into a page.

    Args:
        pieces: tokenizer of the episodes; where it does not fit, as with None, one is looked for.
    """

    def __init__(self, pieces: Pieces | None = None) -> None:
        self._given = pieces
        self._given_fits: bool | None = None
        self._columns = Columns()
        self._sources: list[dict[str, Any]] = []
        self._tokenizers: list[_Texts] = []

    def add(self, source: Source) -> None:
        """Adds the chosen episodes of a source.

        Raises:
            FileFormatError: a line is no episode.
            ConfigError: the page would be too long for a browser.
        """
        before, texts, looked = len(self._columns), None, False
        # A file that was cut since its lines were counted ends early; what is shown is counted here.
        for line, episode in zip(source.lines, source.read(), strict=False):
            self._columns.add(episode, source=len(self._sources), line=line)
            self._check_length()
            if episode.segments and not looked:
                texts, looked = self._texts_of(source, episode), True
            if texts is not None:
                texts.used.update(token for segment in episode.segments for token in segment.token_ids)
        self._sources.append(
            {
                "name": source.name,
                "changed": source.changed,
                "episodes": source.num_episodes,
                "shown": len(self._columns) - before,
                "keep": source.keep,
                "half_lines": source.half_lines,
                "tokenizer": None if texts is None else self._tokenizers.index(texts),
            }
        )

    def page(self) -> str:
        """The whole page.

        Raises:
            ConfigError: the given tokenizer fits no episode.
        """
        if self._given is not None and self._given_fits is False:
            raise ConfigError(
                f"The tokenizer of {self._given.folder} is not that of the episodes: their tokens, read by it, say other "
                "words. Give the checkpoint folder that played them."
            )
        self._columns.close()
        index = {
            "sources": self._sources,
            "tokenizers": [texts.packed() for texts in self._tokenizers],
            "instructions": self._columns.instructions,
            "table": self._columns.table,
        }
        return _assemble([pack(index), *self._columns.chunks])

    def _texts_of(self, source: Source, episode: Episode) -> _Texts | None:
        fits = self._given is not None and self._given.fits(episode)
        self._given_fits = bool(self._given_fits) or fits
        pieces = self._given if fits else find_pieces(source.path, episode)
        if pieces is None:
            return None
        texts = next((one for one in self._tokenizers if one.pieces.folder == pieces.folder), None)
        if texts is None:
            texts = _Texts(pieces)
            self._tokenizers.append(texts)
        return texts

    def _check_length(self) -> None:
        if self._columns.num_chars > MAX_CHARS:
            raise ConfigError(
                f"The first {len(self._columns)} episodes alone make a page of {self._columns.num_chars / 1e6:.0f} MB, "
                f"more than browsers open. Show fewer: --limit {max(1, len(self._columns) // 2)}"
            )


def _assemble(packed: Sequence[str]) -> str:
    """Puts style, script and data into the template; nothing is taken from anywhere else."""
    style = _part("page.css")
    script = "\n".join(_part(f"{name}.js") for name in SCRIPTS)
    blocks = "\n".join(
        f'<script type="application/gzip" id="data-{number}">{text}</script>'
        for number, text in enumerate(packed)
    )
    values = {
        "mark": MARK,
        "policy": f"default-src 'none'; style-src {_hash(style)}; script-src {_hash(script)}; img-src data:",
        "style": style,
        "data": blocks,
        "script": script,
    }
    page = _part("page.html")
    for name, value in values.items():
        page = page.replace(f"@{name}@", value, 1)
    return page


def _part(name: str) -> str:
    return resources.files("turngym.viewer").joinpath("page", name).read_text(encoding="utf-8").strip()


def _hash(text: str) -> str:
    """How a content security policy names an inline text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
