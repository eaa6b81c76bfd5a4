"""One episode that a person plays on a bare environment, with a way back."""

from dataclasses import dataclass
from typing import Any

from turngym.envs.base import Snapshot
from turngym.envs.honesty import Seen
from turngym.envs.pool import EnvRef
from turngym.errors import ConfigError
from turngym.types import TurnInfo


@dataclass(frozen=True, slots=True)
class Moment:
    """How the episode stands after a turn; `snapshot` leads back to it."""

    observation: str
    reward: float
    info: TurnInfo
    snapshot: Snapshot


class Game:
    """An episode under way.

    Args:
        ref: the environment.
        task: task id; None takes one of `split`, by the seed.
        split: where the task is picked from; None is "train".
        seed: of the choice of the task, and of chance during the episode.

    Attributes:
        moments: the start, and one moment per turn that still counts.
        commands: what was played in those turns.
        num_hints, num_undone: what a record of the episode must say.

    Raises:
        UnknownEnvError, TaskError: no environment or task of that name.
        ConfigError: a wrong argument or split, or both a task and a split.
    """

    def __init__(self, ref: EnvRef, *, task: str | None, split: str | None, seed: int) -> None:
        if task is not None and split is not None:
            raise ConfigError(
                f"Task {task!r} and split {split!r}: name one of them, the task is of one split."
            )
        self.ref, self.seed = ref, seed
        self.env = ref.make()
        options: dict[str, Any] = {"split": split or "train"} if task is None else {"task": task}
        observation, info = self.env.reset(seed=seed, options=options)
        self.moments = [self._moment(observation, 0.0, info)]
        self.commands: list[str] = []
        self.num_hints = self.num_undone = 0

    @property
    def now(self) -> Moment:
        return self.moments[-1]

    @property
    def is_over(self) -> bool:
        return self.now.info.outcome != "running"

    @property
    def instructions(self) -> str:
        return self.moments[0].info.instructions or ""

    @property
    def episode_return(self) -> float:
        return sum(moment.reward for moment in self.moments)

    def play(self, command: str) -> Moment:
        """Plays one turn and returns how the episode then stands."""
        observation, reward, _, _, info = self.env.step(command)
        self.commands.append(command)
        self.moments.append(self._moment(observation, reward, info))
        return self.now

    def undo(self) -> str | None:
        """Takes the last turn back; returns its command, or None at the start."""
        if not self.commands:
            return None
        self.moments.pop()
        self.env.restore(self.now.snapshot)
        self.num_undone += 1
        return self.commands.pop()

    def admissible(self) -> list[str] | None:
        """Commands that would work now; None where the environment lists none."""
        return self.env.commands()

    def hint(self) -> str | None:
        """The honest expert's next command; None where it has no way from here.

        Raises:
            ConfigError: the environment brings no expert.
        """
        if not self.env.can_plan:
            raise ConfigError("This environment has no expert (no `plan()`), so there are no hints.")
        plan = self.env.plan()
        if not plan:
            return None
        self.num_hints += 1
        seen = Seen()
        for text in (self.instructions, *(moment.observation for moment in self.moments)):
            seen.add(text)
        inquiry = self.env.inquire()
        # The expert asks once for what it has not been shown; a person who has asked needs no second time.
        asked = inquiry in self.commands
        return seen.honest_command(plan, "" if asked else inquiry, self.env.command_words)

    def close(self) -> None:
        """Ends the environment."""
        self.env.close()

    def _moment(self, observation: str, reward: float, info: dict[str, Any]) -> Moment:
        return Moment(observation, reward, TurnInfo.read(info), self.env.snapshot())
