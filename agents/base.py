"""The seam between rollout and agents: a reading goes in, a decision comes out."""

from dataclasses import dataclass
from typing import Protocol

from turngym.envs.pool import EnvRef, Wants
from turngym.types import Author, Outcome, Segment, TurnInfo


@dataclass(frozen=True, slots=True)
class Job:
    """An episode to be played; `number` is unique in its rollout and names the sampler's stream."""

    number: int
    group: int
    env: EnvRef
    task: str
    seed: int


@dataclass(frozen=True, slots=True)
class Reading:
    """What an agent has before it at one turn.

    Attributes:
        episode, attempt, turn: which turn this is; turn 0 brings the instructions.
        observation: the environment's last words.
        plan, inquiry, command_words: the expert's part, filled when the agent wants a plan.
    """

    episode: int
    attempt: int
    turn: int
    seed: int
    observation: str
    info: TurnInfo
    plan: tuple[str, ...] = ()
    inquiry: str = ""
    command_words: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Decision:
    """One agent message; with `ending` the agent gives up the episode instead (its context is full)."""

    episode: int
    command: str
    author: Author = "policy"
    thought: str = ""
    finish_reason: str = "stop"
    ending: Outcome | None = None


class Agent(Protocol):
    """Plays many episodes at once: readings are submitted, `step` hands back what is decided."""

    name: str
    wants: Wants

    @property
    def weights_version(self) -> int:
        """Updates that its weights have seen; 0 without weights."""

    def submit(self, reading: Reading) -> None:
        """Takes a reading; its decision comes from a later `step`."""

    def step(self) -> list[Decision]:
        """Decisions that are ready; may be [] while work goes on, never for ever."""

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        """Ends an episode, whose last observation is given, and hands out its tokens."""
