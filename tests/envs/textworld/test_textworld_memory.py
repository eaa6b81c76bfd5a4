"""Memory stays flat over many episodes: interpreters, logic and records of finished games are given back."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from turngym.agents.base import Job
from turngym.agents.rollout import play
from turngym.agents.scripted import NoisyExpertAgent
from turngym.envs.pool import EnvPool, EnvRef, make_pool
from turngym.envs.pool.offspring import descendants
from turngym.envs.textworld.games import prepare

pytestmark = [
    pytest.mark.textworld,
    pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="memory is read from /proc"),
]

TEXTWORLD = EnvRef("turngym/TextWorld-v0", {"level": "w2-o3-q4", "max_turns": 4})
BLOCK = 20
"""Episodes between two looks at the memory."""


def resident_mb(pid: int) -> float:
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def wait_for_rest(pids: set[int]) -> None:
    """Waits until processes grow no more by themselves: the spare worker starts while the others play."""
    before, now = {0: 0.0}, {pid: resident_mb(pid) for pid in pids}
    until = time.monotonic() + 60
    while before != now and time.monotonic() < until:
        time.sleep(0.5)
        before, now = now, {pid: resident_mb(pid) for pid in pids}


@contextmanager
def pool_of(workers: int) -> Iterator[tuple[EnvPool, set[int]]]:
    """A pool, and the processes that were there before it."""
    before = descendants(os.getpid())
    pool = make_pool(workers=workers, envs=[TEXTWORLD])
    try:
        yield pool, before
    finally:
        pool.close()


def growth_mb(workers: int, *, games: int, warm_up: int, episodes: int) -> dict[int, float]:
    """What each process, this one first, has grown by between the first and the last third after a warm-up.

    Each episode is of another game than the one before, so the environments load games all the time. Of each third
    the lowest figure counts: what is on its way to be collected goes up and down by some MB.
    """
    tasks = [f"custom/w2-o3-q4/{seed}" for seed in range(1, games + 1)]
    prepare(tasks, progress=False)
    sizes: dict[int, list[float]] = {}
    with pool_of(workers) as (pool, before):
        for first in range(0, warm_up + episodes, BLOCK):
            jobs = [Job(n, n, TEXTWORLD, tasks[n % games], n) for n in range(first, first + BLOCK)]
            play(jobs, pool=pool, agent=NoisyExpertAgent(noise=(0.5,)), slots=8)
            if first + BLOCK == warm_up:
                wait_for_rest(descendants(os.getpid()) - before)
            for pid in (os.getpid(), *sorted(descendants(os.getpid()) - before)):
                if first + BLOCK > warm_up:
                    sizes.setdefault(pid, []).append(resident_mb(pid))
        if pool.counts is not None:
            assert (pool.counts.started, pool.counts.died, pool.counts.recycled) == (workers + 1, 0, 0)
    third = episodes // BLOCK // 3
    return {pid: min(each[-third:]) - min(each[:third]) for pid, each in sizes.items()}


def test_memory_is_flat_over_a_hundred_episodes() -> None:
    grown = growth_mb(1, games=2, warm_up=40, episodes=60)
    assert len(grown) == 3  # This process, the worker and the spare.
    # Between the thirds lie 40 episodes; each would keep 0.4 MB of a game, or 1.7 MB of an interpreter.
    assert max(grown.values()) < 40 * 0.2, grown


@pytest.mark.full
@pytest.mark.parametrize("workers", [0, 2])
def test_memory_is_flat_over_two_thousand_episodes(workers: int) -> None:
    # Between the thirds lie 1,000 episodes, so 4 kB each: a kept game has 400 kB, an interpreter 1,700, the logic 60.
    grown = growth_mb(workers, games=6, warm_up=500, episodes=1500)
    assert max(grown.values()) < 4.0, grown
