"""What imports textworld and jericho (beside `challenge` and `tracking`), and the few steps we take in them.

jericho (GPL-2.0) runs the compiled story; textworld (MIT) makes games and knows their logic. Neither has types,
so their objects are `Any` here and stay behind `Machine`, `Progress` and this file's functions.
"""

import shutil
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import Any

import numpy as np

from turngym.envs.textworld.challenge import NEEDS_TEXTWORLD, house_rules, make_challenge
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.tracking import Tracking
from turngym.errors import InfraError, MissingExtraError, TaskError

try:
    import jericho  # type: ignore[import-untyped]
    import textworld
    from textworld.generator import (
        CouldNotCompileGameError,
        Grammar,
        QuestGenerationError,
        compile_game,
        make_game,
    )
    from textworld.generator.game import Game
    from textworld.generator.inform7 import Inform7Game
    from textworld.generator.inform7.world2inform7 import TextworldInform7Warning
except ImportError as error:
    raise MissingExtraError(NEEDS_TEXTWORLD) from error

VERSION: str = textworld.__version__

# jericho draws a seed from the clock unless given one; 0 counts as not given.
_INTERPRETER_SEED = 1

_INFORM_BYTES = 30_000_000
"""Space that a compilation takes in the folder of temporary files, with a margin."""


def game_options(level: CustomLevel, seed: int) -> Any:
    """The options that `tw-make custom --world-size W --nb-objects O --quest-length Q --seed SEED` sets."""
    options = textworld.GameOptions()
    options.seeds = seed
    options.kb = house_rules()
    options.nb_rooms = level.rooms
    options.nb_objects = level.objects
    # The command's own defaults differ from the library's (breadth 1): one game in ten has two quests.
    options.chaining.min_breadth, options.chaining.max_breadth = 1, 5
    options.chaining.min_depth = 1
    options.quest_length = level.quest_length
    options.grammar.only_last_action = level.last
    return options


def generate(level: Level, seed: int) -> Any:
    """The game of a seed, not compiled (0.2 s at w2-o3-q4).

    Raises:
        TaskError: TextWorld finds no quest for this seed, or has too few names for so many things.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            if isinstance(level, CustomLevel):
                return make_game(game_options(level, seed))
            return make_challenge(level.challenge, level.settings, seed)
        except QuestGenerationError as error:
            raise TaskError(
                f"TextWorld finds no quest for {level.family}/{level.name} with seed {seed}. Take another seed."
            ) from error
        except ValueError as error:
            raise TaskError(
                f"TextWorld fails at {level.family}/{level.name} with seed {seed}: {str(error).split('. ')[0]}. "
                "Take another seed or a smaller level."
            ) from error


def compile_story(game: Any) -> bytes:
    """The Z-machine story of a game, compiled by Inform 7 (0.8 s).

    Raises:
        InfraError: Inform fails, or the disk is full.
    """
    try:
        with TemporaryDirectory(prefix="turngym_inform_") as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore", TextworldInform7Warning)
            options = textworld.GameOptions()
            options.path = str(Path(folder) / "story.z8")
            return Path(compile_game(game, options)).read_bytes()
    except CouldNotCompileGameError as error:
        free = shutil.disk_usage(gettempdir()).free
        if free < _INFORM_BYTES:
            raise InfraError(
                f"Inform could not compile the game: {gettempdir()} has {free / 1e6:.0f} MB left. "
                "Free that disk, or set TMPDIR to a folder on another one."
            ) from error
        raise InfraError(f"Inform could not compile the game: {str(error).strip()[:500]}") from error
    except OSError as error:
        raise InfraError(
            f"Inform could not be run: {error}. Look for a full disk, and for Linux on x86-64."
        ) from error


def reworded(game: Any, number: int) -> str:
    """The objective of the same game, told in other words (2-5 ms); the game stays as it is."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        copy = game.copy()
        copy.change_grammar(Grammar(game.grammar.options, np.random.RandomState(number)))
    return str(copy.objective)


def serialized(game: Any) -> dict[str, Any]:
    """A game as JSON values, from which `Progress` starts."""
    return dict(game.serialize())


def house_grammar() -> Any:
    """TextWorld's grammar of the theme "house"."""
    return Grammar({"theme": "house"}, np.random.RandomState(0))


def start_interpreter(path: str) -> Any:
    """jericho's interpreter for a story file whose name has an extension (it crashes without)."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return jericho.FrotzEnv(path, _INTERPRETER_SEED)


def exchange_story(interpreter: Any, path: str, story: bytes) -> None:
    """Lets the interpreter's next `reset` start another story, whose file must be there until then."""
    # jericho's own `load` starts the story a first time, and identifies it among the games that it knows.
    interpreter._cache = {path: (story, {}, None)}
    interpreter.story_file = path.encode()


def load_logic(game: dict[str, Any]) -> Any:
    """TextWorld's game object behind `serialized`."""
    return Game.deserialize(game)


def start_logic(game: Any) -> Any:
    """TextWorld's tracking of a game, at the start: facts, valid actions, plan."""
    return Tracking(game)


def command_writer(game: Any) -> Any:
    """TextWorld's bridge to Inform for a game: commands of actions, and actions behind Inform's events."""
    return Inform7Game(game)
