"""Games made by seed, out of the cache where they were made before."""

import zipfile
from collections.abc import Callable, Sequence
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import TypeVar

from turngym.envs.textworld import backend, cache
from turngym.envs.textworld.card import DAMAGE, Card, StoredGame, pack, unpack, unpack_card
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.levels import parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.paraphrases import paraphrases
from turngym.envs.textworld.progress import Progress
from turngym.envs.textworld.text import squeeze
from turngym.errors import InfraError

GAME_BYTES = 200_000
"""Room for one game, above what most take."""

ReadT = TypeVar("ReadT")


def games_folder() -> Path:
    """Where the games of the installed TextWorld lie."""
    return cache.cache_root() / backend.VERSION


def game_path(level: Level, seed: int) -> Path:
    """File of a game in the cache."""
    return games_folder() / level.family / level.name / f"{seed}.zip"


def load_game(level: Level, seed: int, *, bound: bool = True) -> StoredGame:
    """The game of a seed, from the cache, or made now (about 1 s).

    Args:
        bound: whether older games are removed where a new one goes over the limit of the cache.

    Raises:
        TaskError: TextWorld finds no quest for this seed.
        InfraError: the game cannot be compiled or stored.
    """
    path = game_path(level, seed)
    stored = _read(path, unpack)
    if stored is None:
        stored = make_stored_game(level, seed)
        cache.write(path, pack(stored), bound=bound)
    else:
        cache.touch(path)
    return stored


@lru_cache(maxsize=8192)
def load_card(level: Level, seed: int) -> Card:
    """The card of a game alone; made with its game where that is not cached."""
    return _read(game_path(level, seed), unpack_card) or load_game(level, seed).card


def make_stored_game(level: Level, seed: int) -> StoredGame:
    """Makes and compiles a game, past the cache."""
    game = backend.generate(level, seed)
    entities = [entity for entity in game.infos.values() if entity.name and entity.type not in ("P", "I")]
    names = tuple(squeeze(entity.name) for entity in entities)
    objective = squeeze(game.objective)
    reworded = paraphrases(game, objective, names) if level.rewords else ()
    serialized = backend.serialized(game)
    plan = tuple(Progress(serialized, level).plan() or ()) if level.document else ()
    card = Card(
        objective=objective,
        reworded=reworded,
        walkthrough=plan or tuple(squeeze(command) for command in game.walkthrough or ()),
        names=names,
        types=tuple(str(entity.type) for entity in entities),
        num_quests=len(game.quests),
        points=int(game.max_score),
    )
    return StoredGame(card, backend.compile_story(game), serialized)


def prepare(tasks: Sequence[str], *, processes: int | None = None, progress: bool = True) -> int:
    """Makes those games of `tasks` that are not cached yet, in parallel; returns how many were made.

    It may be stopped and called again: finished games are kept, and none of `tasks` is removed by this process.

    Args:
        tasks: task ids of any family and level.
        processes: worker processes; None takes one for each core.
        progress: whether a progress bar is drawn.

    Raises:
        TaskError: an id is wrong, or TextWorld finds no quest for it.
        InfraError: a game cannot be compiled or stored, or a worker died.
    """
    parsed = dict.fromkeys(parse_task(task) for task in tasks)
    cache.keep(game_path(level, seed) for level, seed in parsed)
    missing = [task_id(*one) for one in parsed if _read(game_path(*one), unpack_card) is None]
    if missing:
        cache.make_room(len(missing) * GAME_BYTES)
        run_parallel(make_into_cache, missing, processes=processes, label="Making games" if progress else "")
        cache.make_room()
    return len(missing)


def make_into_cache(task: str) -> None:
    """Makes the game of a task where it is not cached yet; a job of `prepare`, which alone knows what to keep."""
    load_game(*parse_task(task), bound=False)


def _read(path: Path, read: Callable[[zipfile.ZipFile], ReadT | None]) -> ReadT | None:
    """What `read` finds in a file of the cache; None where there is none, an older one, or a broken one."""
    try:
        data = path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise InfraError(f"{path} cannot be read: {error}. Set TURNGYM_CACHE to another folder.") from error
    try:
        with zipfile.ZipFile(BytesIO(data)) as archive:
            return read(archive)
    except DAMAGE as error:
        cache.report_once(str(path), f"{path} is damaged ({error}); the game is made again.")
        return None
