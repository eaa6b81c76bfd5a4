"""What a survey of seeds found, shipped so that nobody has to make games only to know the task ids."""

import json
from collections.abc import Mapping
from functools import lru_cache
from importlib import resources
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.families.base import Level

TABLE_NAME = "survey.json"


def shipped_length(level: Level, seed: int) -> int | None:
    """The level's quest length where a seed's walkthrough has it, 0 where it has another; None if not surveyed."""
    for first, last, short in _ranges(level):
        if first <= seed <= last:
            return 0 if seed in short else level.quest_length
    return None


def num_surveyed(level: Level, start: int) -> int:
    """How many seeds of full length the table knows from `start` on without a gap; 0 for a level not in it."""
    for first, last, short in _ranges(level):
        if first <= start <= last:
            return last + 1 - start - sum(seed >= start for seed in short)
    return 0


def narrow_words() -> Mapping[str, frozenset[str]]:
    """Words by type of thing, of the names in the first 500 training games of w2-o3-q4."""
    return {kind: frozenset(words) for kind, words in read_table()["words"].items()}


@lru_cache(maxsize=1)
def read_table() -> Mapping[str, Any]:
    """`survey.json`: `textworld`, its version; `levels`, by level and "FIRST-LAST" the seeds of other length; `words`."""
    text = resources.files("turngym.envs.textworld").joinpath(TABLE_NAME).read_text(encoding="utf-8")
    table: dict[str, Any] = json.loads(text)
    return table


@lru_cache(maxsize=64)
def _ranges(level: Level) -> tuple[tuple[int, int, frozenset[int]], ...]:
    table = read_table()
    if table["textworld"] != backend.VERSION or level.family != "custom":
        return ()  # Another version makes other games.
    ranges = table["levels"].get(level.name, {}).items()
    return tuple((*map(int, written.split("-")), frozenset(short)) for written, short in ranges)  # type: ignore[misc]
