"""References to environments: what they are made from, and which are the same."""

import gymnasium
import numpy as np
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import Call, EnvRef, InlinePool, Key
from turngym.errors import ConfigError


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


def test_arguments_are_added_to_those_of_a_reference() -> None:
    ref = EnvRef.of(EnvRef("a", {"x": 1, "y": 1}), y=2)
    assert ref == EnvRef("a", {"x": 1, "y": 2})


def test_keys_compare_plain_arguments_by_content_and_others_by_identity() -> None:
    nested = {"x": [1, {"y": (2.5, None)}]}
    assert EnvRef("a", nested).key == EnvRef("a", {"x": [1, {"y": (2.5, None)}]}).key
    assert EnvRef("a", {"x": 1}).key != EnvRef("a", {"x": True}).key
    long = np.arange(10_000)  # What is printed of it leaves out its middle.
    other = np.where(long == 5_000, 0, long)
    assert EnvRef("a", {"x": long}).key == EnvRef("a", {"x": long}).key != EnvRef("a", {"x": other}).key


def test_an_environment_never_serves_a_later_factory_at_the_same_address(vault: type[TurnEnv]) -> None:
    pool = InlinePool()
    for limit in range(1, 21):
        ref = EnvRef("vault", factory=lambda limit=limit: vault(max_turns=limit))  # type: ignore[misc]
        pool.submit(Call(Key(0, limit, 0), ref, task="vault/3"))
        (reply,) = pool.poll()
        assert reply.info is not None and f"You have {limit} turn" in (reply.info.instructions or "")
        pool.release(0)
        del ref
