"""CPU time of this process and its children, the running ones included."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turngym.benchmarks.speed.stopwatch import Stopwatch, running_children_s, wait_until_quiet

SPENT_S = 0.1
PROGRAM = f"""
import sys, time
while time.process_time() < {SPENT_S}: pass
print("spent", flush=True)
sys.stdin.read()
"""

pytestmark = pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="needs /proc")


@contextmanager
def spender() -> Iterator[None]:
    """A child that has used some CPU time and now waits."""
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "spent\n"
        yield
        child.communicate()


def test_a_child_counts_while_it_runs_and_when_it_has_ended() -> None:
    watch = Stopwatch()
    with spender():
        assert running_children_s() >= SPENT_S
        assert watch.read().cpu_s >= SPENT_S
    # The system counts ended children in hundredths.
    assert watch.read().cpu_s >= SPENT_S - 0.02


def test_what_a_child_used_before_does_not_count() -> None:
    with spender():
        watch = Stopwatch()
        assert watch.read().cpu_s < SPENT_S


def test_own_work_counts() -> None:
    watch = Stopwatch()
    until = time.process_time() + SPENT_S
    while time.process_time() < until:
        pass
    elapsed = watch.read()
    assert elapsed.cpu_s >= SPENT_S
    assert elapsed.wall_s > 0


def test_waiting_children_are_quiet() -> None:
    with spender():
        assert wait_until_quiet()
        assert not wait_until_quiet(limit_s=0.0)
