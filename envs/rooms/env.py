"""turngym/Rooms-v0: a house of rooms in pure Python, with quests of exact length."""

import random
import re
from typing import ClassVar, Literal

import numpy as np

from turngym.envs.base import Reward, TurnEnv
from turngym.envs.rooms import augment
from turngym.envs.rooms.names import draw_names
from turngym.envs.rooms.parser import COMMAND_WORDS, COMPOUND, Parser
from turngym.envs.rooms.planner import Plan
from turngym.envs.rooms.scoring import score
from turngym.envs.rooms.tasks import NUMBERS, House, Level, build, task_ranges
from turngym.envs.rooms.text import Text
from turngym.envs.rooms.text_large import LARGE
from turngym.envs.rooms.text_small import SMALL, small_words
from turngym.envs.rooms.wording import Wording, command, holder_name
from turngym.envs.rooms.world import (
    CARRIED,
    FIRST_CONTAINER,
    GONE,
    LATCHES,
    Obstacle,
    State,
    apply,
    obstacle,
    possible,
)
from turngym.errors import ConfigError, TaskError
from turngym.types import Demonstration, JsonValue, Turn

Vocabulary = Literal["small", "large"]
GoalText = Literal["detailed", "brief", "none"]

VOCABULARIES: dict[str, Text] = {"small": SMALL, "large": LARGE}
GOALS = ("detailed", "brief", "none")


class RoomsEnv(TurnEnv):
    """A house of rooms, doors, containers and keys; the quest is one goal, some commands away.

    Score: quest length minus length of the shortest plan that remains, so 0 at the start, the quest length when
    solved, and negative farther away than the start. A state without any plan (the goal's food was eaten) ends
    the episode `lost`, with a score of 0 or the last one, whichever is less.

    Commands: go, take (from), drop, open, close, unlock with, lock with, put on, insert into, eat, look, examine,
    inventory.

    Args:
        level: `wX-oY-qZ`: X rooms, at least Y objects (items, containers, supporters), and a quest whose shortest
            solution has exactly Z commands, as in TextWorld's `tw-make custom`.
        vocabulary: "small" has about 80 words and one wording each; "large" has hundreds of names and several
            wordings, drawn per task.
        goal: "detailed" tells the quest's steps in order, "brief" only its end. "none" tells nothing: a note in
            the first room says the goal, and to examine it is the first command of the quest.
        reward, list_commands: see `TurnEnv`.
        max_turns: None takes twice the quest length, whatever the goal.
    """

    compound_pattern: ClassVar[re.Pattern[str] | None] = COMPOUND
    command_words = COMMAND_WORDS
    augmentations: ClassVar[tuple[str, ...]] = ("rename", "reword")

    def __init__(
        self,
        *,
        level: str = "w2-o3-q4",
        vocabulary: Vocabulary = "small",
        goal: GoalText = "detailed",
        reward: Reward = "dense",
        max_turns: int | None = None,
        list_commands: bool = True,
    ) -> None:
        self.level = Level.read(level)
        if vocabulary not in VOCABULARIES:
            raise ConfigError(f"vocabulary = {vocabulary!r} is not known. Choose 'small' or 'large'.")
        if goal not in GOALS:
            raise ConfigError(f"goal = {goal!r} is not known. Choose 'detailed', 'brief' or 'none'.")
        if goal == "none" and self.level.quest < 2:
            raise ConfigError(
                f"level = {level!r} with goal = 'none': the note alone takes one command. Choose q2 or more."
            )
        self.vocabulary, self.goal = vocabulary, goal
        self._text = VOCABULARIES[vocabulary]
        self._prefix = f"{level}/{vocabulary}/{goal}/"
        self.splits = task_ranges(self._prefix)
        self.max_score = float(self.level.quest)
        turns = 2 * self.level.quest if max_turns is None else max_turns
        super().__init__(reward=reward, max_turns=turns, list_commands=list_commands)

    def words(self) -> tuple[str, ...]:
        return small_words() if self.vocabulary == "small" else tuple(self._text.words())

    def load(self, task: str, rng: np.random.Generator) -> str:
        if not any(task in tasks for tasks in self.splits.values()):
            raise TaskError(self._mismatch(task))
        chance = random.Random(int(rng.integers(2**63)))
        house = build(self.level, self.goal == "none", chance)
        self._house: House = house
        self._names = draw_names(house.world, self._text.pools, chance)
        self._wording = Wording(house, self._names, self._text, chance)
        self._parser = Parser(house.world, self._names)
        self._state: State = house.state
        self._plan: Plan = house.plan
        self.instructions = self._wording.instructions(self.goal, chance)
        return self._wording.room(self._state)

    def act(self, command: str) -> Turn:
        world, before = self._house.world, self._state
        action = self._parser.read(command, before)
        hindrance = action if isinstance(action, Obstacle) else obstacle(world, before, action)
        if hindrance is not None or isinstance(action, Obstacle):
            return Turn(self._wording.refusal(hindrance or Obstacle("cannot")), valid=False)
        after = apply(world, before, action)
        text = self._wording.result(action, after)
        if after is before:
            return Turn(text)
        self._state = after
        plan = self._house.planner.follow(self._plan, action, after)
        points = score(self.level.quest, None if plan is None else len(plan), self._score)
        self._plan = plan or ()
        if plan:
            return Turn(text, score=points)
        end = self._wording.say("lost" if plan is None else "won")
        return Turn(f"{text} {end}", score=points, solved=plan is not None, over=True)

    def state(self) -> JsonValue:
        names, state = self._names, self._state
        latches = map(LATCHES.__getitem__, state.latches)
        return {
            "task": self._task,
            "room": names.rooms[state.room],
            "read": state.read,
            "places": dict(zip(names.items, map(self._place_name, state.places), strict=True)),
            "latches": dict(zip(names.openables, latches, strict=True)),
        }

    def plan(self) -> list[str]:
        """The shortest remaining commands, from any state."""
        return [command(action, self._names) for action in self._plan]

    def commands(self) -> list[str]:
        """Every command that would change the state, and every look, inventory and examine; sorted."""
        return sorted(command(action, self._names) for action in possible(self._house.world, self._state))

    def inquire(self) -> str:
        """What shows the names in the plan's next command: things carried from the start are told only if asked."""
        if not self._plan:
            return ""
        verb, thing, target = self._plan[0]
        item = (
            target
            if verb in ("unlock", "lock")
            else thing
            if verb in ("drop", "put", "insert", "eat")
            else -1
        )
        return "inventory" if item >= 0 and self._state.places[item] == CARRIED else "look"

    def augment(self, name: str, demo: Demonstration, rng: np.random.Generator) -> Demonstration:
        """The demonstration under other names ("rename"), or with its goal in other words ("reword")."""
        if name == "rename":
            return augment.rename(demo, self._text.pools, rng)
        if name == "reword":
            return augment.reword(demo, self._text, rng)
        return super().augment(name, demo, rng)

    def _place_name(self, place: int) -> str:
        if place == CARRIED:
            return "carried"
        if place == GONE:
            return "gone"
        return self._names.rooms[place] if place < FIRST_CONTAINER else holder_name(place, self._names)

    def _mismatch(self, task: str) -> str:
        parts, own = task.split("/"), self._prefix.split("/")
        if len(parts) != 4:
            return f"Task {task!r} is no id of Rooms. Ids of this environment look like {self._example()!r}."
        for name, given, expected in zip(("level", "vocabulary", "goal"), parts, own, strict=False):
            if given != expected:
                return f"Task {task!r} has {name} {given!r}; this environment has {expected!r}. Make one with {name}={given!r}."
        ranges = ", ".join(f"{split} {numbers[0]}-{numbers[-1]}" for split, numbers in NUMBERS.items())
        return f"Task {task!r} has no number of a split. Numbers: {ranges}."
