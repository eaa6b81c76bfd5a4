"""Workers that cannot start: the pool says so, tries no more than a few, and leaves nothing behind."""

import os
import resource
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from turngym.envs.pool import Call, EnvRef, Key, PoolCounts, ProcessPool, Reply
from turngym.envs.pool.process import WorkerProcess
from turngym.errors import InfraError

FAULTY = EnvRef("faulty_env:toy/Faulty-v0")


@contextmanager
def pool_of(workers: int, *envs: EnvRef) -> Iterator[ProcessPool]:
    pool = ProcessPool(workers, envs=[FAULTY, *envs])
    try:
        yield pool
    finally:
        pool.close()


def begin(episode: int, attempt: int = 0) -> Call:
    return Call(Key(episode, attempt, 0), FAULTY, task="faulty/1", seed=7)


def ask(pool: ProcessPool, call: Call) -> Reply:
    pool.submit(call)
    (reply,) = pool.poll()
    return reply


def counts_of(pool: ProcessPool) -> PoolCounts:
    assert pool.counts is not None
    return pool.counts


def fault_text(reply: Reply) -> tuple[bool, str]:
    assert reply.fault is not None and reply.fault.worker_lost
    return reply.fault.infra, reply.fault.text


def test_a_worker_that_cannot_start_stops_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with (
        pool_of(1) as pool,
        pytest.raises(InfraError, match=r"^3 worker .* while they started\..*exit code 1"),
    ):
        for attempt in range(10):
            assert fault_text(ask(pool, begin(0, attempt)))[0]


def test_an_interpreter_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises(InfraError, match="No worker process can be started"):
        ProcessPool(1)


def test_an_import_that_ends_each_worker_stops_the_run() -> None:
    ref = EnvRef("deadly_import:toy/Deadly-v0")
    with pool_of(1) as pool, pytest.raises(InfraError, match="^3 worker .* while they imported"):
        for attempt in range(10):
            reply = ask(pool, replace(begin(0, attempt), env=ref))
            assert fault_text(reply)[0]


def test_a_pool_that_starts_in_part_leaves_nothing_behind(children: Callable[[], set[int]]) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd"))

    ProcessPool(1).close()  # What a first pool opens for good is open now.
    before, opened = children(), descriptors()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (opened + 11, hard))
    try:
        with pytest.raises(InfraError, match="No worker process can be started: .*Too many open files"):
            ProcessPool(40)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert children() <= before
    assert descriptors() == opened


def turns(
    pool: ProcessPool, done: Callable[[], bool], wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    """Plays on until something has happened to the other workers."""
    number = 0

    def play_one() -> bool:
        nonlocal number
        number += 1
        assert ask(pool, begin(0, number)).fault is None
        return done()

    wait_for(play_one)


def test_a_spare_that_ends_again_and_again_is_given_up_and_the_others_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wait_for: Callable[[Callable[[], bool]], None],
    caplog: pytest.LogCaptureFixture,
) -> None:
    source = tmp_path / "env_of_a_while.py"
    source.write_text("from faulty_env import make_faulty as make\n", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    with pool_of(1, EnvRef("env_of_a_while:toy/Absent-v0")) as pool:
        ask(pool, begin(0))
        source.write_text("import os\nos._exit(5)\n", encoding="utf-8")
        turns(pool, lambda: "goes on without a spare" in caplog.text, wait_for)
        counts = counts_of(pool)
        assert (counts.started, counts.died) == (4, 3)
        for attempt in range(1000, 1200):
            assert ask(pool, begin(0, attempt)).fault is None
        assert counts_of(pool) == counts


def test_spares_that_are_killed_now_and_then_are_replaced(
    monkeypatch: pytest.MonkeyPatch, wait_for: Callable[[Callable[[], bool]], None]
) -> None:
    made: list[WorkerProcess] = []

    class Kept(WorkerProcess):
        def __init__(self, name: int) -> None:
            super().__init__(name)
            made.append(self)

    monkeypatch.setattr("turngym.envs.pool.crew.WorkerProcess", Kept)
    with pool_of(1) as pool:
        for deaths in range(1, 5):
            turns(pool, lambda deaths=deaths: len(made) > deaths and made[-1].has_begun, wait_for)  # type: ignore[misc]
            os.kill(made[-1].pid, 9)
            turns(pool, lambda deaths=deaths: counts_of(pool).died == deaths, wait_for)  # type: ignore[misc]


def test_a_spare_that_cannot_be_started_is_done_without(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with pool_of(1) as pool:

        def refuse(self: WorkerProcess, name: int) -> None:
            raise BlockingIOError("Resource temporarily unavailable")

        monkeypatch.setattr(WorkerProcess, "__init__", refuse)
        for attempt in range(3):
            assert ask(pool, begin(0, attempt)).fault is None
        assert caplog.text.count("goes on without a spare worker") == 1
        # One that is needed is told, and the pool can be used again where it comes to be.
        pool.submit(Call(Key(0, 2, 1), FAULTY, command="die"))
        with pytest.raises(InfraError, match="No worker process can be started: Resource"):
            pool.poll()
        monkeypatch.undo()
        (reply,) = pool.poll()
        assert fault_text(reply) == (False, "Its worker process ended (SIGSEGV).")
        assert ask(pool, begin(0, 3)).fault is None
