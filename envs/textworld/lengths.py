"""Length of the walkthrough by seed: out of the shipped table, else out of an index in the cache that grows on demand."""

from collections.abc import Mapping, Sequence
from itertools import count
from pathlib import Path

from turngym.envs.textworld import backend
from turngym.envs.textworld.games import games_folder
from turngym.envs.textworld.levels import Level, parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.survey_table import shipped_length
from turngym.errors import ConfigError, InfraError, TaskError

# Beyond this many seeds for each one found, the level is too odd to train on.
_MAX_SEEDS_PER_GAME = 10
_WORTH_PROCESSES = 8


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
            raise ConfigError(
                f"level = {level.name!r}: only {len(known)} of the seeds {start} to {chunk[0]} give a quest of "
                f"{level.quest_length} actions. Choose a larger world or a shorter quest."
            )
        lengths = walkthrough_lengths(level, chunk)
        known.extend(seed for seed in chunk if lengths[seed] == level.quest_length)
        _next[level, start] = chunk[-1] + 1
    return known


def walkthrough_lengths(level: Level, seeds: Sequence[int]) -> Mapping[int, int]:
    """Length of the walkthrough of each seed, 0 where TextWorld finds no quest."""
    known = {seed: length for seed in seeds if (length := shipped_length(level, seed)) is not None}
    if len(known) < len(seeds):
        known.update(_read_index(level))
    missing = [seed for seed in seeds if seed not in known]
    if missing:
        label = f"Looking for games of {level.name}" if len(missing) >= _WORTH_PROCESSES else ""
        measured = run_parallel(
            measure_length,
            [task_id(level, seed) for seed in missing],
            processes=None if label else 1,
            label=label,
        )
        fresh = {seed: int(str(length)) for seed, length in zip(missing, measured, strict=True)}
        _append_index(level, fresh)
        known.update(fresh)
    return known


def measure_length(task: str) -> int:
    """Length of the walkthrough of a task's game, made now and not compiled; 0 where TextWorld finds no quest."""
    try:
        return len(backend.generate(*parse_task(task)).walkthrough or ())
    except TaskError:
        return 0


def _index_path(level: Level) -> Path:
    return games_folder() / "custom" / level.name / "lengths.txt"


def _read_index(level: Level) -> dict[int, int]:
    try:
        lines = _index_path(level).read_text(encoding="ascii").split("\n")[:-1]
    except FileNotFoundError:
        return {}
    pairs = (line.split() for line in lines)
    # Two processes may append at once; a torn line is measured again.
    return {int(pair[0]): int(pair[1]) for pair in pairs if len(pair) == 2 and "".join(pair).isdecimal()}


def _append_index(level: Level, lengths: Mapping[int, int]) -> None:
    path = _index_path(level)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="ascii") as file:
            file.write("".join(f"{seed} {length}\n" for seed, length in lengths.items()))
    except OSError as error:
        raise InfraError(f"{path} cannot be written: {error}. Free the disk or set TURNGYM_CACHE.") from error


_found: dict[tuple[Level, int], list[int]] = {}
_next: dict[tuple[Level, int], int] = {}
