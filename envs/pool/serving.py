"""The environments of one process: how each call is answered."""

import logging
import time
import traceback
from collections.abc import Sequence

from turngym.envs.base import TurnEnv
from turngym.envs.pool.contract import CALLER_ERRORS, Call, EnvRef, Fault, Reply
from turngym.errors import InfraError, TurngymError
from turngym.types import TurnInfo

logger = logging.getLogger(__name__)


class EnvServer:
    """Gives each episode an environment of its own; a released one serves the next."""

    def __init__(self) -> None:
        self._serving: dict[int, tuple[str, TurnEnv]] = {}
        self._free: dict[str, list[TurnEnv]] = {}

    def answer(self, call: Call) -> Reply:
        """Carries out a call; what the environment raises comes back as a fault, but for the caller's errors.

        Raises:
            ConfigError, TaskError, MissingExtraError: as the environment raised them.
        """
        try:
            return answer(self._env_for(call), call)
        except CALLER_ERRORS:
            raise
        except Exception as error:  # noqa: BLE001 - the border to the environment's code
            fault = fault_of(error)
            serving = self._serving.pop(call.key.episode, None)
            if serving is not None:
                close_faulty(serving[1])
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
            env.close()

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
        self._tasks: dict[str, set[str]] = {}

    def once(self, env: EnvRef, tasks: Sequence[str]) -> None:
        """Lets an environment make ahead those of the tasks that it hasn't yet."""
        done = self._tasks.setdefault(env.key, set())
        missing = [task for task in tasks if task not in done]
        if missing:
            made = env.make()
            made.prepare(missing)
            made.close()
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


def fault_of(error: Exception) -> Fault:
    """What is kept of an exception."""
    text = f"{type(error).__name__}: {error}" if not isinstance(error, TurngymError) else str(error)
    return Fault(isinstance(error, InfraError), text, "".join(traceback.format_exception(error)))


def no_environment(episode: int) -> str:
    """What a call of an episode is told whose environment is gone."""
    return f"Episode {episode} has no environment. It was released too early, or its worker is gone."


def close_faulty(env: TurnEnv) -> None:
    """Closes an environment that failed; that this fails too is only logged."""
    try:
        env.close()
    except Exception as error:  # noqa: BLE001 - the border to the environment's code
        logger.warning("Closing a %s after its episode failed too: %s", type(env).__name__, error)
