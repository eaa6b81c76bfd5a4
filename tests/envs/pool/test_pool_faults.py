"""Workers that hang, die, grow or start things: the others go on, and nothing is left behind."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from itertools import product
from pathlib import Path

import pytest

from turngym.envs.pool import Call, EnvRef, Key, PoolLimits, ProcessPool, Reply, Wants

FAULTY = EnvRef("faulty_env:toy/Faulty-v0")
HERE = Path(__file__).parent
SOURCE = HERE.parents[2] / "src"
DEADLINE = PoolLimits(
    deadline_s=3.0
)  # Long against a slow machine's reset, short against the hour of a hang.

WaitFor = Callable[[Callable[[], bool]], None]
Running = Callable[[int], bool]


@contextmanager
def pool_of(workers: int, limits: PoolLimits | None = None) -> Iterator[ProcessPool]:
    pool = ProcessPool(workers, limits=limits, envs=[FAULTY])
    try:
        yield pool
    finally:
        pool.close()


def begin(episode: int, attempt: int = 0) -> Call:
    return Call(Key(episode, attempt, 0), FAULTY, task="faulty/1", seed=7)


def say(episode: int, command: str, turn: int = 1, attempt: int = 0) -> Call:
    return Call(Key(episode, attempt, turn), FAULTY, command=command)


def ask(pool: ProcessPool, *calls: Call) -> list[Reply]:
    for call in calls:
        pool.submit(call)
    replies: dict[Key, Reply] = {}
    while len(replies) < len(calls):
        arrived = pool.poll()
        assert arrived
        for reply in arrived:
            assert reply.key not in replies, "a reply came twice"
            replies[reply.key] = reply
    return [replies[call.key] for call in calls]


def process_of(reply: Reply) -> int:
    found = re.search(r"process (\d+)|Started (\d+)", reply.observation)
    assert found is not None, reply
    return int(found[1] or found[2])


def counted(pool: ProcessPool) -> dict[str, int]:
    """Counts that are not zero, but for the processes started."""
    assert pool.counts is not None
    return {name: count for name, count in asdict(pool.counts).items() if count and name != "started"}


def fault_text(reply: Reply) -> tuple[bool, str]:
    assert reply.fault is not None and reply.fault.worker_lost
    return reply.fault.infra, reply.fault.text


def test_a_worker_killed_in_mid_episode_costs_its_own_episodes_only(running: Running) -> None:
    with pool_of(2) as pool:
        first, second, third = ask(pool, begin(0), begin(1), begin(2))
        assert process_of(first) == process_of(third)
        os.kill(process_of(first), signal.SIGKILL)
        killed, fine = ask(pool, say(0, "go"), say(1, "go"))
        # The call that ran is to be judged by replay. One that came later finds no environment.
        assert fault_text(killed) == (False, "Its worker process ended (SIGKILL).")
        assert fine.fault is None
        assert fault_text(ask(pool, say(2, "go"))[0])[0]
        again = ask(pool, begin(0, 1), begin(2, 1))
        assert all(reply.fault is None for reply in again)
        assert process_of(second) not in {process_of(again[0])}
        assert counted(pool) == {"died": 1}
        assert not running(process_of(first)) and running(process_of(second))


def test_a_call_that_hangs_is_ended_at_the_deadline_and_what_waited_behind_it_is_ours() -> None:
    with pool_of(2, DEADLINE) as pool:
        ask(pool, begin(0), begin(1), begin(2))
        hung, fine, behind = ask(pool, say(0, "hang"), say(1, "go"), say(2, "go"))
        assert fault_text(hung) == (False, "No answer in 3 s (the deadline).")
        assert fault_text(behind) == (True, "Lost with its worker: No answer in 3 s (the deadline).")
        assert fine.fault is None
        assert ask(pool, say(1, "go", 2))[0].fault is None
        assert counted(pool) == {"killed": 1, "deadline_misses": 1}


@pytest.mark.parametrize(("how", "name"), [("die", "SIGSEGV"), ("exit", "exit code 3")])
def test_how_a_worker_ended_is_told(how: str, name: str) -> None:
    with pool_of(1) as pool:
        ask(pool, begin(0))
        assert fault_text(ask(pool, say(0, how))[0]) == (False, f"Its worker process ended ({name}).")


def test_a_replay_judges_in_a_worker_of_its_own_with_the_deadline(tmp_path: Path) -> None:
    with pool_of(1, DEADLINE) as pool:
        (reply,) = ask(pool, begin(0))
        seen: dict[str, object] = {}
        once = tmp_path / "once"
        for command in ("raise bug", "hang", "die", f"die {once}", "raise task", "go"):
            found = pool.replay(FAULTY, "faulty/1", 7, ["go", command, "go"], Wants())
            seen[command.partition("/")[0]] = found and (found[0], found[1].text)
        assert seen == {
            "raise bug": (2, "ZeroDivisionError: lamp"),
            "hang": (2, "No answer in 3 s (the deadline)."),
            "die": (2, "Its worker process ended (SIGSEGV)."),
            "die ": (2, "Its worker process ended (SIGSEGV)."),
            "raise task": (2, "No task of that name. They look like 'faulty/7'."),
            "go": None,
        }
        assert pool.replay(FAULTY, "faulty/1", 7, ["go", f"die {once}"], Wants()) is None
        # The episode under way has kept its worker and its environment.
        (reply,) = ask(pool, say(0, "go"))
        assert reply.fault is None and reply.info is not None and reply.info.turn == 1


def test_replies_that_arrive_during_a_replay_are_kept() -> None:
    with pool_of(1) as pool:
        ask(pool, begin(0), begin(1))
        pool.submit(say(0, "go"))
        pool.submit(say(1, "look"))
        assert pool.replay(FAULTY, "faulty/1", 7, ["go"], Wants()) is None
        replies: list[Reply] = []
        while arrived := pool.poll():
            replies += arrived
        assert sorted(reply.key for reply in replies) == [Key(0, 0, 1), Key(1, 0, 1)]
        assert not [reply.fault for reply in replies if reply.fault]


def test_a_worker_that_grew_is_replaced_when_its_episodes_are_over(
    running: Running, wait_for: WaitFor
) -> None:
    # Megabytes of this interpreter with Gymnasium: about 45; what is held here stays under the hard limit.
    with pool_of(1, PoolLimits(memory_mb=200)) as pool:
        first, second = ask(pool, begin(0), begin(1))
        old = process_of(first)
        assert process_of(second) == old
        ask(pool, say(0, "grow 180"))
        pool.release(0)
        (third,) = ask(pool, begin(2))
        assert process_of(third) != old
        assert ask(pool, say(1, "go"))[0].fault is None
        assert running(old)
        pool.release(1)
        wait_for(lambda: not running(old))
        assert counted(pool) == {"recycled": 1}


def test_a_worker_that_grows_past_twice_the_limit_is_killed() -> None:
    with pool_of(1, PoolLimits(memory_mb=100)) as pool:
        ask(pool, begin(0), begin(1))
        grown, behind = ask(pool, say(0, "swell 300"), say(1, "go"))
        assert fault_text(grown) == (False, "Its worker process grew past 200 MB.")
        assert fault_text(behind)[0]
        assert counted(pool) == {"killed": 1}


def test_a_worker_is_replaced_after_a_number_of_episodes() -> None:
    with pool_of(1, PoolLimits(episodes=2)) as pool:
        processes = []
        for number in range(5):
            processes += [process_of(reply) for reply in ask(pool, begin(number))]
            pool.release(number)
        assert [processes.index(process) for process in processes] == [0, 0, 2, 2, 4]
        assert counted(pool) == {"recycled": 2}


@pytest.mark.parametrize(
    ("how", "end"), [("apart", "hang"), *product(["together", "apart", "orphan"], ["die", "close"])]
)
def test_what_an_environment_started_ends_with_its_worker(
    how: str, end: str, running: Running, wait_for: WaitFor
) -> None:
    with pool_of(1, DEADLINE) as pool:
        ask(pool, begin(0))
        (reply,) = ask(pool, say(0, f"start {how}"))
        assert running(process_of(reply))
        if end == "close":
            pool.close()
        else:
            assert fault_text(ask(pool, say(0, end, 2))[0])[1].startswith(("No answer", "Its worker"))
        wait_for(lambda: not running(process_of(reply)))


def test_workers_end_likewise_where_python_cannot_wait_without_reaping(
    monkeypatch: pytest.MonkeyPatch, running: Running, wait_for: WaitFor
) -> None:
    monkeypatch.delattr(os, "waitid")  # As on macOS before Python 3.13.
    with pool_of(1) as pool:
        ask(pool, begin(0))
        (started,) = ask(pool, say(0, "start together"))
        assert fault_text(ask(pool, say(0, "die", 2))[0])[1] == "Its worker process ended (SIGSEGV)."
        (reply,) = ask(pool, begin(0, 1))
    wait_for(lambda: not running(process_of(started)) and not running(process_of(reply)))


def test_a_long_history_for_a_worker_that_reads_nothing_does_not_block() -> None:
    with pool_of(1, DEADLINE) as pool:
        ask(pool, begin(0), begin(1))
        pool.submit(say(0, "hang"))
        calls = [say(1, "x" * 100_000, turn) for turn in range(1, 60)]  # More than any pipe holds.
        assert all(fault_text(reply)[0] for reply in ask(pool, *calls))


# Ends of the whole program, each in a process of its own.

PROGRAM = """
import os, signal, sys
sys.path.insert(0, {here!r})
{setting}
from turngym.envs.pool import Call, EnvRef, Key, ProcessPool
ref = EnvRef("faulty_env:toy/Faulty-v0")
pool = ProcessPool(2, envs=[ref])
try:
    for number in range(2):
        pool.submit(Call(Key(number, 0, 0), ref, task="faulty/1"))
    answers = []
    while len(answers) < 2:
        answers += pool.poll()
    print(*[answer.observation.split()[-1].rstrip(".") for answer in answers], flush=True)
    pool.submit(Call(Key(0, 0, 1), ref, command={command!r}))
    pool.poll()
    print("went on", flush=True)
finally:
    pool.close()
"""


@contextmanager
def program(command: str, setting: str = "") -> Iterator[tuple["subprocess.Popen[str]", list[int]]]:
    """A program whose pool has one idle worker and one that carries out a command; and the numbers of both."""
    child = subprocess.Popen(
        [sys.executable, "-c", PROGRAM.format(here=str(HERE), command=command, setting=setting)],
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    workers: list[int] = []
    try:
        assert child.stdout is not None
        workers += [int(word) for word in child.stdout.readline().split()]
        yield child, workers
    finally:
        child.kill()
        for worker in workers:
            with suppress(OSError):
                if b"turngym.envs.pool" in Path(f"/proc/{worker}/cmdline").read_bytes():
                    os.kill(worker, signal.SIGKILL)
        child.communicate()


@pytest.mark.parametrize(
    ("command", "setting"),
    [
        ("hang", ""),
        ("hold", ""),
        ("hold", "signal.signal(signal.SIGIO, signal.SIG_IGN)"),
        ("hold", "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGIO])"),
    ],
)
def test_workers_end_with_the_program_even_when_it_is_killed(
    command: str, setting: str, running: Running, wait_for: WaitFor
) -> None:
    with program(command, setting) as (child, workers):
        assert len(workers) == 2 and all(map(running, workers))
        child.kill()
        wait_for(lambda: not any(map(running, workers)))


def test_a_stopped_worker_ends_with_the_program_too(running: Running, wait_for: WaitFor) -> None:
    with program("hang") as (child, workers):
        for worker in workers:
            os.kill(worker, signal.SIGSTOP)
        child.kill()
        wait_for(lambda: not any(map(running, workers)))


def test_ctrl_c_ends_the_program_and_its_workers_without_a_word_of_theirs(
    running: Running,
) -> None:
    with program("hang") as (child, workers):
        os.killpg(child.pid, signal.SIGINT)  # As the terminal does.
        for worker in workers:
            if running(worker):
                os.kill(worker, signal.SIGINT)  # Even if it should reach them.
        _, said = child.communicate(timeout=60)
        assert said.count("Traceback") == 1 and said.rstrip().endswith("KeyboardInterrupt")
        assert not any(map(running, workers))


# The worker is killed just before the command is written to it.
KILL = """
from turngym.envs.pool.process import WorkerProcess
send = WorkerProcess.send
def send_late(self, message):
    if getattr(message, "command", "") == "die":
        os.kill(self.pid, signal.SIGKILL)
        os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
    send(self, message)
WorkerProcess.send = send_late
"""


def test_a_worker_that_is_gone_ends_no_program_that_gave_sigpipe_its_old_meaning() -> None:
    setting = "signal.signal(signal.SIGPIPE, signal.SIG_DFL)"
    with program("die", setting + KILL) as (child, _):
        said, _ = child.communicate(timeout=60)
        assert (said, child.returncode) == ("went on\n", 0)
