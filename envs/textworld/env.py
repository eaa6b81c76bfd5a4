"""turngym/TextWorld-v0: games of Microsoft's TextWorld, played in the compiled story itself."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from turngym.envs.base import Reward, TurnEnv
from turngym.envs.textworld.card import StoredGame
from turngym.envs.textworld.games import load_game, prepare
from turngym.envs.textworld.language import COMMAND_WORDS, COMPOUND, MAX_COMMAND_CHARS, normalize, refusal
from turngym.envs.textworld.levels import family_of, parse_level, parse_task
from turngym.envs.textworld.machine import Machine, Table
from turngym.envs.textworld.progress import Progress
from turngym.envs.textworld.tasks import splits_of
from turngym.envs.textworld.text import named_option, read_intro, read_reply
from turngym.envs.textworld.vocabulary import all_words
from turngym.envs.textworld.wording import outline, rename, reword
from turngym.errors import ConfigError, TaskError
from turngym.types import Demonstration, JsonValue, Turn

NO_OBJECTIVE = "find out what is to be done here."
"""Instructions of a game that tells nothing."""

# Attributes of Z-machine objects, as TextWorld 1.7.0's kinds make Inform number them: (byte, bit).
_DOOR = (0, 0x04)
_LOCKED = (1, 0x20)
_OPEN = (1, 0x04)


class TextWorldEnv(TurnEnv):
    """Text games by seed, the same bytes as `tw-make` makes of the same options.

    A task such as `custom/w2-o3-q4/17` names family, level and seed. The agent is told the objective and types
    commands; all text is in lower case.

    - custom (`tw-make custom`), level w2-o3-q4: rooms, at least so many objects, actions of the quest;
      w2-o3-q4-last: the objective tells the last action only.
    - simple (`tw-simple`), level dense-detailed: points (dense, balanced, sparse), goal (detailed, brief, none).
    - cooking (`tw-cooking`), level r3-t2-open-cut-cook-go6: ingredients, those to find, skills (any of open, cut,
      cook, drop), rooms (1, 6, 9 or 12; with 9 and 12, cut goes with cook).
    - coin (`tw-coin_collector`), level l5: l1 to l150 or l201 to l233.
    - treasure (`tw-treasure_hunter`), level l10: l1 to l30.

    Turn limit: three times the quest's length where the level fixes it (custom, coin, treasure), 36 in simple games
    and 100 in cooking games.

    Score: Q0 minus the length of the remaining plan, where Q0 is the plan's length at the start and the best score;
    a state without a plan ends the episode as lost (none was seen that Inform did not call lost, too). With
    `reward="sparse"` the score stays 0 until the game is solved, since the plan costs time. How a simple game gives
    points changes nothing here but its text. Cooking with drop has no plan: there the score is the game's own, up to
    the points that it has, and there is no expert.

    The expert is TextWorld's plan. It knows where things lie, and names only what was shown: an unnamed key lies in
    the inventory. In cooking games it looks into the inventory (where ingredients are carried from the start) and
    examines the cookbook before it does anything else, in simple games without a goal the note; both count as
    progress.

    A command is `valid` when Inform reports that an action of it succeeded, so "take keycard" counts although only
    "take type j keycard from case" is listed. A command that starts no action (the parser's errors and its
    questions, "which do you mean, ...?") is taken back whole: the next command never counts as an answer. The one
    question that is answered for the agent is between things of which the command has named one in full, since
    Inform would take no other answer than a number.

    Hidden from `state()`: what "it" stands for, Inform's turn counter, and which rooms were seen.

    Args:
        family: kind of game.
        level: size of the game; None takes the family's example (w2-o3-q4, dense-detailed, r1-t1-cook-go1, l5, l10).
        reward, max_turns, list_commands: as in `TurnEnv`.
    """

    compound_pattern = COMPOUND
    max_command_chars = MAX_COMMAND_CHARS
    augmentations: ClassVar[tuple[str, ...]] = ("outline", "reword", "rename", "rename_wide")

    def __init__(
        self,
        family: str = "custom",
        *,
        level: str | None = None,
        reward: Reward = "dense",
        max_turns: int | None = None,
        list_commands: bool = True,
    ) -> None:
        self.level = parse_level(family, family_of(family).example if level is None else level)
        self.max_turns = self.level.max_turns
        self.command_words = COMMAND_WORDS | self.level.verbs
        super().__init__(reward=reward, max_turns=max_turns, list_commands=list_commands)
        self.splits = splits_of(self.level)
        self._loaded: str | None = None
        self._game: StoredGame
        self._machine = Machine()
        self._logic: Progress | None = None
        self._pending: list[str] = []

    @property
    def can_plan(self) -> bool:
        """False for cooking with drop."""
        return self.level.has_expert

    def words(self) -> list[str]:
        return all_words(self.level)

    def prepare(self, tasks: Sequence[str]) -> None:
        """Makes the games of tasks ahead, in parallel and with a progress bar.

        Raises:
            TaskError: a task is of another family or level, or has no game.
            InfraError: a game cannot be made or stored.
        """
        for task in tasks:
            parse_task(task, self.level)
        prepare(tasks)

    def load(self, task: str, rng: np.random.Generator) -> str:
        """Starts the game of a task; making it takes about 1 s the first time."""
        level, seed = parse_task(task, self.level)
        if self._loaded != task:
            self._loaded = None
            self._game = load_game(level, seed)
            self._machine.open(self._game.story)
            self._logic = None
            self._loaded = task
        else:
            self._machine.restart()
            if self._logic is not None:
                self._logic.restart()
        self._pending = []
        card = self._game.card
        if not card.walkthrough:
            raise TaskError(f"Task {task!r}: TextWorld has no plan for this game. Take another seed.")
        self.max_score = float(len(card.walkthrough) if self.can_plan else card.points)
        self.instructions = card.objective or NO_OBJECTIVE
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
        if not self.can_plan:
            return Turn(reply.text, score=float(reply.points), valid=valid)
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

        Objects are the story's numbers, in the order of its object table. Cooking games add what is raw, cut and
        cooked, in TextWorld's words, and levels with something to look at first whether that was done.
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
        if self.level.document and self.can_plan:
            state["learnt"] = list(self._followed().learnt())
        if self.level.family == "cooking":
            state["conditions"] = list(self._followed().conditions())
        return state

    def plan(self) -> list[str]:
        """TextWorld's plan from here, in lower case, with what must be read first; [] for cooking with drop.

        It sees the true state, so it may name what was never shown.
        """
        return (self._followed().plan() or []) if self.can_plan else []

    def commands(self) -> list[str]:
        """TextWorld's admissible commands, in lower case and sorted."""
        return self._followed().commands()

    def inquire(self) -> str:
        """Keys that the objective doesn't name lie in the inventory from the start."""
        return "inventory"

    def augment(self, name: str, demo: Demonstration, rng: np.random.Generator) -> Demonstration:
        """The demonstration in other words.

        Args:
            name: "outline" leaves goal and walkthrough alone, where the goal tells all that the walkthrough needs.
                "reword" tells the objective in other words that reveal the same names; where it is a fixed sentence
                (cooking, simple without detail) the demonstration stays as it is. "rename" gives the game's
                things and rooms other names, word by word, out of the names of custom training games; "rename_wide"
                out of all names that TextWorld has. Kitchen, cookbook, knife and appliances of cooking games and
                stove and note of simple ones stay, since their names tell what they are for. To use both, reword
                first: a renamed objective is not recognized.
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
            self._logic = Progress(self._game.game, self.level)
        if self._pending:
            self._logic.follow(tuple(self._pending))
            self._pending = []
        return self._logic


def _having(objects: Table, attribute: tuple[int, int]) -> "np.ndarray[Any, np.dtype[np.intp]]":
    byte, bit = attribute
    return np.flatnonzero(objects[:, byte] & bit)
