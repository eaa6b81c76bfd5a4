"""Levels and task ids: how the size of a game is written."""

import re
from dataclasses import dataclass

from turngym.errors import ConfigError, TaskError

FAMILIES = ("custom",)
MAX_SEED = 2**32 - 1

_LEVEL = re.compile(r"w([1-9][0-9]*)-o([1-9][0-9]*)-q([1-9][0-9]*)")
_TASK = re.compile(r"([a-z_]+)/([^/]+)/(0|[1-9][0-9]{0,9})")


@dataclass(frozen=True, slots=True)
class Level:
    """Size of a game of `tw-make custom`: rooms, at least this many objects, actions of the quest."""

    rooms: int
    objects: int
    quest_length: int

    @property
    def name(self) -> str:
        """As written in options and ids: "w2-o3-q4"."""
        return f"w{self.rooms}-o{self.objects}-q{self.quest_length}"


def parse_level(text: str) -> Level:
    """The level behind "w2-o3-q4".

    Raises:
        ConfigError: the text is no level.
    """
    match = _LEVEL.fullmatch(text) if isinstance(text, str) else None
    if match is None:
        raise ConfigError(
            f"level = {text!r} is no level. Write rooms, objects and quest length as in 'w2-o3-q4'."
        )
    return Level(*(int(number) for number in match.groups()))


def check_family(family: str) -> str:
    """The family, where it is known.

    Raises:
        ConfigError: it is not.
    """
    if family not in FAMILIES:
        raise ConfigError(f"family = {family!r} is not offered: only 'custom' for now.")
    return family


def task_id(level: Level, seed: int) -> str:
    """Id of the game of a seed: "custom/w2-o3-q4/17"."""
    return f"custom/{level.name}/{seed}"


def parse_task(task: str, level: Level | None = None) -> tuple[Level, int]:
    """Level and seed behind a task id.

    Args:
        task: the id.
        level: the only level allowed; None allows all.

    Raises:
        TaskError: the id is not ours, or of another family or level.
    """
    example = task_id(level or Level(2, 3, 4), 17)
    match = _TASK.fullmatch(task)
    if match is None:
        raise TaskError(f"Task {task!r} is no id of this environment. Ids look like {example!r}.")
    family, written, number = match.groups()
    if family not in FAMILIES:
        raise TaskError(f"Task {task!r} is of family {family!r}: only 'custom' for now, as in {example!r}.")
    if level is not None and written != level.name:
        raise TaskError(f"Task {task!r} is of level {written!r}, this environment of {level.name!r}.")
    if _LEVEL.fullmatch(written) is None:
        raise TaskError(f"Task {task!r} has no level such as 'w2-o3-q4'. Ids look like {example!r}.")
    if int(number) > MAX_SEED:
        raise TaskError(f"Task {task!r}: the seed must be at most {MAX_SEED}.")
    return level or parse_level(written), int(number)
