"""Games made by seed, and the folder they are kept in.

A game is one zip of 140 KB: the story (385 KB unpacked), TextWorld's game, and the card, our own summary. One file is
renamed into place whole, so two processes may make the same game at once: the later one replaces equal bytes.
The folder is `$TURNGYM_CACHE`, else `~/.cache/turngym`; it may be deleted at any time.
"""

import json
import logging
import os
import zipfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.levels import Level, parse_task, task_id
from turngym.envs.textworld.parallel import run_parallel
from turngym.envs.textworld.paraphrases import paraphrases
from turngym.envs.textworld.text import squeeze
from turngym.errors import InfraError

logger = logging.getLogger(__name__)

CARD_VERSION = 1
"""Goes up when the card's meaning changes; older files are made again."""

_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same game is the same bytes


@dataclass(frozen=True, slots=True)
class Card:
    """What the environment and the augmentations need to know of a game, all in lower case.

    Attributes:
        objective: what the agent is told.
        reworded: other objectives that name the same things.
        walkthrough: TextWorld's plan from the start.
        names: names of things and rooms.
        types: type of each of `names`: r room, d door, c container, s supporter, k key, f food, o other.
        num_quests: quests to complete; one in ten games has two.
    """

    objective: str
    reworded: tuple[str, ...]
    walkthrough: tuple[str, ...]
    names: tuple[str, ...]
    types: tuple[str, ...]
    num_quests: int


@dataclass(frozen=True, slots=True)
class StoredGame:
    """A game as it lies in the cache."""

    card: Card
    story: bytes
    game: dict[str, Any]

    def __deepcopy__(self, memo: object) -> "StoredGame":
        # Nobody changes it, and a snapshot of an environment would copy it each time.
        return self


def games_folder() -> Path:
    """Where the games of the installed TextWorld lie."""
    root = os.environ.get("TURNGYM_CACHE")
    base = Path(root) if root else Path.home() / ".cache" / "turngym"
    return base / "textworld" / backend.VERSION


def game_path(level: Level, seed: int) -> Path:
    """File of a game in the cache."""
    return games_folder() / "custom" / level.name / f"{seed}.zip"


def load_game(level: Level, seed: int) -> StoredGame:
    """The game of a seed, from the cache, or made now (1 s).

    Raises:
        TaskError: TextWorld finds no quest for this seed.
        InfraError: the game cannot be compiled or stored.
    """
    path = game_path(level, seed)
    stored = _read(path)
    if stored is None:
        stored = make_stored_game(level, seed)
        _write(path, stored)
    return stored


@lru_cache(maxsize=4096)
def load_card(level: Level, seed: int) -> Card:
    """The card of a game alone; made with its game where that is not cached."""
    return _read_card(game_path(level, seed)) or load_game(level, seed).card


def make_stored_game(level: Level, seed: int) -> StoredGame:
    """Makes and compiles a game, past the cache."""
    game = backend.generate(level, seed)
    entities = [entity for entity in game.infos.values() if entity.name and entity.type not in ("P", "I")]
    names = tuple(squeeze(entity.name) for entity in entities)
    objective = squeeze(game.objective)
    card = Card(
        objective=objective,
        reworded=paraphrases(game, objective, names),
        walkthrough=tuple(squeeze(command) for command in game.walkthrough or ()),
        names=names,
        types=tuple(str(entity.type) for entity in entities),
        num_quests=len(game.quests),
    )
    return StoredGame(card, backend.compile_story(game), backend.serialized(game))


def prepare(tasks: Sequence[str], *, processes: int | None = None, progress: bool = True) -> int:
    """Makes those games of `tasks` that are not cached yet, in parallel; returns how many were made.

    It may be stopped and called again: finished games are kept.

    Args:
        tasks: task ids of any level.
        processes: worker processes; None takes one for each core.
        progress: whether a progress bar is drawn.

    Raises:
        TaskError: an id is wrong, or TextWorld finds no quest for it.
        InfraError: a game cannot be compiled or stored, or a worker died.
    """
    parsed = dict.fromkeys(parse_task(task) for task in tasks)
    missing = [task_id(level, seed) for level, seed in parsed if _read_card(game_path(level, seed)) is None]
    run_parallel(make_into_cache, missing, processes=processes, label="Making games" if progress else "")
    return len(missing)


def make_into_cache(task: str) -> None:
    """Makes the game of a task where it is not cached yet; a job of `prepare`."""
    load_game(*parse_task(task))


def _read(path: Path) -> StoredGame | None:
    card = _read_card(path)
    if card is None:
        return None
    with zipfile.ZipFile(path) as archive:
        return StoredGame(card, archive.read("story.z8"), json.loads(archive.read("game.json")))


def _read_card(path: Path) -> Card | None:
    try:
        with zipfile.ZipFile(path) as archive:
            return _card(json.loads(archive.read("card.json")))
    except FileNotFoundError:
        return None
    except (zipfile.BadZipFile, KeyError, ValueError) as error:
        logger.warning("%s is damaged (%s); the game is made again.", path, error)
        return None
    except OSError as error:
        raise InfraError(f"{path} cannot be read: {error}. Set TURNGYM_CACHE to another folder.") from error


def _card(values: dict[str, Any]) -> Card | None:
    if values.get("version") != CARD_VERSION:
        return None
    return Card(
        objective=values["objective"],
        reworded=tuple(values["reworded"]),
        walkthrough=tuple(values["walkthrough"]),
        names=tuple(values["names"]),
        types=tuple(values["types"]),
        num_quests=values["num_quests"],
    )


def _write(path: Path, stored: StoredGame) -> None:
    card = {"version": CARD_VERSION, **asdict(stored.card)}
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(zipfile.ZipInfo("card.json", _EPOCH), json.dumps(card))
        archive.writestr(zipfile.ZipInfo("story.z8", _EPOCH), stored.story, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("game.json", _EPOCH), json.dumps(stored.game), zipfile.ZIP_DEFLATED)
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(buffer.getvalue())
        os.replace(temporary, path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InfraError(f"{path} cannot be written: {error}. Free the disk or set TURNGYM_CACHE.") from error
