"""`tw-make tw-simple`: out of the bedroom, find the food, put it on the stove."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from turngym.envs.textworld.families.base import Level

REWARDS = ("dense", "balanced", "sparse")
GOALS = ("detailed", "brief", "none")


@dataclass(frozen=True, slots=True)
class SimpleLevel(Level):
    """A game in a house of six rooms: how often the game itself gives points, and how its goal is told.

    The map is the same for all seeds; key, food, places of the food and texts differ. The longest way has 12
    commands, 13 with the note that tells the goal where nothing else does; the turn limit is 36.

    Attributes:
        rewards: dense, balanced or sparse: how often the game says that the score went up.
        goal: detailed (step by step), brief (the dish), none (to be read in the kitchen).
    """

    family: ClassVar[str] = "simple"
    example: ClassVar[str] = "dense-detailed"
    form: ClassVar[str] = f"one of {', '.join(REWARDS)} and one of {', '.join(GOALS)}, as in 'dense-detailed'"
    challenge: ClassVar[str] = "tw-simple"
    # Where the goal is not told step by step, nothing but their names tells what these are for.
    kept_words: ClassVar[frozenset[str]] = frozenset({"note", "stove"})

    rewards: str
    goal: str

    @classmethod
    def parse(cls, text: str) -> Self | None:
        rewards, _, goal = text.partition("-")
        return cls(rewards, goal) if rewards in REWARDS and goal in GOALS else None

    @property
    def name(self) -> str:
        return f"{self.rewards}-{self.goal}"

    @property
    def max_turns(self) -> int:
        return 36

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"rewards": self.rewards, "goal": self.goal, "test": False}

    @property
    def rewords(self) -> bool:
        return self.goal == "detailed"

    @property
    def document(self) -> str:
        return "note" if self.goal == "none" else ""
