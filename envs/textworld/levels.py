"""Levels and task ids: how a game is named."""

import re

from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.coin import CoinLevel
from turngym.envs.textworld.families.cooking import CookingLevel
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.families.simple import SimpleLevel
from turngym.envs.textworld.families.treasure import TreasureLevel
from turngym.errors import ConfigError, TaskError, suggest

FAMILIES: dict[str, type[Level]] = {
    kind.family: kind for kind in (CoinLevel, CookingLevel, CustomLevel, SimpleLevel, TreasureLevel)
}
MAX_SEED = 2**32 - 1

_TASK = re.compile(r"([a-z_]+)/([^/]+)/(0|[1-9][0-9]{0,9})")


def family_of(family: str) -> type[Level]:
    """The kind of level that a family has.

    Raises:
        ConfigError: there is no such family.
    """
    if not isinstance(family, str) or family not in FAMILIES:
        raise ConfigError(f"family = {family!r} is not offered. {suggest(str(family), FAMILIES)}")
    return FAMILIES[family]


def parse_level(family: str, text: str) -> Level:
    """The level of a family behind its text, "w2-o3-q4" of "custom".

    Raises:
        ConfigError: the text is no level of the family.
    """
    kind = family_of(family)
    level = kind.parse(text) if isinstance(text, str) else None
    if level is None:
        raise ConfigError(f"level = {text!r} is no level of {family!r}. Write {kind.form}.")
    return level


def task_id(level: Level, seed: int) -> str:
    """Id of the game of a seed: "custom/w2-o3-q4/17"."""
    return f"{level.family}/{level.name}/{seed}"


def parse_task(task: str, level: Level | None = None) -> tuple[Level, int]:
    """Level and seed behind a task id.

    Args:
        task: the id.
        level: the only level allowed; None allows all.

    Raises:
        TaskError: the id is not ours, or of another family or level.
    """
    example = f"{level.family}/{level.name}/17" if level else f"custom/{CustomLevel.example}/17"
    match = _TASK.fullmatch(task)
    if match is None:
        raise TaskError(f"Task {task!r} is no id of this environment. Ids look like {example!r}.")
    family, written, number = match.groups()
    if level is not None and (family, written) != (level.family, level.name):
        raise TaskError(
            f"Task {task!r} is of {family}/{written}, this environment of {level.family}/{level.name}."
        )
    try:
        level = level or parse_level(family, written)
    except ConfigError as error:
        raise TaskError(f"Task {task!r}: {error}") from error
    if int(number) > MAX_SEED:
        raise TaskError(f"Task {task!r}: the seed must be at most {MAX_SEED}.")
    return level, int(number)
