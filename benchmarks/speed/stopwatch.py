"""Wall and CPU time of this process and of those that it started, the running ones included."""

import os
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from turngym.envs.pool.offspring import descendants
from turngym.errors import MeasurementError

_QUIET_S = 0.3
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class Elapsed:
    """Seconds that went by.

    Attributes:
        wall_s: of the clock.
        cpu_s: of all cores, in user and system mode, child processes included.
    """

    wall_s: float
    cpu_s: float


class Stopwatch:
    """Runs from the moment it is made. Looking for children takes milliseconds, which it leaves out.

    Raises:
        MeasurementError: this system does not tell the CPU time of running children.
    """

    def __init__(self) -> None:
        self._children_s = running_children_s() + _ended_children_s()
        self._cpu_s, self._wall_s = time.process_time(), time.perf_counter()

    def read(self) -> Elapsed:
        """Time since the start."""
        wall_s, cpu_s = time.perf_counter() - self._wall_s, time.process_time() - self._cpu_s
        return Elapsed(wall_s, cpu_s + running_children_s() + _ended_children_s() - self._children_s)


def running_children_s() -> float:
    """CPU time of the processes below this one that are running."""
    if not Path("/proc/self/stat").exists():
        raise MeasurementError(
            "The CPU time of running child processes is read from /proc. Measure on Linux."
        )
    return sum(_clock_s(pid) for pid in descendants(os.getpid()))


def wait_until_quiet(*, limit_s: float = 60.0) -> bool:
    """Waits until no process below this one has used CPU time for 0.3 s; False where that never came.

    For what starts beside the work, such as the spare worker of a pool: it would be timed, too.
    """
    now = time.monotonic()
    end, since, used = now + limit_s, now, running_children_s()
    while now < end:
        if now - since >= _QUIET_S:
            return True
        time.sleep(_LOOK_S)
        now, before, used = time.monotonic(), used, running_children_s()
        if used != before:
            since = now
    return False


def _ended_children_s() -> float:
    times = os.times()
    return times.children_user + times.children_system


def _clock_s(pid: int) -> float:
    # The id that clock_getcpuclockid(3) gives for a process, which Python doesn't offer; /proc counts in 10 ms.
    with suppress(OSError):
        return time.clock_gettime((~pid << 3) | 2)
    return 0.0
