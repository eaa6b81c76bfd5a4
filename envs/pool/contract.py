"""What a rollout and the environments that serve it say to each other."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

from turngym.envs.pool.reference import EnvRef
from turngym.errors import ConfigError, InfraError, MissingExtraError, TaskError
from turngym.types import TurnInfo

CALLER_ERRORS = (ConfigError, TaskError, MissingExtraError)
"""What stops the run at once: no replay would judge it otherwise, and the caller can mend it."""

ENV_ERRORS = (Exception, SystemExit)
"""What is caught at the border to an author's code, which must not end the run by `sys.exit` either."""

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")


@dataclass(frozen=True, slots=True)
class Wants:
    """What an agent needs beside the observation; each costs the environment some time."""

    admissible: bool = False
    plan: bool = False


class Key(NamedTuple):
    """Names one call for good, so that a late or doubled reply is never applied twice."""

    episode: int
    attempt: int
    turn: int


@dataclass(frozen=True, slots=True)
class Call:
    """A reset (turn 0: `task`, `seed` and `options` count) or a step (`command` counts).

    Attributes:
        seed: None goes on with the chance of the environment that served the episode's last attempt.
        options: of the reset, in place of the task.
    """

    key: Key
    env: EnvRef
    task: str = ""
    seed: int | None = 0
    command: str = ""
    wants: Wants = field(default_factory=Wants)
    options: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that is not the agent's.

    Attributes:
        infra: True for our own, which no replay is asked about; False where a replay must judge: an exception of
            the environment, or a worker that hung or died over this call.
        worker_lost: the worker is gone, and the episode's environment with it.
    """

    infra: bool
    text: str
    details: str = ""
    worker_lost: bool = False

    def is_like(self, other: "Fault") -> bool:
        """Whether both tell the same; addresses of objects differ each time."""
        return _ADDRESS.sub("", self.text) == _ADDRESS.sub("", other.text)


@dataclass(frozen=True, slots=True)
class Reply:
    """What came back for a call; with a fault, only key and fault mean anything."""

    key: Key
    observation: str = ""
    reward: float = 0.0
    info: TurnInfo | None = None
    plan: tuple[str, ...] = ()
    inquiry: str = ""
    command_words: frozenset[str] = frozenset()
    latency_s: float = 0.0
    fault: Fault | None = None


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """When a worker process is given up or replaced.

    Attributes:
        deadline_s: longest time that one call may take; the worker is killed at it.
        memory_mb: resident memory past which a worker gets no new episodes, and is replaced when its own are
            over; past twice as much it is killed. Watched where there is `/proc`, so on Linux.
        episodes: number of episodes after which a worker is replaced likewise.
    """

    deadline_s: float = 120.0
    memory_mb: float = 1024.0
    episodes: int = 10_000

    def __post_init__(self) -> None:
        for each in fields(self):
            if not getattr(self, each.name) > 0:
                raise ConfigError(f"{each.name} = {getattr(self, each.name)!r}: it must be above 0.")


@dataclass(frozen=True, slots=True)
class PoolCounts:
    """What happened to the worker processes.

    Attributes:
        started: processes started, the spare ones too.
        died: ended without being told to.
        killed: hung or too large.
        recycled: replaced gently, for their memory or their number of episodes.
        deadline_misses: calls that took too long.
        late_replies: replies to calls that nobody waited for any more; they were dropped.
    """

    started: int = 0
    died: int = 0
    killed: int = 0
    recycled: int = 0
    deadline_misses: int = 0
    late_replies: int = 0

    def __sub__(self, before: "PoolCounts") -> "PoolCounts":
        return PoolCounts(
            *(getattr(self, each.name) - getattr(before, each.name) for each in fields(PoolCounts))
        )


class EnvPool(Protocol):
    """Environments behind one interface, whether inline or in worker processes.

    A closed pool raises InfraError at all but `counts`, `release` and `close`.
    """

    @property
    def counts(self) -> PoolCounts | None:
        """What happened to the worker processes so far; None where there are none."""

    def prepare(self, env: EnvRef, tasks: Sequence[str]) -> None:
        """Makes ahead what these tasks need, each once, so that no episode waits for it."""

    def submit(self, call: Call) -> None:
        """Takes a call; its reply comes from a later `poll`."""

    def poll(self) -> list[Reply]:
        """Replies that have arrived, waiting for at least one while any call is open; [] when none is.

        Raises:
            ConfigError, TaskError, MissingExtraError: as the environment raised them.
            InfraError: no worker process can be started.
        """

    def release(self, episode: int) -> None:
        """The episode is over; its environment may serve another."""

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        """Turn and fault that the same calls meet in a fresh environment; None when they meet none."""

    def close(self) -> None:
        """Ends all environments; what was asked and not answered is dropped."""


def check_open(closed: bool) -> None:
    """Raises InfraError for a pool that is closed."""
    if closed:
        raise InfraError("This pool is closed. Make another.")
