"""Records that cross a layer: turns, episodes, demonstrations."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, overload

JsonValue = None | bool | int | float | str | list["JsonValue"] | dict[str, "JsonValue"]

Outcome = Literal[
    "running", "won", "lost", "turn_limit", "token_limit", "time_limit", "invalid", "env_fault", "infra"
]
"""How an episode stands or ended. Only "won" is a success; "infra" is outside every statistic."""

Author = Literal["env", "template", "policy", "expert", "noise", "human"]
"""Who wrote a token. "env" and "template" are observation tokens; the others are action tokens."""

Split = Literal["train", "validation", "test"]
SPLITS: tuple[Split, ...] = ("train", "validation", "test")


@dataclass(frozen=True, slots=True)
class Turn:
    """What an environment answers to one command.

    Attributes:
        observation: text that the agent reads next.
        score: points so far, absolute; None leaves the score as it was.
        solved: the task is solved; ends the episode as `won`.
        over: the task is decided; without `solved` it ends the episode as `lost`.
        valid: the environment understood the command and could carry it out.

    Example:
        >>> Turn("The door opens.", score=1.0, solved=True)
        Turn(observation='The door opens.', score=1.0, solved=True, over=False, valid=True)
    """

    observation: str
    score: float | None = None
    solved: bool = False
    over: bool = False
    valid: bool = True


@dataclass(frozen=True, slots=True)
class TurnInfo:
    """The typed form of `info`, the fifth value of `step` and the second of `reset`.

    Attributes:
        task: task id, which alone fixes the start.
        turn: number of turns played.
        score, max_score: points so far, and the most that can be had.
        success: True only when the environment said solved.
        outcome: see `Outcome`.
        valid: False when the last command was refused or impossible.
        admissible: commands that would work now; None where the environment lists none or was not asked.
        state_key, start_key: hash of the true state now, and at the start.
        messages: chat messages to append, for environments with tools.
        instructions, tools: text and tool schemas of the task; only at reset, since they depend on it.

    Example:
        >>> import turngym
        >>> observation, info = turngym.make("Rooms-v0").reset(seed=1)
        >>> now = TurnInfo.read(info)
        >>> now.turn, now.outcome, now.success
        (0, 'running', False)
    """

    task: str
    turn: int
    score: float
    max_score: float
    success: bool
    outcome: Outcome
    valid: bool
    admissible: tuple[str, ...] | None
    state_key: str
    start_key: str
    messages: tuple[Mapping[str, Any], ...] = ()
    instructions: str | None = None
    tools: tuple[Mapping[str, Any], ...] = ()

    @classmethod
    def read(cls, info: Mapping[str, Any]) -> "TurnInfo":
        """The record behind Gymnasium's `info` dictionary; a missing key raises KeyError."""
        admissible = info["admissible"]
        return cls(
            task=info["task"],
            turn=info["turn"],
            score=info["score"],
            max_score=info["max_score"],
            success=info["success"],
            outcome=info["outcome"],
            valid=info["valid"],
            admissible=None if admissible is None else tuple(admissible),
            state_key=info["state_key"],
            start_key=info["start_key"],
            messages=tuple(info["messages"]),
            instructions=info.get("instructions"),
            tools=tuple(info.get("tools", ())),
        )


@dataclass(frozen=True, slots=True)
class Span:
    """Tokens start..end-1 of a segment, all written by one author in one turn (-1: before the first)."""

    start: int
    end: int
    turn: int
    author: Author


@dataclass(frozen=True, slots=True)
class Segment:
    """One exact chain of tokens: each sampled token stands under the prefix it was sampled under.

    Attributes:
        token_ids: (T,) ids as sampled or encoded, never decoded and encoded again.
        log_probs: (T,) natural log of the sampled token's probability; 0.0 where no policy sampled it.
        spans: authorship; together they cover all T tokens in order.
    """

    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class PlayedTurn:
    """One agent message and the environment's reply to it."""

    command: str
    observation: str
    reward: float
    score: float
    valid: bool
    author: Author
    thought: str = ""
    finish_reason: str = "stop"
    latency_s: float = 0.0


@dataclass(frozen=True, slots=True)
class Episode:
    """One attempt at one task, and its whole record.

    Attributes:
        number: unique within its file or rollout; names the sampler's stream.
        group: episodes of one group share task and start.
        observation: the first one; the replies stand in `turns`.
        error: what failed, for `env_fault` and `infra`.

    Example:
        >>> import turngym
        >>> (episode,) = turngym.play("Rooms-v0", agent="expert")
        >>> episode.success, episode.outcome, len(episode.turns) > 0
        (True, 'won', True)
    """

    number: int
    group: int
    env_id: str
    env_kwargs: Mapping[str, Any]
    task: str
    seed: int
    attempt: int
    agent: str
    instructions: str
    observation: str
    turns: tuple[PlayedTurn, ...]
    outcome: Outcome
    score: float
    max_score: float
    start_key: str
    segments: tuple[Segment, ...] = ()
    weights_version: int = 0
    error: str = ""

    @property
    def success(self) -> bool:
        """True only when the environment said solved."""
        return self.outcome == "won"

    @property
    def episode_return(self) -> float:
        """Undiscounted sum of the turn rewards."""
        return sum(turn.reward for turn in self.turns)


@dataclass(frozen=True, slots=True)
class Demonstration:
    """An episode as text, for SFT: observations[t] comes before commands[t].

    Example:
        >>> Demonstration("7", "Guess my digit.", ("From 0 to 9?",), ("guess 4",)).commands
        ('guess 4',)
    """

    task: str
    instructions: str
    observations: tuple[str, ...]
    commands: tuple[str, ...]
    authors: tuple[Author, ...] = field(default=())


_MOST_DIGITS = 100


class TaskRange(Sequence[str]):
    """Lazy sequence of task ids `prefix + number` for the numbers of a range.

    Example:
        >>> tasks = TaskRange("small/", range(1_000_000))
        >>> len(tasks), tasks[7], "small/7" in tasks, "small/07" in tasks
        (1000000, 'small/7', True, False)
    """

    __slots__ = ("numbers", "prefix")

    def __init__(self, prefix: str, numbers: range) -> None:
        self.prefix = prefix
        self.numbers = numbers

    def __len__(self) -> int:
        return len(self.numbers)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> "TaskRange": ...
    def __getitem__(self, index: int | slice) -> "str | TaskRange":
        if isinstance(index, slice):
            return TaskRange(self.prefix, self.numbers[index])
        return f"{self.prefix}{self.numbers[index]}"

    def __contains__(self, task: object) -> bool:
        if not isinstance(task, str) or not task.startswith(self.prefix):
            return False
        tail = task[len(self.prefix) :]
        if len(tail) > _MOST_DIGITS or not tail.removeprefix("-").isdecimal():
            return False
        return str(int(tail)) == tail and int(tail) in self.numbers

    def __repr__(self) -> str:
        return f"TaskRange({self.prefix!r}, {self.numbers!r})"
