"""The pool of worker processes while nothing breaks: what it answers, who serves whom, and how it ends."""

import importlib
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from turngym.envs.pool import (
    Call,
    EnvPool,
    EnvRef,
    InlinePool,
    Key,
    PoolCounts,
    PoolLimits,
    ProcessPool,
    Reply,
    Wants,
    make_pool,
)
from turngym.errors import ConfigError, InfraError, MissingExtraError, TaskError, UnknownEnvError

FAULTY = EnvRef("faulty_env:toy/Faulty-v0")
ROOMS = EnvRef("turngym/Rooms-v0", {"level": "w2-o3-q4"})


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessPool]:
    """Two workers for the tests that leave them alive."""
    pool = ProcessPool(2, envs=[FAULTY])
    yield pool
    pool.close()


@pytest.fixture
def pool(shared: ProcessPool) -> Iterator[ProcessPool]:
    yield shared
    for episode in range(20):
        shared.release(episode)


def begin(episode: int, task: str = "faulty/1", *, ref: EnvRef = FAULTY, attempt: int = 0) -> Call:
    return Call(Key(episode, attempt, 0), ref, task=task, seed=7)


def say(episode: int, command: str, turn: int = 1, *, ref: EnvRef = FAULTY, attempt: int = 0) -> Call:
    return Call(Key(episode, attempt, turn), ref, command=command)


def ask(pool: EnvPool, *calls: Call) -> list[Reply]:
    """The replies to the calls, in their order, without what depends on the clock."""
    for call in calls:
        pool.submit(call)
    replies: dict[Key, Reply] = {}
    while len(replies) < len(calls):
        arrived = pool.poll()
        assert arrived, "the pool waits for nothing"
        replies |= {reply.key: replace(reply, latency_s=0.0) for reply in arrived}
    return [replies[call.key] for call in calls]


def process_of(reply: Reply) -> int:
    """The process that answered a reset of the faulty environment."""
    found = re.search(r"process (\d+)", reply.observation)
    assert found is not None, reply
    return int(found[1])


def rounds(pool: EnvPool) -> list[Reply]:
    """Two rounds of episodes of Rooms with all that an agent may want, some of which end early."""
    wants = Wants(admissible=True, plan=True)
    tasks = ROOMS.make().tasks("train")
    told = []
    for attempt in range(2):
        replies = ask(
            pool,
            *(
                Call(Key(number, attempt, 0), ROOMS, task=tasks[number], seed=number, wants=wants)
                for number in range(5)
            ),
        )
        told += replies
        for turn in range(1, 4):
            running = [reply for reply in replies if reply.info and reply.info.outcome == "running"]
            calls = [
                Call(
                    Key(reply.key.episode, attempt, turn),
                    ROOMS,
                    wants=wants,
                    command=reply.plan[0] if reply.plan else "look",
                )
                for reply in running
            ]
            replies = ask(pool, *calls)
            told += replies
        for number in range(4):  # The fifth is begun again without a release.
            pool.release(number)
    return told


@pytest.mark.parametrize("workers", [1, 2])
def test_the_answers_are_those_of_the_inline_pool(workers: int) -> None:
    pool = ProcessPool(workers)
    try:
        assert rounds(pool) == rounds(InlinePool())
    finally:
        pool.close()


def test_episodes_begin_where_the_fewest_are_and_stay_there(pool: ProcessPool) -> None:
    processes = [process_of(reply) for reply in ask(pool, *(begin(number) for number in range(4)))]
    one, other = processes[:2]
    assert one != other
    assert processes == [one, other, one, other]
    pool.release(0)
    pool.release(2)
    assert [process_of(reply) for reply in ask(pool, begin(4), begin(5), begin(6))] == [one, one, one]
    ask(pool, *(say(number, "go") for number in (1, 3, 4)))
    (again,) = ask(pool, replace(begin(3, attempt=1), seed=None))
    assert process_of(again) == other


def test_a_reset_without_a_seed_goes_on_with_the_chance_of_its_environment(pool: ProcessPool) -> None:
    def lucks(pool: EnvPool) -> list[str]:
        calls = [begin(0), begin(1), *(replace(begin(n, attempt=1), seed=None) for n in (1, 0, 1))]
        calls[-1] = replace(calls[-1], key=Key(1, 2, 0))
        observations = [ask(pool, call)[0].observation for call in calls]
        return [text.partition("luck ")[2].partition(",")[0] for text in observations]

    assert lucks(pool) == lucks(InlinePool())
    assert len(set(lucks(InlinePool()))) > 2


def test_what_environments_print_and_read_touches_nothing(
    pool: ProcessPool, capfd: pytest.CaptureFixture[str]
) -> None:
    ask(pool, begin(0))
    (reply,) = ask(pool, say(0, "print"))
    assert reply.observation == "Printed; input was ''."
    assert capfd.readouterr().out == ""


@pytest.mark.parametrize(
    ("name", "kind"),
    [("task", TaskError), ("config", ConfigError), ("extra", MissingExtraError), ("odd", ConfigError)],
)
def test_what_the_caller_can_mend_arrives_as_it_was_raised(
    pool: ProcessPool, name: str, kind: type[Exception]
) -> None:
    original = importlib.import_module("faulty_env").ERRORS[name]
    pool.submit(begin(0, f"raise/{name}"))
    with pytest.raises(kind) as caught:
        pool.poll()
    assert type(caught.value) is kind
    assert str(caught.value) == str(original)
    (reply,) = ask(pool, begin(1))
    assert reply.fault is None


def test_an_error_of_what_was_given_up_is_raised_no_more(pool: ProcessPool) -> None:
    pool.submit(begin(0, "raise/task"))
    assert pool.replay(FAULTY, "faulty/1", 7, ["go"], Wants()) is None  # Meanwhile the error arrives.
    pool.release(0)
    (reply,) = ask(pool, begin(0, attempt=1))
    assert reply.fault is None


def test_an_unknown_id_is_told_as_without_workers(pool: ProcessPool) -> None:
    with pytest.raises(UnknownEnvError, match="Did you mean 'turngym/Rooms-v0'"):
        pool.submit(begin(0, ref=EnvRef("turngym/Roms-v0")))
    pool.submit(begin(0, ref=EnvRef("faulty_env:toy/Absent-v0")))
    with pytest.raises(UnknownEnvError, match="No environment 'faulty_env:toy/Absent-v0'"):
        pool.poll()


def test_an_exception_of_the_environment_is_a_fault_with_its_traceback(pool: ProcessPool) -> None:
    ask(pool, begin(0), begin(1))
    broken, fine = ask(pool, say(0, "raise bug"), say(1, "go"))
    assert broken.fault is not None and fine.fault is None
    assert (broken.fault.infra, broken.fault.text) == (False, "ZeroDivisionError: lamp")
    assert "in act" in broken.fault.details
    (lost,) = ask(pool, say(0, "go", 2))
    assert lost.fault is not None and lost.fault.infra and "no environment" in lost.fault.text


def test_an_answer_that_cannot_leave_its_process_is_a_fault(pool: ProcessPool) -> None:
    ref = EnvRef("faulty_env:toy/Unsendable-v0")
    (reply,) = ask(pool, replace(begin(0, ref=ref), wants=Wants(plan=True)))
    assert reply.fault is not None and not reply.fault.infra
    assert "cannot leave its process" in reply.fault.text


def test_an_answer_that_cannot_be_read_here_is_a_fault_and_jams_nothing(pool: ProcessPool) -> None:
    ref = EnvRef("faulty_env:toy/Unreadable-v0")
    for attempt in range(2):
        call = replace(begin(0, ref=ref, attempt=attempt), wants=Wants(plan=True))
        reply, fine = ask(pool, call, begin(1, attempt=attempt))
        assert reply.fault is not None and not reply.fault.infra and fine.fault is None
        assert reply.fault.text.endswith("cannot be read: LookupError: no such command")


def test_a_call_that_cannot_be_sent_is_told_and_changes_nothing(pool: ProcessPool) -> None:
    ask(pool, begin(0))
    with pytest.raises(ConfigError, match="cannot be sent to a worker process"):
        pool.submit(replace(begin(1), options={"task": lambda: "faulty/1"}))
    replies = ask(pool, say(0, "go"), begin(1), begin(2))
    assert [reply.fault for reply in replies] == [None] * 3
    assert pool.poll() == []


def test_sys_exit_in_an_environment_is_a_fault_of_it_and_costs_no_worker(pool: ProcessPool) -> None:
    before = pool.counts
    ask(pool, begin(0))
    (reply,) = ask(pool, say(0, "quit"))
    assert reply.fault is not None and (reply.fault.infra, reply.fault.text) == (False, "SystemExit: 4")
    assert pool.counts == before


def test_large_commands_and_answers_pass_each_other(pool: ProcessPool) -> None:
    """Both directions hold more than any socket does, while neither side waits for the other."""
    ask(pool, begin(0))
    large = 3_000_000
    padded = f"say {large}".ljust(500)
    calls = [say(0, f"x{'x' * large}" if turn % 2 else padded, turn) for turn in range(1, 11)]
    replies = ask(pool, *calls)
    assert [len(reply.observation) == large for reply in replies[1::2]] == [True] * 5
    assert all(reply.info and not reply.info.valid for reply in replies[::2])


def test_a_call_without_an_environment_fails_at_once(pool: ProcessPool) -> None:
    (reply,) = ask(pool, say(9, "go"))
    assert reply.fault is not None and reply.fault.infra


def test_replies_to_what_was_given_up_are_dropped_and_counted(pool: ProcessPool, tmp_path: Path) -> None:
    door = tmp_path / "door"
    before = pool.counts
    ask(pool, begin(0))
    pool.submit(say(0, f"wait {door}"))
    pool.release(0)
    door.touch()
    replies = ask(pool, begin(0, attempt=1), say(0, "go", 1, attempt=1))
    assert [reply.fault for reply in replies] == [None, None]
    assert pool.poll() == []
    assert before is not None and pool.counts is not None
    assert (pool.counts - before).late_replies == 1


def test_a_late_answer_counts_for_no_later_call_of_the_same_key(tmp_path: Path) -> None:
    door = tmp_path / "door"
    pool = ProcessPool(2, envs=[FAULTY])
    try:
        here, _, _ = ask(pool, begin(0), begin(1), begin(2))
        pool.submit(say(0, f"wait {door}"))
        pool.release(0)
        pool.release(1)
        (there,) = ask(pool, begin(0))  # The other worker has fewer episodes now.
        assert process_of(here) != process_of(there)
        door.touch()
        pool.submit(say(2, "look"))  # Answered behind the late one.
        while not any(reply.key.episode == 2 for reply in pool.poll()):
            pass
        pool.submit(say(0, "go"))
        assert [reply.observation.partition(" ")[0] for reply in pool.poll()] == ["Luck"]
        # Nor where one worker answers both.
        pool.submit(say(0, "go", 2))
        replies = ask(pool, begin(0), say(0, "look", 2))
        assert [reply.observation.partition(" ")[0] for reply in replies] == ["Start", "Nothing."]
    finally:
        pool.close()


# Beginning and end.


def test_nothing_is_left_when_the_pool_is_closed(children: Callable[[], set[int]]) -> None:
    before = children()
    pool = ProcessPool(2, envs=[FAULTY])
    ask(pool, begin(0), begin(1))
    assert len(children() - before) >= 2
    pool.close()
    assert children() <= before
    pool.close()
    pool.release(0)
    for use in (
        lambda: pool.submit(begin(0)),
        lambda: pool.submit(say(0, "go")),
        pool.poll,
        lambda: pool.prepare(FAULTY, ["faulty/1"]),
        lambda: pool.replay(FAULTY, "faulty/1", 7, [], Wants()),
    ):
        with pytest.raises(InfraError, match="This pool is closed"):
            use()
    assert children() <= before


def test_an_environment_that_cannot_be_closed_ends_its_worker_all_the_same(
    children: Callable[[], set[int]], capfd: pytest.CaptureFixture[str]
) -> None:
    before = children()
    pool = ProcessPool(1)
    ask(pool, begin(0, ref=EnvRef("faulty_env:toy/Unclosable-v0")))
    pool.close()
    assert children() <= before
    said = capfd.readouterr().err
    assert "The door is stuck." in said and "Traceback" not in said


def test_workers_that_are_busy_or_starting_are_closed_too(children: Callable[[], set[int]]) -> None:
    before = children()
    pool = ProcessPool(1)
    pool.submit(begin(0))
    pool.close()
    assert children() <= before


def test_counts_are_those_since_the_start(children: Callable[[], set[int]]) -> None:
    pool = ProcessPool(1)
    try:
        ask(pool, begin(0))
        assert pool.counts == PoolCounts(started=2)
    finally:
        pool.close()
    assert InlinePool().counts is None


@pytest.mark.parametrize("wrong", [{"deadline_s": 0.0}, {"memory_mb": -1.0}, {"episodes": 0}])
def test_limits_are_above_zero(wrong: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        PoolLimits(**wrong)


def test_make_pool_takes_no_fewer_than_no_workers() -> None:
    assert isinstance(make_pool(workers=0), InlinePool)
    wrong: list[Any] = [-1, 1.5, "2", True]
    for workers in wrong:
        with pytest.raises(ConfigError, match=re.escape(f"workers = {workers!r}")):
            make_pool(workers=workers)


def test_tasks_are_made_ahead_once(monkeypatch: pytest.MonkeyPatch, pool: ProcessPool) -> None:
    made: list[Sequence[str]] = []
    kind = importlib.import_module("faulty_env").Faulty
    monkeypatch.setattr(kind, "prepare", lambda self, tasks: made.append(tasks))
    for each in (pool, InlinePool()):
        made.clear()
        each.prepare(FAULTY, ["faulty/1", "faulty/2"])
        each.prepare(FAULTY, ["faulty/2", "faulty/3"])
        each.prepare(FAULTY, ["faulty/1"])
        assert made == [["faulty/1", "faulty/2"], ["faulty/3"]]
