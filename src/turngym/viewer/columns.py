"""Episodes as the page holds them: a table for the list, and packed details that are opened when looked at."""

import base64
import gzip
import json
import math
from typing import Any

from turngym.types import Episode, PlayedTurn, Segment

CHUNK_CHARS = 1_000_000
"""Characters of details that are packed together: what a browser unpacks to show one episode."""


class Columns:
    """Collects episodes into what the page reads.

    Attributes:
        table: column name -> one value per episode.
        instructions: the different instructions; the table holds places in this list.
        chunks: packed details of the episodes, in order; the table's `chunk` says which one holds an episode.
    """

    def __init__(self) -> None:
        self.table: dict[str, list[Any]] = {}
        self.instructions: list[str] = []
        self.chunks: list[str] = []
        self._places: dict[str, int] = {}
        self._open: list[str] = []
        self._open_chars = 0

    def __len__(self) -> int:
        return len(self.table.get("number", ()))

    @property
    def num_chars(self) -> int:
        """Characters of all chunks so far."""
        return sum(map(len, self.chunks))

    def add(self, episode: Episode, *, source: int, line: int) -> None:
        """Adds the episode that stands in a line of a source."""
        place = self._places.setdefault(episode.instructions, len(self.instructions))
        if place == len(self.instructions):
            self.instructions.append(episode.instructions)
        row = {"source": source, "line": line, "instructions": place, "chunk": len(self.chunks)}
        for name, value in (row | _row(episode)).items():
            self.table.setdefault(name, []).append(value)
        details = _to_json(_details(episode))
        self._open.append(details)
        self._open_chars += len(details)
        if self._open_chars >= CHUNK_CHARS:
            self.close()

    def close(self) -> None:
        """Packs what is still open."""
        if self._open:
            self.chunks.append(_pack(f"[{','.join(self._open)}]"))
            self._open, self._open_chars = [], 0


def pack(value: Any) -> str:
    """A JSON value as base64 of gzip: letters, digits, + / = only, so no text can break out of the page."""
    return _pack(_to_json(value))


def _to_json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def _pack(text: str) -> str:
    return base64.b64encode(gzip.compress(text.encode("ascii"), mtime=0)).decode("ascii")


def _row(episode: Episode) -> dict[str, Any]:
    """What the list and its filters need of an episode."""
    return {
        "number": episode.number,
        "group": episode.group,
        "env_id": episode.env_id,
        "env_kwargs": json.dumps(dict(episode.env_kwargs), sort_keys=True) if episode.env_kwargs else "",
        "task": episode.task,
        "agent": episode.agent,
        "outcome": episode.outcome,
        "score": _number(episode.score),
        "max_score": _number(episode.max_score),
        "return": _number(episode.episode_return),
        "turns": len(episode.turns),
        "tokens": sum(len(segment.token_ids) for segment in episode.segments),
        "authors": " ".join(sorted({turn.author for turn in episode.turns})),
        "version": episode.weights_version,
        "attempt": episode.attempt,
        "seed": str(episode.seed),  # Past 2^53 a number of JavaScript is another one.
        "start_key": episode.start_key,
        "error": episode.error,
    }


def _details(episode: Episode) -> list[Any]:
    """What the page shows of an opened episode: first observation, turns, segments; by place, to be short."""
    return [
        episode.observation,
        [_turn(turn) for turn in episode.turns],
        [_segment(segment) for segment in episode.segments],
    ]


def _turn(turn: PlayedTurn) -> list[Any]:
    return [
        turn.command,
        turn.observation,
        _number(turn.reward),
        _number(turn.score),
        int(turn.valid),
        turn.author,
        turn.thought,
        turn.finish_reason,
        _number(turn.latency_s, digits=3),
    ]


def _segment(segment: Segment) -> list[Any]:
    return [
        segment.token_ids,
        [_number(value, digits=5) for value in segment.log_probs],
        [[span.start, span.end, span.turn, span.author] for span in segment.spans],
    ]


def _number(value: float, *, digits: int = 9) -> float | str:
    """A number as short as it may be; what JSON has no number for becomes the name JavaScript gives it."""
    if math.isfinite(value):
        return float(f"{value:.{digits}g}") or 0
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
