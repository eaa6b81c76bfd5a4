"""The pool without worker processes."""

import re
from typing import Any

import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import Call, EnvRef, Fault, InlinePool, Key, Reply, Wants
from turngym.errors import ConfigError, InfraError, MissingExtraError, TaskError
from turngym.types import Turn


def begin(ref: EnvRef, episode: int = 0, *, task: str = "vault/3", attempt: int = 0, **wants: bool) -> Call:
    return Call(Key(episode, attempt, 0), ref, task=task, seed=7, wants=Wants(**wants))


def say(ref: EnvRef, command: str, *, turn: int = 1, episode: int = 0, **wants: bool) -> Call:
    return Call(Key(episode, 0, turn), ref, command=command, wants=Wants(**wants))


def ask(pool: InlinePool, *calls: Call) -> list[Reply]:
    for call in calls:
        pool.submit(call)
    return pool.poll()


def failing(vault: type[TurnEnv], error: BaseException, *, where: str = "act") -> type[TurnEnv]:
    """The vault, but `smash` (or all of `where`) raises."""

    def act(self: Any, command: str) -> Turn:
        if command == "smash":
            raise error
        return vault.act(self, command)

    def always(self: Any, *args: Any) -> Any:
        raise error

    return type("Failing", (vault,), {where: act if where == "act" else always})


def test_replies_answer_each_call_under_its_key(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(vault)
    replies = ask(pool, begin(ref, 4), begin(ref, 2, task="vault/9"))
    assert [(reply.key, reply.info and reply.info.task) for reply in replies] == [
        (Key(4, 0, 0), "vault/3"),
        (Key(2, 0, 0), "vault/9"),
    ]
    assert pool.poll() == []
    (reply,) = ask(pool, say(ref, "turn red", episode=2))
    assert reply.info is not None and (reply.info.task, reply.info.turn) == ("vault/9", 1)
    assert reply.latency_s >= 0 and reply.fault is None


def test_only_what_is_wanted_is_computed(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(vault)
    plain, wanting = ask(pool, begin(ref, 0), begin(ref, 1, admissible=True, plan=True))
    assert plain.info is not None and wanting.info is not None
    assert (plain.info.admissible, plain.plan, plain.inquiry) == (None, (), "")
    assert wanting.info.admissible == ("read", "turn blue", "turn green", "turn red")
    assert (len(wanting.plan), wanting.inquiry) == (2, "read")
    assert wanting.command_words == {"read", "turn", "smash"}
    (ended,) = ask(pool, say(ref, "smash", episode=1, plan=True))
    assert ended.info is not None and (ended.info.outcome, ended.plan) == ("lost", ())


def test_a_released_environment_serves_another_episode(vault: type[TurnEnv]) -> None:
    made: list[TurnEnv] = []

    def factory() -> TurnEnv:
        made.append(vault())
        return made[-1]

    pool, ref = InlinePool(), EnvRef("vault", factory=factory)
    ask(pool, begin(ref, 0), begin(ref, 1))
    pool.release(0)
    ask(pool, begin(ref, 2), begin(ref, 1, attempt=1))
    assert len(made) == 2
    pool.release(99)


def test_an_error_of_the_environment_is_a_fault_with_its_traceback(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, ZeroDivisionError("lamp")))
    ask(pool, begin(ref))
    (reply,) = ask(pool, say(ref, "smash"))
    assert reply.fault is not None and not reply.fault.infra
    assert reply.fault.text == "ZeroDivisionError: lamp"
    assert "Traceback" in reply.fault.details and "in act" in reply.fault.details


def test_infra_errors_are_told_apart_and_a_lost_environment_is_one(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, InfraError("The sandbox died.")))
    ask(pool, begin(ref))
    (reply,) = ask(pool, say(ref, "smash"))
    assert reply.fault is not None and reply.fault.infra and reply.fault.text == "The sandbox died."
    (lost,) = ask(pool, say(ref, "read", turn=2))
    assert lost.fault is not None and lost.fault.infra


def test_a_faulty_environment_is_closed_and_never_used_again(vault: type[TurnEnv]) -> None:
    closed: list[Any] = []
    kind = failing(vault, ValueError("x"))
    ref = EnvRef.of(type("Closing", (kind,), {"close": lambda self: closed.append(self)}))
    pool = InlinePool()
    ask(pool, begin(ref), say(ref, "smash"))
    assert len(closed) == 1
    pool.release(0)
    ask(pool, begin(ref, 1))
    pool.close()
    assert len(set(map(id, closed))) == 2


@pytest.mark.parametrize(
    "error", [ConfigError("wrong"), TaskError("no task"), MissingExtraError("pip install x")]
)
def test_what_the_caller_can_mend_stops_the_run(vault: type[TurnEnv], error: Exception) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, error, where="load"))
    pool.submit(begin(ref))
    with pytest.raises(type(error), match=re.escape(str(error))):
        pool.poll()


def test_replay_finds_the_same_fault_at_the_same_turn(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, ZeroDivisionError("lamp")))
    found = pool.replay(ref, "vault/3", 7, ["read", "smash"], Wants())
    assert found is not None
    assert (found[0], found[1].text) == (2, "ZeroDivisionError: lamp")
    assert pool.replay(ref, "vault/3", 7, ["read", "read"], Wants()) is None


@pytest.mark.parametrize(
    ("where", "wants"), [("plan", Wants(plan=True)), ("commands", Wants(admissible=True)), ("load", Wants())]
)
def test_replay_asks_for_what_the_agent_wanted(vault: type[TurnEnv], where: str, wants: Wants) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, KeyError("north"), where=where))
    found = pool.replay(ref, "vault/3", 7, [], wants)
    assert found is not None and found[0] == 0
    if where != "load":
        assert pool.replay(ref, "vault/3", 7, [], Wants()) is None


def test_replay_leaves_episodes_under_way_alone(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(vault)
    ask(pool, begin(ref))
    pool.replay(ref, "vault/3", 7, ["smash"], Wants())
    (reply,) = ask(pool, say(ref, "read"))
    assert reply.info is not None and reply.info.outcome == "running"


def test_sys_exit_in_an_environment_is_a_fault_of_it(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, SystemExit(4)))
    (_, reply) = ask(pool, begin(ref), say(ref, "smash"))
    assert reply.fault is not None and (reply.fault.infra, reply.fault.text) == (False, "SystemExit: 4")
    found = pool.replay(ref, "vault/3", 7, ["smash"], Wants())
    assert found is not None and found[1].is_like(reply.fault)


def test_a_fault_is_like_another_whatever_the_addresses_in_it() -> None:
    assert Fault(False, "KeyError: <Lamp at 0x7f0b1c>").is_like(Fault(False, "KeyError: <Lamp at 0xa1>"))
    assert not Fault(False, "KeyError: lamp").is_like(Fault(False, "KeyError: door"))


def test_an_error_of_one_call_loses_no_other(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(failing(vault, TaskError("no task")))
    ask(pool, begin(ref, 0), begin(ref, 1), begin(ref, 2))
    for number, command in enumerate(["read", "smash", "read"]):
        pool.submit(say(ref, command, episode=number))
    with pytest.raises(TaskError):
        pool.poll()
    assert [reply.key.episode for reply in pool.poll()] == [0, 2]
    assert pool.poll() == []


def test_what_was_given_up_is_not_carried_out(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(vault)
    ask(pool, begin(ref, 0), begin(ref, 1))
    pool.submit(say(ref, "read", episode=0))
    pool.submit(say(ref, "read", episode=1))
    pool.release(0)
    assert [reply.key for reply in ask(pool, begin(ref, 1))] == [Key(1, 0, 0)]


def test_an_environment_that_cannot_be_closed_keeps_no_other_open(
    vault: type[TurnEnv], caplog: pytest.LogCaptureFixture
) -> None:
    closed: list[int] = []

    class Stuck(vault):  # type: ignore[valid-type, misc]
        def close(self) -> None:
            closed.append(len(closed))
            raise OSError("The door is stuck.")

    pool, ref = InlinePool(), EnvRef.of(Stuck)
    ask(pool, begin(ref, 0), begin(ref, 1), begin(ref, 2))
    pool.release(1)
    pool.close()
    assert closed == [0, 1, 2] and "The door is stuck." in caplog.text


def test_a_closed_pool_says_so(vault: type[TurnEnv]) -> None:
    pool, ref = InlinePool(), EnvRef.of(vault)
    pool.submit(begin(ref))
    pool.close()
    pool.close()
    pool.release(0)
    for use in (
        lambda: pool.submit(begin(ref)),
        pool.poll,
        lambda: pool.prepare(ref, ["vault/3"]),
        lambda: pool.replay(ref, "vault/3", 7, [], Wants()),
    ):
        with pytest.raises(InfraError, match="This pool is closed"):
            use()
