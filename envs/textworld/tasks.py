"""Splits: which seeds are for training, validation and test.

test: seeds 1-100, the panel of the study that made these levels known, and 30001-30250, a wide one; both as they
are generated. validation and train: the first 90 seeds from 20001 and the first 1,000 from 50001 whose walkthrough
has the level's quest length (TextWorld gives a shorter one for about 7 % of the seeds). The counts are fixed, so
`len` needs no game; finding the seeds does, except at the levels of `survey.json`.
"""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import overload

from turngym.envs.textworld.lengths import full_length_seeds
from turngym.envs.textworld.levels import Level, task_id

TEST_SEEDS = (*range(1, 101), *range(30001, 30251))
VALIDATION_START, VALIDATION_SIZE = 20001, 90
TRAIN_START, TRAIN_SIZE = 50001, 1000


class FullLengthGames(Sequence[str]):
    """Lazy: ids of the first `size` seeds from `start` on whose walkthrough has the level's quest length."""

    def __init__(self, level: Level, start: int, size: int) -> None:
        self.level, self.start, self.size = level, start, size

    def __len__(self) -> int:
        return self.size

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        if isinstance(index, slice):
            return tuple(self[one] for one in range(*index.indices(self.size)))
        place = range(self.size)[index]
        return task_id(self.level, full_length_seeds(self.level, self.start, place + 1)[place])

    def __repr__(self) -> str:
        return f"FullLengthGames({self.level.name!r}, {self.start}, {self.size})"


@lru_cache(maxsize=16)
def splits_of(level: Level) -> Mapping[str, Sequence[str]]:
    """The three splits of a level."""
    return {
        "train": FullLengthGames(level, TRAIN_START, TRAIN_SIZE),
        "validation": FullLengthGames(level, VALIDATION_START, VALIDATION_SIZE),
        "test": tuple(task_id(level, seed) for seed in TEST_SEEDS),
    }
