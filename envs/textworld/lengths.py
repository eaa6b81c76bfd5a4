"""Length of the walkthrough by seed: out of the shipped table, else out of an index in the cache that grows on demand."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from turngym.envs.textworld import backend, cache
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.games import games_folder
from turngym.envs.textworld.levels import parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.survey_table import shipped_length
from turngym.errors import ConfigError, InfraError, TaskError

BLOCK = 16
"""Seeds among which the game of one place of a split is looked for."""

# Beyond this many seeds for each one found, the level is too odd to train on.
_MAX_SEEDS_PER_GAME = 10
_WORTH_PROCESSES = 8
_AT_ONCE = 400  # Seeds measured before the index is written, so that little is lost by a stop.
_MOST_DIGITS = 10  # Of a seed.


def full_length_seeds(level: Level, start: int, num: int) -> Sequence[int]:
    """At least the first `num` seeds from `start` on whose walkthrough has the level's quest length.

    Raises:
        ConfigError: the level gives too few such games.
    """
    known = _found.setdefault((level, start), [])
    seeds = count(_next.get((level, start), start))
    while len(known) < num:
        chunk = [next(seeds) for _ in range(num - len(known))]
        if chunk[-1] - start > _MAX_SEEDS_PER_GAME * max(num, 10):
            raise _too_odd(level, start, chunk[0])
        lengths = walkthrough_lengths(level, chunk)
        known.extend(seed for seed in chunk if lengths[seed] == level.quest_length)
        _next[level, start] = chunk[-1] + 1
    return known


def seeds_in_blocks(level: Level, firsts: Sequence[int], *, full: bool) -> list[int]:
    """For each block of 16 seeds the first one that gives a game.

    Unlike the first so many seeds, the seed of a block is found without those before it.

    Args:
        firsts: first seed of each block.
        full: whether the walkthrough must have the level's quest length.

    Raises:
        ConfigError: a block has no such game.
    """
    found: dict[int, int] = {}
    for offset in range(BLOCK):
        seeds = {first: first + offset for first in firsts if first not in found}
        lengths = walkthrough_lengths(level, list(seeds.values()))
        for first, seed in seeds.items():
            if lengths[seed] == level.quest_length if full else lengths[seed] > 0:
                found[first] = seed
    for first in firsts:
        if first not in found:
            raise _too_odd(level, first, first + BLOCK - 1)
    return [found[first] for first in firsts]


def walkthrough_lengths(level: Level, seeds: Sequence[int]) -> Mapping[int, int]:
    """Length of the walkthrough of each seed, 0 where `measure_length` says so; measured ones are kept in the index."""
    known = {seed: length for seed in seeds if (length := shipped_length(level, seed)) is not None}
    if len(known) < len(seeds):
        known.update(_read_index(level))
    missing = [seed for seed in seeds if seed not in known]
    for first in range(0, len(missing), _AT_ONCE):
        some = missing[first : first + _AT_ONCE]
        label = f"Looking for games of {level.name} ({first + len(some)} of {len(missing)})"
        many = len(some) >= _WORTH_PROCESSES
        measured = run_parallel(
            measure_length,
            [task_id(level, seed) for seed in some],
            processes=None if many else 1,
            label=label if many else "",
        )
        fresh = {seed: int(str(length)) for seed, length in zip(some, measured, strict=True)}
        _append_index(level, fresh)
        known.update(fresh)
    return known


def measure_length(task: str) -> int:
    """Length of the walkthrough of a task's game, made now and not compiled.

    0 where TextWorld finds no quest, and where an objective of one action leaves a second quest untold.
    """
    level, seed = parse_task(task)
    try:
        game = backend.generate(level, seed)
    except TaskError:
        return 0
    if isinstance(level, CustomLevel) and level.last and len(game.quests) > 1:
        return 0
    return len(game.walkthrough or ())


def _too_odd(level: Level, first: int, last: int) -> ConfigError:
    return ConfigError(
        f"level = {level.name!r}: too few of the seeds {first} to {last} give a quest of "
        f"{level.quest_length} actions. Choose a larger world or a shorter quest."
    )


def _index_path(level: Level) -> Path:
    return games_folder() / level.family / level.name / "lengths.txt"


def _read_index(level: Level) -> dict[int, int]:
    path = _index_path(level)
    try:
        lines = path.read_text(encoding="ascii", errors="replace").split("\n")[:-1]
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise InfraError(f"{path} cannot be read: {error}. Set TURNGYM_CACHE to another folder.") from error
    pairs = (line.split() for line in lines)
    # Two processes may append at once; a torn or broken line is measured again.
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2 and all(map(_is_number, pair))}


def _is_number(text: str) -> bool:
    return text.isdecimal() and len(text) <= _MOST_DIGITS


def _append_index(level: Level, lengths: Mapping[int, int]) -> None:
    cache.append(_index_path(level), "".join(f"{seed} {length}\n" for seed, length in lengths.items()))


_found: dict[tuple[Level, int], list[int]] = {}
_next: dict[tuple[Level, int], int] = {}
