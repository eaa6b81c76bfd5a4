"""GAE over turns against hand computation, the definition as loops, and its laws."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.training.advantages.base import ADVANTAGES, needs_critic
from turngym.training.advantages.gae import GaeSettings, gae

Credit = Literal["turn", "episode"]
Ragged = Callable[[int], dict[str, Tensor]]
SEEDS = st.integers(0, 10**6)
few = settings(max_examples=40, deadline=None, derandomize=True)
NAN = float("nan")


def with_critic(ragged: Ragged, seed: int) -> dict[str, Tensor]:
    columns = ragged(seed)
    del columns["group"]
    rng = np.random.default_rng(seed + 1)
    values = torch.from_numpy(rng.normal(size=columns["mask"].shape))
    columns["values"] = torch.where(columns["mask"], values, NAN)
    columns["bootstrap"] = torch.from_numpy(
        rng.normal(size=len(values)) * rng.integers(0, 2, size=len(values))
    )
    return columns


@few
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]), lam=st.sampled_from([0.0, 0.8, 1.0]))
def test_turn_credit_equals_the_definition(ragged: Ragged, seed: int, gamma: float, lam: float) -> None:
    columns = with_critic(ragged, seed)
    got = gae(**columns, gamma=gamma, lam=lam, credit="turn")
    assert got.value_targets is not None and got.target_mask is not None
    for i, played in enumerate(columns["mask"].sum(dim=1).tolist()):
        r, v = columns["rewards"][i, :played].tolist(), columns["values"][i, :played].tolist()
        after = [*v[1:], float(columns["bootstrap"][i])]
        delta = [r[t] + gamma * after[t] - v[t] for t in range(played)]
        for t in range(played):
            wanted = sum((gamma * lam) ** k * delta[t + k] for k in range(played - t))
            assert got.advantages[i, t].item() == pytest.approx(wanted, abs=1e-9)
            assert got.value_targets[i, t].item() == pytest.approx(wanted + v[t], abs=1e-9)
    assert torch.equal(got.target_mask, columns["mask"])
    assert not got.advantages[~columns["mask"]].any() and not got.value_targets[~columns["mask"]].any()


@few
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]))
def test_episode_credit_equals_the_definition(ragged: Ragged, seed: int, gamma: float) -> None:
    columns = with_critic(ragged, seed)
    got = gae(**columns, gamma=gamma, lam=0.5, credit="episode")
    assert got.value_targets is not None and got.target_mask is not None
    for i, played in enumerate(columns["mask"].sum(dim=1).tolist()):
        rewards = columns["rewards"][i, :played].tolist()
        start = sum(gamma**t * rewards[t] for t in range(played)) + gamma**played * float(
            columns["bootstrap"][i]
        )
        wanted = start - float(columns["values"][i, 0])
        assert got.advantages[i, :played].tolist() == pytest.approx([wanted] * played, abs=1e-9)
        assert got.value_targets[i, 0].item() == pytest.approx(start, abs=1e-9)
    assert got.target_mask[:, 0].all() and not got.target_mask[:, 1:].any()
    assert not got.advantages[~columns["mask"]].any()


@few
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]))
def test_with_lam_1_it_is_the_return_minus_the_value(ragged: Ragged, seed: int, gamma: float) -> None:
    columns = with_critic(ragged, seed)
    columns["bootstrap"] = torch.zeros_like(columns["bootstrap"])
    got = gae(**columns, gamma=gamma, lam=1.0, credit="turn").advantages
    shifted = gae(**{**columns, "values": columns["values"] * 3 + 1}, gamma=gamma, lam=1.0, credit="turn")
    difference = (got - shifted.advantages)[columns["mask"]]
    torch.testing.assert_close(difference, (columns["values"] * 2 + 1)[columns["mask"]])


def test_a_cut_episode_bootstraps_and_a_won_one_does_not() -> None:
    # Case 12: values .5 .6 .7, the observation after the cut worth .8, gamma .9, lambda .95; then a won one.
    # delta = [.04, .03, .02]: 0 + .9 * .6 - .5 = .04; .9 * .7 - .6 = .03; .9 * .8 - .7 = .02
    # A2 = .02; A1 = .03 + .855 * .02 = .0471; A0 = .04 + .855 * .0471 = .0802705
    # won: delta = [.9 * .4 - .2, 1 - .4] = [.16, .6]; A0 = .16 + .855 * .6 = .673
    rewards = torch.tensor([[0.0, 0.0, 0.0], [0.0, 1.0, NAN]], dtype=torch.float64)
    values = torch.tensor([[0.5, 0.6, 0.7], [0.2, 0.4, NAN]], dtype=torch.float64)
    mask = torch.tensor([[True, True, True], [True, True, False]])
    bootstrap = torch.tensor([0.8, 0.0], dtype=torch.float64)
    got = gae(rewards, mask, values, bootstrap, gamma=0.9, lam=0.95, credit="turn")
    wanted = torch.tensor([[0.0802705, 0.0471, 0.02], [0.673, 0.6, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(got.advantages, wanted)
    assert got.value_targets is not None
    torch.testing.assert_close(
        got.value_targets[0], torch.tensor([0.5802705, 0.6471, 0.72], dtype=torch.float64)
    )


def test_episode_credit_matches_hand_computation() -> None:
    # G(0) = 1 + .5 * 2 + .25 * 4 = 3 with the bootstrap 4 after two turns; minus V(0) = .5
    got = gae(
        torch.tensor([[1.0, 2.0]]), torch.tensor([[True, True]]), torch.tensor([[0.5, 99.0]]), torch.tensor([4.0]),
        gamma=0.5, lam=0.3, credit="episode",
    )  # fmt: skip
    assert got.advantages.tolist() == [[2.5, 2.5]]
    assert got.value_targets is not None and got.value_targets[0, 0] == 3.0


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_what_stands_in_slots_not_played_changes_nothing(ragged: Ragged, credit: Credit) -> None:
    for seed in range(10):
        columns = with_critic(ragged, seed)
        clean = {k: torch.where(columns["mask"], columns[k], 0.0) for k in ("rewards", "values")}
        one = gae(**columns, gamma=0.9, lam=0.9, credit=credit)
        two = gae(**{**columns, **clean}, gamma=0.9, lam=0.9, credit=credit)
        assert torch.equal(one.advantages, two.advantages)
        assert one.value_targets is not None and two.value_targets is not None
        assert torch.equal(one.value_targets, two.value_targets)


def test_more_slots_change_nothing(ragged: Ragged) -> None:
    columns = with_critic(ragged, 3)
    wider = {
        key: torch.cat([column, column.new_zeros(len(column), 2)], dim=1) if column.ndim == 2 else column
        for key, column in columns.items()
    }
    one = gae(**columns, gamma=0.9, lam=0.9, credit="turn").advantages
    two = gae(**wider, gamma=0.9, lam=0.9, credit="turn").advantages
    assert torch.equal(two[:, :-2], one) and not two[:, -2:].any()


def test_arguments_are_left_as_they_are(ragged: Ragged) -> None:
    columns, again = with_critic(ragged, 4), with_critic(ragged, 4)
    gae(**columns, gamma=0.9, lam=0.9, credit="episode")
    assert all(torch.equal(columns[key].nan_to_num(), again[key].nan_to_num()) for key in columns)


def test_it_reads_a_critic_and_is_whitened_unless_told_otherwise() -> None:
    assert needs_critic(ADVANTAGES["gae"].function)
    assert not any(needs_critic(ADVANTAGES[name].function) for name in ("grpo", "rloo", "reinforce"))
    assert (GaeSettings().gamma, GaeSettings().lam, GaeSettings().whiten) == (1, 0.95, "batch")
