"""turngym/TextWorld-v0: games of Microsoft's TextWorld, played in the compiled story itself."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from turngym.envs.base import Reward, TurnEnv
from turngym.envs.textworld.games import StoredGame, load_game, prepare
from turngym.envs.textworld.language import COMMAND_WORDS, COMPOUND, MAX_COMMAND_CHARS, normalize, refusal
from turngym.envs.textworld.levels import check_family, parse_level, parse_task
from turngym.envs.textworld.machine import Machine, Table
from turngym.envs.textworld.progress import Progress
from turngym.envs.textworld.tasks import splits_of
from turngym.envs.textworld.text import named_option, read_intro, read_reply
from turngym.envs.textworld.vocabulary import all_words
from turngym.envs.textworld.wording import outline, rename, reword
from turngym.errors import ConfigError, TaskError
from turngym.types import Demonstration, JsonValue, Turn

# Attributes of Z-machine objects, as TextWorld 1.7.0's kinds make Inform number them: (byte, bit).
_DOOR = (0, 0x04)
_LOCKED = (1, 0x20)
_OPEN = (1, 0x04)


class TextWorldEnv(TurnEnv):
    """Text games by seed: `tw-make custom --world-size W --nb-objects O --quest-length Q --seed SEED`.

    The task `custom/w2-o3-q4/17` is the game of seed 17, the same bytes as the command makes. The agent is told the
    objective and types commands; all text is in lower case. Shortest solutions have about Q commands, the default
    turn limit is 3 Q.

    Score: Q0 minus the length of TextWorld's remaining plan, where Q0 is the plan's length at the start and the best
    score; a state without a plan ends the episode as lost (no game of this family was seen to reach one). With
    `reward="sparse"` the score stays 0 until the game is solved, since the plan costs time.

    A command is `valid` when Inform reports that an action of it succeeded, so "take keycard" counts although only
    "take type j keycard from case" is listed. A command that starts no action (the parser's errors and its
    questions, "which do you mean, ...?") is taken back whole: the next command never counts as an answer. The one
    question that is answered for the agent is between things of which the command has named one in full, since
    Inform would take no other answer than a number.

    Hidden from `state()`: what "it" stands for, Inform's turn counter, and which rooms were seen.

    Args:
        family: kind of game; only "custom" for now.
        level: size, "w2-o3-q4" is 2 rooms, at least 3 objects, a quest of 4 actions.
        reward, max_turns, list_commands: as in `TurnEnv`.
    """

    compound_pattern = COMPOUND
    max_command_chars = MAX_COMMAND_CHARS
    command_words = COMMAND_WORDS
    augmentations: ClassVar[tuple[str, ...]] = ("outline", "reword", "rename", "rename_wide")

    def __init__(
        self,
        family: str = "custom",
        *,
        level: str = "w2-o3-q4",
        reward: Reward = "dense",
        max_turns: int | None = None,
        list_commands: bool = True,
    ) -> None:
        check_family(family)
        self.level = parse_level(level)
        self.max_turns = 3 * self.level.quest_length
        super().__init__(reward=reward, max_turns=max_turns, list_commands=list_commands)
        self.splits = splits_of(self.level)
        self._loaded: str | None = None
        self._game: StoredGame
        self._machine: Machine
        self._logic: Progress | None = None
        self._pending: list[str] = []

    def words(self) -> list[str]:
        return all_words()

    def prepare(self, tasks: Sequence[str]) -> None:
        prepare(tasks)

    def load(self, task: str, rng: np.random.Generator) -> str:
        """Starts the game of a task; making it takes about 1 s the first time."""
        level, seed = parse_task(task, self.level)
        if self._loaded != task:
            self._loaded = None
            self._game = load_game(level, seed)
            self._machine, self._logic = Machine(self._game.story), None
            self._loaded = task
        else:
            self._machine.restart()
            if self._logic is not None:
                self._logic.restart()
        self._pending = []
        if not self._game.card.walkthrough:
            raise TaskError(f"Task {task!r}: TextWorld has no plan for this game. Take another seed.")
        self.max_score = float(len(self._game.card.walkthrough))
        self.instructions = self._game.card.objective
        return read_intro(self._machine.intro)

    def act(self, command: str) -> Turn:
        """Types one command into the game."""
        words = normalize(command)
        refused = refusal(words)
        if refused:
            return Turn(refused, valid=False)
        before = self._machine.save()
        reply = read_reply(self._machine.send(words))
        option = None if reply.acted else named_option(reply.text, words)
        if option is not None:
            reply = read_reply(self._machine.send(str(option)))
        if not reply.acted:
            self._machine.restore(before)
            return Turn(reply.text, valid=False)
        self._pending.extend(reply.events)
        valid = bool(reply.events)
        if reply.won:
            return Turn(reply.text, score=self.max_score, solved=True, over=True, valid=valid)
        if reply.lost:
            return Turn(reply.text, over=True, valid=valid)
        if self.reward == "sparse":
            # Nothing else can't be undone, and asking for the plan at each turn costs as much as the game.
            eaten = any(event.startswith("eating ") for event in reply.events)
            return Turn(reply.text, over=eaten and self._followed().plan() is None, valid=valid)
        plan = self._followed().plan()
        if plan is None:
            return Turn(reply.text, over=True, valid=valid)
        return Turn(reply.text, score=self.max_score - len(plan), valid=valid)

    def state(self) -> JsonValue:
        """Where every object of the story is, which are open or locked, and which of several quests are completed.

        Objects are the story's numbers, in the order of its object table.
        """
        objects = self._machine.objects()
        parents = objects[:, 6].astype(int) * 256 + objects[:, 7]
        # Inform moves a door along with whoever sees it, so where it is depends on the way here.
        parents[_having(objects, _DOOR)] = 0
        state: dict[str, JsonValue] = {
            "parents": [*parents.tolist()],
            "open": [*_having(objects, _OPEN).tolist()],
            "locked": [*_having(objects, _LOCKED).tolist()],
        }
        if self._game.card.num_quests > 1:
            # A quest stays completed when its outcome is undone, which the objects don't show.
            state["completed"] = list(self._followed().completed())
        return state

    def plan(self) -> list[str]:
        """TextWorld's plan from here, in lower case; it sees the true state, so it may name what was never shown."""
        return self._followed().plan() or []

    def commands(self) -> list[str]:
        """TextWorld's admissible commands, in lower case and sorted."""
        return self._followed().commands()

    def inquire(self) -> str:
        """Keys that the objective doesn't name lie in the inventory from the start."""
        return "inventory"

    def augment(self, name: str, demo: Demonstration, rng: np.random.Generator) -> Demonstration:
        """The demonstration in other words.

        Args:
            name: "outline" leaves goal and walkthrough alone, with empty observations. "reword" tells the objective in other words that reveal the same names. "rename" gives the game's
                things and rooms other names, word by word, out of the names of training games; "rename_wide" out of
                all names that TextWorld has. To use both, reword first: a renamed objective is not recognized.
            demo: a demonstration in one of this environment's games.
            rng: where the choice comes from.
        """
        if name == "outline":
            return outline(demo)
        if name == "reword":
            return reword(demo, rng)
        if name in ("rename", "rename_wide"):
            return rename(demo, rng, wide=name == "rename_wide")
        raise ConfigError(f"TextWorldEnv offers no augmentation {name!r}. It offers: {self.augmentations}.")

    def _followed(self) -> Progress:
        """The logic, brought up to date; made only when something asks for it."""
        if self._logic is None:
            self._logic = Progress(self._game.game)
        if self._pending:
            self._logic.follow(tuple(self._pending))
            self._pending = []
        return self._logic


def _having(objects: Table, attribute: tuple[int, int]) -> "np.ndarray[Any, np.dtype[np.intp]]":
    byte, bit = attribute
    return np.flatnonzero(objects[:, byte] & bit)
