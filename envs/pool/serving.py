"""The environments of one process: how each call is answered."""

import logging
import time
import traceback
from collections.abc import Hashable, Sequence

from turngym.envs.base import TurnEnv
from turngym.envs.pool.contract import CALLER_ERRORS, ENV_ERRORS, Call, Fault, Reply
from turngym.envs.pool.reference import EnvRef
from turngym.errors import InfraError, TurngymError
from turngym.types import TurnInfo

logger = logging.getLogger(__name__)


class EnvServer:
    """Gives each episode an environment of its own; a released one serves the next."""

    def __init__(self) -> None:
        self._serving: dict[int, tuple[Hashable, TurnEnv]] = {}
        self._free: dict[Hashable, list[TurnEnv]] = {}

    def answer(self, call: Call) -> Reply:
        """Carries out a call; what the environment raises comes back as a fault, but for the caller's errors.

        Raises:
            ConfigError, TaskError, MissingExtraError: as the environment raised them.
        """
        try:
            return answer(self._env_for(call), call)
        except CALLER_ERRORS:
            raise
        except ENV_ERRORS as error:
            fault = fault_of(error)
            serving = self._serving.pop(call.key.episode, None)
            if serving is not None:
                close_quietly(serving[1])
            return Reply(call.key, fault=fault)

    def release(self, episode: int) -> None:
        """Frees the environment of an episode."""
        serving = self._serving.pop(episode, None)
        if serving is not None:
            self._free.setdefault(serving[0], []).append(serving[1])

    def close(self) -> None:
        """Closes all environments."""
        free = [env for envs in self._free.values() for env in envs]
        serving = [env for _, env in self._serving.values()]
        self._serving, self._free = {}, {}
        for env in serving + free:
            close_quietly(env)

    def _env_for(self, call: Call) -> TurnEnv:
        episode = call.key.episode
        serving = self._serving.get(episode)
        if call.key.turn > 0:
            if serving is None:
                raise InfraError(no_environment(episode))
            return serving[1]
        kind = call.env.key
        if serving is not None:
            self.release(episode)  # The last one freed is the first one taken.
        free = self._free.get(kind)
        env = free.pop() if free else call.env.make()
        env.list_commands = call.wants.admissible
        self._serving[episode] = (kind, env)
        return env


class Prepared:
    """Remembers which tasks were made ahead."""

    def __init__(self) -> None:
        self._tasks: dict[Hashable, set[str]] = {}

    def once(self, env: EnvRef, tasks: Sequence[str]) -> None:
        """Lets an environment make ahead those of the tasks that it hasn't yet."""
        done = self._tasks.setdefault(env.key, set())
        missing = [task for task in tasks if task not in done]
        if missing:
            made = env.make()
            try:
                made.prepare(missing)
            finally:
                close_quietly(made)
            done.update(missing)


def answer(env: TurnEnv, call: Call) -> Reply:
    """Carries out a call, with the expert's part where the agent wants it; passes on what it raises."""
    started = time.perf_counter()
    reward = 0.0
    if call.key.turn == 0:
        options = {"task": call.task} if call.options is None else dict(call.options)
        observation, info = env.reset(seed=call.seed, options=options)
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


def fault_of(error: BaseException) -> Fault:
    """What is kept of an exception."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, TurngymError) else str(error)
    return Fault(isinstance(error, InfraError), text, "".join(traceback.format_exception(error)))


def no_environment(episode: int) -> str:
    """What a call of an episode is told whose environment is gone."""
    return f"Episode {episode} has no environment. It was released too early, or its worker is gone."


def close_quietly(env: TurnEnv) -> None:
    """Closes an environment; that this fails is only logged, since its episodes are over."""
    try:
        env.close()
    except ENV_ERRORS as error:
        logger.warning("A %s could not be closed: %s: %s", type(env).__name__, type(error).__name__, error)
