"""References to environments, and the inline pool."""

import re
from typing import Any

import gymnasium
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import Call, EnvRef, InlinePool, Key, Reply, Wants
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


def failing(vault: type[TurnEnv], error: Exception, *, where: str = "act") -> type[TurnEnv]:
    """The vault, but `smash` (or all of `where`) raises."""

    def act(self: Any, command: str) -> Turn:
        if command == "smash":
            raise error
        return vault.act(self, command)

    def always(self: Any, *args: Any) -> Any:
        raise error

    return type("Failing", (vault,), {where: act if where == "act" else always})


def test_a_reference_comes_from_an_id_an_environment_a_class_or_itself(vault: type[TurnEnv]) -> None:
    by_id = EnvRef.of("turngym/Rooms-v0", level="w2-o3-q4")
    assert (by_id.env_id, by_id.kwargs) == ("turngym/Rooms-v0", {"level": "w2-o3-q4"})
    made = gymnasium.make("turngym/Rooms-v0", level="w2-o3-q4")
    assert EnvRef.of(made) == EnvRef.of(made.unwrapped) == EnvRef.of(by_id) == by_id
    assert isinstance(EnvRef.of(vault, max_turns=2).make(), vault)
    assert EnvRef.of(vault, max_turns=2).make().max_turns == 2


def test_a_foreign_environment_is_referred_to_with_its_module(vault: type[TurnEnv]) -> None:
    if "toy/Vault-v0" not in gymnasium.registry:
        gymnasium.register("toy/Vault-v0", entry_point=lambda **kwargs: vault(**kwargs))
    made = gymnasium.make("toy/Vault-v0", max_turns=4)
    assert EnvRef.of(made) == EnvRef(f"{vault.__module__}:toy/Vault-v0", {"max_turns": 4})


def test_what_is_no_environment_is_refused(vault: type[TurnEnv]) -> None:
    with pytest.raises(ConfigError, match="has no spec to copy"):
        EnvRef.of(vault())
    with pytest.raises(ConfigError, match="3 is no environment id"):
        EnvRef.of(3)


def test_keys_tell_references_apart(vault: type[TurnEnv]) -> None:
    refs = [
        EnvRef("a"),
        EnvRef("b"),
        EnvRef("a", {"x": 1}),
        EnvRef("a", {"x": 2}),
        EnvRef("a", factory=vault),
    ]
    assert len({ref.key for ref in refs}) == 5
    assert EnvRef("a", {"x": 1, "y": 2}).key == EnvRef("a", {"y": 2, "x": 1}).key


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
