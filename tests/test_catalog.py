"""What there is."""

import sys
from typing import Any, cast

import gymnasium
import pytest
from gymnasium.envs.registration import EnvSpec

from turngym.catalog import entries, env_text, kinds
from turngym.envs.base import TurnEnv
from turngym.errors import UnknownNameError


def test_every_kind_has_entries_with_a_summary() -> None:
    for kind in kinds():
        assert entries(kind)
        assert all(entries(kind).values()), kind


def test_an_environment_is_summed_up_without_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "textworld", None)
    summary = entries("envs")["turngym/TextWorld-v0"]
    assert summary.startswith("Text games by seed")
    assert "\n" not in summary


def test_an_environment_that_is_registered_by_its_class(
    vault: type[TurnEnv], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(gymnasium.registry, "turngym/Vault-v0", EnvSpec("turngym/Vault-v0", cast(Any, vault)))
    first = "Two of three wheels open the vault, in an order that only `read` shows."
    assert entries("env")["turngym/Vault-v0"] == first
    assert env_text("Vault-v0").startswith(f"turngym/Vault-v0\n{first}\n\nA wrong wheel")


def test_an_unknown_kind_is_told() -> None:
    with pytest.raises(UnknownNameError, match="Did you mean 'suites'"):
        entries("suits")
