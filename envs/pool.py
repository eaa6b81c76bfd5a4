"""The pool through which every rollout reaches its environments, and its inline form for cheap ones."""

import logging
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from turngym.envs.base import TurnEnv
from turngym.envs.registration import make_turn_env
from turngym.errors import ConfigError, InfraError, MissingExtraError, TaskError, TurngymError
from turngym.types import TurnInfo

logger = logging.getLogger(__name__)

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

    def prepare(self, tasks: Sequence[str]) -> None:
        """Makes ahead what these tasks need, so that no episode waits for it."""
        env = self.make()
        env.prepare(tasks)
        env.close()

    def make(self, *, list_commands: bool = False) -> TurnEnv:
        """A new environment, without the list of admissible commands unless asked for."""
        env = self.factory(**self.kwargs) if self.factory else make_turn_env(self.env_id, **self.kwargs)
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
    """A reset (turn 0: `task` and `seed` count) or a step (`command` counts)."""

    key: Key
    env: EnvRef
    task: str = ""
    seed: int = 0
    command: str = ""
    wants: Wants = field(default_factory=Wants)


@dataclass(frozen=True, slots=True)
class Fault:
    """A failure that is not the agent's: `infra` for our own, else an exception of the environment."""

    infra: bool
    text: str
    details: str = ""


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


class EnvPool(Protocol):
    """Environments behind one interface, whether inline or in worker processes."""

    def submit(self, call: Call) -> None:
        """Takes a call; its reply comes from a later `poll`."""

    def poll(self) -> list[Reply]:
        """Replies that have arrived, waiting for at least one while any call is open; [] when none is."""

    def release(self, episode: int) -> None:
        """The episode is over; its environment may serve another."""

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        """Turn and fault that the same calls meet in a fresh environment; None when they meet none."""

    def close(self) -> None:
        """Ends all environments."""


class InlinePool:
    """The pool with no workers: calls run in this process, one after the other, in the order submitted."""

    def __init__(self) -> None:
        self._waiting: list[Call] = []
        self._serving: dict[int, tuple[str, TurnEnv]] = {}
        self._free: dict[str, list[TurnEnv]] = {}

    def submit(self, call: Call) -> None:
        self._waiting.append(call)

    def poll(self) -> list[Reply]:
        calls, self._waiting = self._waiting, []
        return [self._answer(call) for call in calls]

    def release(self, episode: int) -> None:
        serving = self._serving.pop(episode, None)
        if serving is not None:
            self._free.setdefault(serving[0], []).append(serving[1])

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        turn, fresh = 0, None
        try:
            fresh = env.make(list_commands=wants.admissible)
            for turn, command in enumerate(["", *commands]):
                answer(fresh, Call(Key(0, 0, turn), env, task, seed, command, wants))
        except Exception as error:  # noqa: BLE001 - the border to the environment's code
            return turn, fault_of(error)
        finally:
            if fresh is not None:
                _close_faulty(fresh)
        return None

    def close(self) -> None:
        for env in [env for _, env in self._serving.values()] + [
            e for free in self._free.values() for e in free
        ]:
            env.close()
        self._serving, self._free = {}, {}

    def _answer(self, call: Call) -> Reply:
        try:
            return answer(self._env_for(call), call)
        except CALLER_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - the border to the environment's code
            fault = fault_of(error)
            serving = self._serving.pop(call.key.episode, None)
            if serving is not None:
                _close_faulty(serving[1])
            return Reply(call.key, fault=fault)

    def _env_for(self, call: Call) -> TurnEnv:
        serving = self._serving.get(call.key.episode)
        if call.key.turn > 0:
            if serving is None:
                raise InfraError(f"Episode {call.key.episode} has no environment. It was released too early.")
            return serving[1]
        if serving is not None:
            self.release(call.key.episode)
        kind = call.env.key
        free = self._free.get(kind)
        env = free.pop() if free else call.env.make()
        env.list_commands = call.wants.admissible
        self._serving[call.key.episode] = (kind, env)
        return env


def answer(env: TurnEnv, call: Call) -> Reply:
    """Carries out a call, with the expert's part where the agent wants it; passes on what it raises."""
    started = time.perf_counter()
    reward = 0.0
    if call.key.turn == 0:
        observation, info = env.reset(seed=call.seed, options={"task": call.task})
    else:
        observation, reward, _, _, info = env.step(call.command)
    latency_s = time.perf_counter() - started
    read = TurnInfo.read(info)
    expert = call.wants.plan and read.outcome == "running"
    return Reply(
        call.key,
        observation,
        reward,
        read,
        plan=tuple(env.plan()) if expert else (),
        inquiry=env.inquire() if expert else "",
        command_words=env.command_words if expert else frozenset(),
        latency_s=latency_s,
    )


def fault_of(error: Exception) -> Fault:
    """What is kept of an exception."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, TurngymError) else str(error)
    return Fault(isinstance(error, InfraError), text, "".join(traceback.format_exception(error)))


def _close_faulty(env: TurnEnv) -> None:
    try:
        env.close()
    except Exception as error:  # noqa: BLE001 - the border to the environment's code
        logger.warning("Closing a %s after its episode failed too: %s", type(env).__name__, error)


def make_pool(*, workers: int = 0) -> EnvPool:
    """The pool for a number of worker processes; 0 runs the environments inline."""
    if workers:
        raise ConfigError(f"workers = {workers}: this version runs environments inline. Set workers: 0.")
    return InlinePool()
