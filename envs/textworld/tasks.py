"""Splits: which seeds are for training, validation and test.

test: seeds 1-100, the panel of the study that made w2-o3-q4 known, and 30001-30250, a wide one; both as they are
generated. validation: from seed 20001. train: from seed 50001.

Where TextWorld may give a shorter walkthrough than the level says (custom, treasure), validation and training games
are those of full length. At the levels of `survey.json` they are the first ones from 20001 and 50001, as many as the
survey covers, 90 and 4,000 at most; elsewhere one in each block of 16 seeds, so that a task is found without
those before it. Where some seeds give no game (treasure), test tasks are found in blocks from 1 and 30001. The
counts are fixed, so `len` needs no game; finding a seed does, except in the survey.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain
from typing import overload

from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.lengths import BLOCK, full_length_seeds, seeds_in_blocks
from turngym.envs.textworld.levels import parse_task, task_id
from turngym.envs.textworld.survey_table import num_surveyed
from turngym.types import TaskRange

TEST_PANELS = ((1, 100), (30001, 250))
"""First seed and number of tasks of the two test panels."""
VALIDATION_START, VALIDATION_SIZE = 20001, 90
TRAIN_START, TRAIN_SIZE = 50001, 4000
PLAIN_VALIDATION_SIZE = 100
"""Of a family that takes every seed."""

_MOST_AT_ONCE = 512

Finder = Callable[[Sequence[int]], Sequence[int]]


class FoundGames(Sequence[str]):
    """Lazy: ids of games whose seeds have to be looked for.

    Args:
        level: the level of all of them.
        size: how many there are.
        find: seeds of given places.
        seeds: ranges in which all of the seeds lie.
    """

    def __init__(self, level: Level, size: int, find: Finder, *seeds: range) -> None:
        self.level, self.size, self._find, self._seeds = level, size, find, seeds

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            places: Sequence[int] = range(*index.indices(self.size))
            return tuple(task_id(self.level, seed) for seed in self._find(places))
        return task_id(self.level, self._find([range(self.size)[index]])[0])

    def covers(self) -> tuple[TaskRange, ...]:
        """Ranges that hold all of the tasks, and others: what shows without a search that splits are apart."""
        return tuple(TaskRange(_prefix(self.level), seeds) for seeds in self._seeds)

    def __iter__(self) -> Iterator[str]:
        # In growing pieces, of which each is looked for in parallel.
        first, size = 0, 1
        while first < self.size:
            yield from self[first : first + size]
            first, size = first + size, min(2 * size, _MOST_AT_ONCE)

    def __contains__(self, task: object) -> bool:
        if not isinstance(task, str) or not any(task in tasks for tasks in self.covers()):
            return False
        # Seeds rise from place to place.
        seed = parse_task(task)[1]
        place = bisect_left(range(self.size), seed, key=lambda place: self._find([place])[0])
        return place < self.size and self._find([place])[0] == seed

    def __repr__(self) -> str:
        return f"FoundGames({self.level.family}/{self.level.name}, {self.size})"


@lru_cache(maxsize=16)
def splits_of(level: Level) -> Mapping[str, Sequence[str]]:
    """The three splits of a level."""
    if level.filtered:
        train = _full_length(level, TRAIN_START, TRAIN_SIZE, 100)
        validation: Sequence[str] = _full_length(level, VALIDATION_START, VALIDATION_SIZE, 10)
        return {"train": train, "validation": validation, "test": _test(level)}
    train_seeds = range(TRAIN_START, TRAIN_START + TRAIN_SIZE)
    validation_seeds = range(VALIDATION_START, VALIDATION_START + PLAIN_VALIDATION_SIZE)
    return {
        "train": TaskRange(_prefix(level), train_seeds),
        "validation": TaskRange(_prefix(level), validation_seeds),
        "test": _test(level),
    }


def _full_length(level: Level, start: int, size: int, step: int) -> FoundGames:
    """Games of full length: the first ones where they are surveyed, in whole steps, else one in each block."""
    surveyed = num_surveyed(level, start) // step * step

    def first_ones(places: Sequence[int]) -> Sequence[int]:
        seeds = full_length_seeds(level, start, max(places, default=-1) + 1)
        return [seeds[place] for place in places]

    def in_blocks(places: Sequence[int]) -> Sequence[int]:
        return seeds_in_blocks(level, [start + BLOCK * place for place in places], full=True)

    # Either way the seed of a place is at most one block for each place behind the start.
    seeds = range(start, start + BLOCK * size)
    return FoundGames(level, min(size, surveyed or size), first_ones if surveyed else in_blocks, seeds)


def _test(level: Level) -> Sequence[str]:
    if not level.sparse_seeds:
        seeds = chain.from_iterable(range(start, start + size) for start, size in TEST_PANELS)
        return tuple(task_id(level, seed) for seed in seeds)
    firsts = [start + BLOCK * place for start, size in TEST_PANELS for place in range(size)]
    return FoundGames(
        level,
        len(firsts),
        lambda places: seeds_in_blocks(level, [firsts[place] for place in places], full=False),
        *(range(start, start + BLOCK * size) for start, size in TEST_PANELS),
    )


def _prefix(level: Level) -> str:
    return task_id(level, 0).removesuffix("0")
