"""The pool through which every rollout reaches its environments, inline or in worker processes."""

import os
from collections.abc import Sequence

from turngym.envs.pool.contract import (
    CALLER_ERRORS,
    Call,
    EnvPool,
    Fault,
    Key,
    PoolCounts,
    PoolLimits,
    Reply,
    Wants,
)
from turngym.envs.pool.inline import InlinePool
from turngym.envs.pool.processes import ProcessPool
from turngym.envs.pool.reference import EnvRef
from turngym.errors import ConfigError

__all__ = [
    "CALLER_ERRORS",
    "Call",
    "EnvPool",
    "EnvRef",
    "Fault",
    "InlinePool",
    "Key",
    "PoolCounts",
    "PoolLimits",
    "ProcessPool",
    "Reply",
    "Wants",
    "make_pool",
]


def make_pool(*, workers: int = 0, limits: PoolLimits | None = None, envs: Sequence[EnvRef] = ()) -> EnvPool:
    """The pool for a number of worker processes, which start at once; 0 runs the environments inline.

    Args:
        workers: number of processes.
        limits: when a worker is given up or replaced.
        envs: environments whose modules the workers import while they start.

    Raises:
        ConfigError: fewer than no workers, or an environment cannot be made in another process.
    """
    if isinstance(workers, bool) or not isinstance(workers, int) or workers < 0:
        raise ConfigError(f"workers = {workers!r}: give 0, or a number of processes.")
    if workers and os.name != "posix":
        raise ConfigError(f"workers = {workers}: worker processes need Linux or macOS. Set workers to 0.")
    return ProcessPool(workers, limits=limits, envs=envs) if workers else InlinePool()
