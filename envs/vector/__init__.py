"""Vector environments: many environments behind one `reset` and one `step`."""

from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, PoolLimits, make_pool
from turngym.envs.vector.env import PoolVectorEnv
from turngym.errors import ConfigError

__all__ = ["AUTORESET_MODES", "PoolVectorEnv", "make_vec"]

AUTORESET_MODES = {
    "next_step": AutoresetMode.NEXT_STEP,
    "same_step": AutoresetMode.SAME_STEP,
    "disabled": AutoresetMode.DISABLED,
}


def make_vec(
    env: str | gymnasium.Env[str, str] | Callable[..., TurnEnv],
    num_envs: int,
    *,
    workers: int = 0,
    autoreset_mode: str | AutoresetMode = "next_step",
    deadline_s: float = 120.0,
    **kwargs: Any,
) -> PoolVectorEnv:
    """A Gymnasium vector environment whose parts run in worker processes, or in this one.

    Resets, steps, infos and autoreset are those of `gymnasium.vector.SyncVectorEnv`. Observations are tuples of
    str of any length, and so may be the actions. A part whose worker died or took longer than `deadline_s` is
    truncated with `info["outcome"] == "infra"`; its next reset finds a new environment.

    Args:
        env: id, made environment (its spec is copied) or factory.
        num_envs: number of environments.
        workers: worker processes that share them, at most one for each; 0 runs them in this process, one after the other.
        autoreset_mode: "next_step" resets an ended part in the following step, whose action it ignores;
            "same_step" at once, with the ending in `info["final_obs"]` and `info["final_info"]`; "disabled"
            leaves it to `reset(options={"reset_mask": ...})`.
        deadline_s: longest time of one reset or step in a worker.
        kwargs: arguments of the environment.

    Raises:
        UnknownEnvError: the id is not registered.
        ConfigError: a wrong argument, or an environment that cannot be made in another process.

    Example:
        >>> import turngym
        >>> envs = turngym.make_vec("Rooms-v0", 2, level="w2-o3-q4")
        >>> observations, infos = envs.reset(seed=1)
        >>> observations, rewards, terminations, truncations, infos = envs.step(["look", "inventory"])
        >>> len(observations), rewards.shape, infos["turn"].tolist()
        (2, (2,), [1, 1])
        >>> envs.close()
    """
    if isinstance(num_envs, bool) or not isinstance(num_envs, int) or num_envs < 1:
        raise ConfigError(f"num_envs = {num_envs!r}: give a whole number of environments, 1 or more.")
    mode = AUTORESET_MODES.get(autoreset_mode) if isinstance(autoreset_mode, str) else autoreset_mode
    if not isinstance(mode, AutoresetMode):
        raise ConfigError(f"autoreset_mode = {autoreset_mode!r}: choose {', '.join(AUTORESET_MODES)}.")
    ref = EnvRef.of(env, **kwargs)
    if isinstance(workers, int):  # What else it may be, `make_pool` tells.
        workers = min(workers, num_envs)
    pool = make_pool(workers=workers, limits=PoolLimits(deadline_s=deadline_s), envs=[ref])
    try:
        return PoolVectorEnv(ref, num_envs, pool, mode)
    except BaseException:
        pool.close()
        raise
