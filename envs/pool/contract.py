"""What a rollout and the environments that serve it say to each other."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple, Protocol

from turngym.envs.base import TurnEnv
from turngym.envs.registration import make_turn_env
from turngym.errors import ConfigError, MissingExtraError, TaskError
from turngym.types import TurnInfo

CALLER_ERRORS = (ConfigError, TaskError, MissingExtraError)
"""What stops the run at once: no replay would judge it otherwise, and the caller can mend it."""


@dataclass(frozen=True, slots=True)
class EnvRef:
    """How to make an environment, anywhere: an id with its arguments, or a factory."""

    env_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    factory: Callable[[], TurnEnv] | None = None

    @classmethod
    def of(cls, env: "str | TurnEnv | Any | Callable[[], TurnEnv] | EnvRef", **kwargs: Any) -> "EnvRef":
        """From an id, a made environment (its spec is copied) or a factory."""
        if isinstance(env, EnvRef):
            return env
        if isinstance(env, str):
            return cls(env, kwargs)
        spec = getattr(env, "spec", None)
        if spec is not None:
            module = type(getattr(env, "unwrapped", env)).__module__
            prefix = "" if spec.id.startswith("turngym/") else f"{module}:"
            return cls(f"{prefix}{spec.id}", {**spec.kwargs, **kwargs})
        if isinstance(env, TurnEnv):
            raise ConfigError(
                f"This {type(env).__name__} has no spec to copy. Give its id, or a function that makes one."
            )
        if callable(env):
            return cls(getattr(env, "__qualname__", repr(env)), kwargs, env)
        raise ConfigError(f"{env!r} is no environment id, environment or factory.")

    @property
    def key(self) -> str:
        """Text that tells two references apart."""
        return f"{self.env_id} {sorted(self.kwargs.items())!r} {id(self.factory) if self.factory else ''}"

    def make(self, *, list_commands: bool | None = False) -> TurnEnv:
        """A new environment, without the list of admissible commands unless asked for; None leaves that alone."""
        env = self.factory(**self.kwargs) if self.factory else make_turn_env(self.env_id, **self.kwargs)
        if list_commands is not None:
            env.list_commands = list_commands
        return env


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
    """Environments behind one interface, whether inline or in worker processes."""

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
        """Ends all environments."""
