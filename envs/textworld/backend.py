"""The one place that imports textworld and jericho, and the few steps we take in them.

jericho (GPL-2.0) runs the compiled story; textworld (MIT) makes games and knows their logic. Neither has types,
so their objects are `Any` here and stay behind `Machine`, `Progress` and the functions of `games`.
"""

import warnings
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any

import numpy as np

from turngym.envs.textworld.levels import Level
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
    from textworld.generator.game import Game, GameProgression
    from textworld.generator.inform7 import Inform7Game
    from textworld.generator.inform7.world2inform7 import TextworldInform7Warning
except ImportError as error:
    raise MissingExtraError(
        "The TextWorld environments need textworld: pip install 'turngym[textworld]'"
    ) from error

VERSION: str = textworld.__version__

# jericho draws its own seed from the clock unless given one; 0 counts as not given.
_INTERPRETER_SEED = 1


def game_options(level: Level, seed: int) -> Any:
    """The options that `tw-make custom --world-size W --nb-objects O --quest-length Q --seed SEED` sets."""
    options = textworld.GameOptions()
    options.seeds = seed
    options.nb_rooms = level.rooms
    options.nb_objects = level.objects
    # The command's own defaults differ from the library's (breadth 1): one game in ten has two quests.
    options.chaining.min_breadth, options.chaining.max_breadth = 1, 5
    options.chaining.min_depth = 1
    options.quest_length = level.quest_length
    return options


def generate(level: Level, seed: int) -> Any:
    """The game of a seed, not compiled (0.2 s at w2-o3-q4).

    Raises:
        TaskError: TextWorld finds no quest for this seed.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return make_game(game_options(level, seed))
        except QuestGenerationError as error:
            raise TaskError(
                f"TextWorld finds no quest for {level.name} with seed {seed}. Take another seed."
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
        copy.change_grammar(Grammar({"theme": "house"}, np.random.RandomState(number)))
    return str(copy.objective)


def serialized(game: Any) -> dict[str, Any]:
    """A game as JSON values, from which `Progress` starts."""
    return dict(game.serialize())


def house_grammar() -> Any:
    """TextWorld's grammar of the theme "house"."""
    return Grammar({"theme": "house"}, np.random.RandomState(0))


class Machine:
    """A compiled story in jericho's Z-machine, with the trace of Inform's actions switched on.

    One machine has its own copy of the interpreter's library, so machines don't share state.

    Attributes:
        intro: the raw text that the story opens with.
    """

    def __init__(self, story: bytes) -> None:
        try:
            # jericho opens a path whose name has an extension (it crashes without), and once only.
            with NamedTemporaryFile(prefix="turngym_", suffix=".z8") as file, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                file.write(story)
                file.flush()
                self._frotz = jericho.FrotzEnv(file.name, _INTERPRETER_SEED)
                self.intro: str = self._frotz.reset()[0]
        except OSError as error:
            raise InfraError(f"A game could not be started: {error}. Free the disk behind TMPDIR.") from error
        self._frotz.step("tw-trace-actions")
        self._start = self._frotz.get_state()
        self._tree = _object_tree(self._start[0])

    def __deepcopy__(self, memo: object) -> "Machine":
        raise NotImplementedError("An interpreter cannot be copied; replay the commands.")

    def restart(self) -> None:
        """Back to the start; 100 times cheaper than a new machine."""
        self._frotz.set_state(self._start)

    def save(self) -> Any:
        """The whole state of the interpreter, for `restore` (13 microseconds)."""
        return self._frotz.get_state()

    def restore(self, saved: Any) -> None:
        """Undoes everything since `save`, a pending question of the parser included."""
        self._frotz.set_state(saved)

    def send(self, command: str) -> str:
        """Raw reply to a command of printable ASCII; others crash the interpreter."""
        return str(self._frotz.step(command)[0])

    def objects(self) -> "np.ndarray[Any, np.dtype[np.uint8]]":
        """(objects, 14) the story's object table: 6 bytes of attributes, then words parent, sibling, child, properties."""
        ram = self._frotz.get_state()[0]
        return np.asarray(ram[self._tree].reshape(-1, 14))


def _object_tree(ram: Any) -> slice:
    # Z-machine standard 1.1, section 12.3: the table starts after 63 default words; its end isn't stored,
    # but the first property list stands right behind it.
    start = (int(ram[10]) << 8 | int(ram[11])) + 126
    end, entry = len(ram), start
    while entry + 14 <= end:
        end = min(end, int(ram[entry + 12]) << 8 | int(ram[entry + 13]))
        entry += 14
    return slice(start, entry)


class Progress:
    """TextWorld's own logic, following a game by Inform's action events: the plan and the admissible commands."""

    def __init__(self, game: dict[str, Any]) -> None:
        self._game = Game.deserialize(game)
        self._inform = Inform7Game(self._game)
        self.restart()

    def restart(self) -> None:
        """Back to the start."""
        self._now = GameProgression(self._game)

    def follow(self, events: tuple[str, ...]) -> None:
        """Applies the actions that Inform reported as succeeded; those outside the logic (look, jump) change nothing."""
        for event in events:
            action = self._inform.detect_action(event, self._now.valid_actions)
            if action is None and event.startswith("taking the "):
                action = self._taken_out(event.removeprefix("taking the "))
            if action is not None:
                self._now.update(action)

    def plan(self) -> list[str] | None:
        """Commands to the goal as TextWorld plans them, [] when it is reached; None when there is no way."""
        if self._now.completed:
            return []
        policy = self._now.winning_policy
        return None if policy is None else self._lower(policy)

    def commands(self) -> list[str]:
        """Admissible commands, sorted."""
        return sorted(set(self._lower(self._now.valid_actions)))

    def facts(self) -> list[str]:
        """The facts of the world, sorted, with TextWorld's ids of entities."""
        return sorted(str(fact) for fact in self._now.state.facts)

    def completed(self) -> list[bool]:
        """Which quests are completed."""
        return [bool(quest.completed) for quest in self._now.quest_progressions]

    def _taken_out(self, name: str) -> Any:
        # "get key" takes out of a box or off a shelf under the event of taking from the floor, where "take key"
        # has an event that names the box. TextWorld's own tracking loses its way there.
        for action in self._now.valid_actions:
            if action.name.split("/")[0] == "take":
                command = self._inform.gen_commands_from_actions([action])[0].lower()
                if command.startswith(f"take {name.lower()} from "):
                    return action
        return None

    def _lower(self, actions: Any) -> list[str]:
        return [command.lower() for command in self._inform.gen_commands_from_actions(actions)]
