"""GAE over turns against hand computation, the definition as loops, and its laws."""

from collections.abc import Callable

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.training.advantages.base import ADVANTAGES, Advantages, needs_critic
from turngym.training.advantages.gae import Credit, GaeSettings, gae
from turngym.training.advantages.gae_bilevel import gae_bilevel
from turngym.training.advantages.gae_token import gae_token
from turngym.training.advantages.gae_turn import gae_episode, gae_turn

Ragged = Callable[[int], dict[str, Tensor]]
SEEDS = st.integers(0, 10**6)
few = settings(max_examples=40, deadline=None, derandomize=True)
NAN = float("nan")
CREDITS: tuple[Credit, ...] = ("turn", "token", "bilevel", "episode")
STEP_CREDITS: tuple[Credit, ...] = ("token", "bilevel")


def with_critic(ragged: Ragged, seed: int) -> dict[str, Tensor]:
    columns = ragged(seed)
    del columns["group"]
    rng = np.random.default_rng(seed + 1)
    values = torch.from_numpy(rng.normal(size=columns["mask"].shape))
    columns["values"] = torch.where(columns["mask"], values, NAN)
    columns["bootstrap"] = torch.from_numpy(
        rng.normal(size=len(values)) * rng.integers(0, 2, size=len(values))
    )
    lengths = rng.integers(1, 5, size=columns["mask"].shape)
    most = int(lengths.max()) + int(rng.integers(0, 2))
    token_mask = (torch.arange(most) < torch.from_numpy(lengths).unsqueeze(-1)) & columns["mask"].unsqueeze(
        -1
    )
    token_values = torch.from_numpy(rng.normal(size=token_mask.shape))
    token_values[:, :, 0] = values
    token_rewards = torch.from_numpy(rng.normal(size=token_mask.shape))
    columns["token_mask"] = token_mask
    columns["token_values"] = torch.where(token_mask, token_values, NAN)
    columns["token_rewards"] = torch.where(token_mask, token_rewards, NAN)
    return columns


def estimate(
    columns: dict[str, Tensor], *, credit: Credit, gamma: float = 0.9, lam: float = 0.9
) -> Advantages:
    return gae(**columns, gamma=gamma, lam=lam, gamma_token=0.8, lam_token=0.7, credit=credit)


@few
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]), lam=st.sampled_from([0.0, 0.8, 1.0]))
def test_turn_credit_equals_the_definition(ragged: Ragged, seed: int, gamma: float, lam: float) -> None:
    columns = with_critic(ragged, seed)
    got = estimate(columns, credit="turn", gamma=gamma, lam=lam)
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
    got = estimate(columns, credit="episode", gamma=gamma, lam=0.5)
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
    got = estimate(columns, credit="turn", gamma=gamma, lam=1.0).advantages
    shifted = estimate({**columns, "values": columns["values"] * 3 + 1}, credit="turn", gamma=gamma, lam=1.0)
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
    got = gae_turn(rewards, mask, values, bootstrap, gamma=0.9, lam=0.95)
    wanted = torch.tensor([[0.0802705, 0.0471, 0.02], [0.673, 0.6, 0.0]], dtype=torch.float64)
    torch.testing.assert_close(got.advantages, wanted)
    assert got.value_targets is not None
    torch.testing.assert_close(
        got.value_targets[0], torch.tensor([0.5802705, 0.6471, 0.72], dtype=torch.float64)
    )


def test_episode_credit_matches_hand_computation() -> None:
    # G(0) = 1 + .5 * 2 + .25 * 4 = 3 with the bootstrap 4 after two turns; minus V(0) = .5
    got = gae_episode(
        torch.tensor([[1.0, 2.0]]), torch.tensor([[True, True]]), torch.tensor([[0.5, 99.0]]), torch.tensor([4.0]),
        gamma=0.5,
    )  # fmt: skip
    assert got.advantages.tolist() == [[2.5, 2.5]]
    assert got.value_targets is not None and got.value_targets[0, 0] == 3.0


@pytest.mark.parametrize("credit", CREDITS)
def test_what_stands_in_slots_not_played_changes_nothing(ragged: Ragged, credit: Credit) -> None:
    for seed in range(10):
        columns = with_critic(ragged, seed)
        clean = {k: torch.where(columns["mask"], columns[k], 0.0) for k in ("rewards", "values")}
        clean |= {
            k: torch.where(columns["token_mask"], columns[k], 7.0) for k in ("token_rewards", "token_values")
        }
        one, two = estimate(columns, credit=credit), estimate({**columns, **clean}, credit=credit)
        assert torch.equal(one.advantages, two.advantages) and not one.advantages.isnan().any()
        assert one.value_targets is not None and two.value_targets is not None
        assert torch.equal(one.value_targets, two.value_targets) and not one.value_targets.isnan().any()


@few
@given(seed=SEEDS, gamma=st.sampled_from([1.0, 0.9]), lam=st.sampled_from([0.0, 0.8, 1.0]))
def test_token_credit_equals_the_definition(ragged: Ragged, seed: int, gamma: float, lam: float) -> None:
    columns = with_critic(ragged, seed)
    got = estimate(columns, credit="token", gamma=gamma, lam=lam)
    assert got.value_targets is not None and got.target_mask is not None
    for i in range(len(columns["mask"])):
        mask = columns["token_mask"][i]
        r, v = columns["token_rewards"][i][mask].tolist(), columns["token_values"][i][mask].tolist()
        after = [*v[1:], float(columns["bootstrap"][i])]
        delta = [r[m] + gamma * after[m] - v[m] for m in range(len(r))]
        wanted = [sum((gamma * lam) ** k * delta[m + k] for k in range(len(r) - m)) for m in range(len(r))]
        assert got.advantages[i][mask].tolist() == pytest.approx(wanted, abs=1e-9)
        targets = [one + value for one, value in zip(wanted, v, strict=True)]
        assert got.value_targets[i][mask].tolist() == pytest.approx(targets, abs=1e-9)
    assert torch.equal(got.target_mask, columns["token_mask"])
    assert not got.advantages[~columns["token_mask"]].any()


@few
@given(
    seed=SEEDS,
    gamma=st.sampled_from([1.0, 0.9]),
    lam=st.sampled_from([0.0, 0.8, 1.0]),
    gamma_token=st.sampled_from([1.0, 0.9]),
    lam_token=st.sampled_from([0.0, 0.6, 1.0]),
)
def test_bilevel_credit_equals_the_definition(
    ragged: Ragged, seed: int, gamma: float, lam: float, gamma_token: float, lam_token: float
) -> None:
    columns = with_critic(ragged, seed)
    got = gae(
        **columns, gamma=gamma, lam=lam, gamma_token=gamma_token, lam_token=lam_token, credit="bilevel"
    )  # fmt: skip
    turns = estimate(columns, credit="turn", gamma=gamma, lam=lam)
    assert got.value_targets is not None and turns.value_targets is not None
    for i, k in columns["mask"].nonzero().tolist():
        mask = columns["token_mask"][i, k]
        v, count = columns["token_values"][i, k][mask].tolist(), int(mask.sum())
        turn_return = float(turns.value_targets[i, k])
        delta = [gamma_token * v[j + 1] - v[j] for j in range(count - 1)] + [turn_return - v[-1]]
        wanted = [
            sum((gamma_token * lam_token) ** m * delta[j + m] for m in range(count - j)) for j in range(count)
        ]
        assert got.advantages[i, k][mask].tolist() == pytest.approx(wanted, abs=1e-9)
        targets = [turn_return, *(wanted[j] + v[j] for j in range(1, count))]
        assert got.value_targets[i, k][mask].tolist() == pytest.approx(targets, abs=1e-9)
    assert not got.advantages[~columns["token_mask"]].any()


@few
@given(seed=SEEDS)
def test_bilevel_credit_undiscounted_inside_is_the_turns_return_minus_the_value(
    ragged: Ragged, seed: int
) -> None:
    columns = with_critic(ragged, seed)
    turn_columns = ("rewards", "mask", "token_mask", "token_values", "bootstrap")
    got = gae_bilevel(
        **{k: columns[k] for k in turn_columns}, gamma=0.9, lam=0.8, gamma_token=1.0, lam_token=1.0
    )
    returns = estimate(columns, credit="turn", gamma=0.9, lam=0.8).value_targets
    assert returns is not None
    wanted = torch.where(columns["token_mask"], returns.unsqueeze(-1) - columns["token_values"], 0.0)
    torch.testing.assert_close(got.advantages, wanted)


def test_turns_without_reward_are_turns_to_bilevel_credit() -> None:
    # Two turns of two tokens; V before them .1 .2 and .3 .4; no reward in the first, 1 in the second; all shares 1
    # but gamma .5. Turns: A1 = 1 - .3 = .7, G1 = 1; delta0 = .5 * .3 - .1 = .05, A0 = .05 + .5 * .7 = .4, G0 = .5.
    # Inside: .5 - .1 = .4, .5 - .2 = .3; 1 - .3 = .7, 1 - .4 = .6.
    values = torch.tensor([[[0.1, 0.2], [0.3, 0.4]]], dtype=torch.float64)
    got = gae_bilevel(
        torch.tensor([[0.0, 1.0]], dtype=torch.float64), torch.ones(1, 2, dtype=torch.bool),
        torch.ones(1, 2, 2, dtype=torch.bool), values, torch.zeros(1, dtype=torch.float64),
        gamma=0.5, lam=1.0, gamma_token=1.0, lam_token=1.0,
    )  # fmt: skip
    torch.testing.assert_close(got.advantages, torch.tensor([[[0.4, 0.3], [0.7, 0.6]]], dtype=torch.float64))
    assert got.value_targets is not None
    torch.testing.assert_close(
        got.value_targets, torch.tensor([[[0.5, 0.5], [1.0, 1.0]]], dtype=torch.float64)
    )


def test_token_credit_matches_hand_computation_over_a_turns_end() -> None:
    # Tokens of two turns, two and one; V .1 .2 | .3, rewards 0 1 | 2, gamma .5, lam .5, nothing after.
    # delta = [.5 * .2 - .1, 1 + .5 * .3 - .2, 2 - .3] = [0, .95, 1.7]; A = [.34375, 1.375, 1.7]
    mask = torch.tensor([[[True, True], [True, False]]])
    values = torch.tensor([[[0.1, 0.2], [0.3, NAN]]], dtype=torch.float64)
    rewards = torch.tensor([[[0.0, 1.0], [2.0, NAN]]], dtype=torch.float64)
    got = gae_token(rewards, mask, values, torch.zeros(1, dtype=torch.float64), gamma=0.5, lam=0.5)
    torch.testing.assert_close(
        got.advantages, torch.tensor([[[0.34375, 1.375], [1.7, 0.0]]], dtype=torch.float64)
    )


def test_with_one_token_a_turn_all_credits_of_steps_are_one(ragged: Ragged) -> None:
    for seed in range(10):
        columns = with_critic(ragged, seed)
        one_each = {
            **columns,
            "token_mask": columns["mask"].unsqueeze(-1),
            "token_values": columns["values"].unsqueeze(-1),
            "token_rewards": columns["rewards"].unsqueeze(-1),
        }
        turn = estimate(one_each, credit="turn").advantages
        for credit in STEP_CREDITS:
            torch.testing.assert_close(estimate(one_each, credit=credit).advantages.squeeze(-1), turn)


def test_more_slots_change_nothing(ragged: Ragged) -> None:
    columns = with_critic(ragged, 3)
    wider = {
        key: torch.cat([column, column.new_zeros(len(column), 2)], dim=1) if column.ndim == 2 else column
        for key, column in columns.items()
    }
    one = estimate(columns, credit="turn", gamma=0.9, lam=0.9).advantages
    two = estimate(wider, credit="turn").advantages
    assert torch.equal(two[:, :-2], one) and not two[:, -2:].any()


@pytest.mark.parametrize("credit", CREDITS)
def test_arguments_are_left_as_they_are(ragged: Ragged, credit: Credit) -> None:
    columns, again = with_critic(ragged, 4), with_critic(ragged, 4)
    estimate(columns, credit=credit)
    assert all(torch.equal(columns[key].nan_to_num(), again[key].nan_to_num()) for key in columns)


def test_it_reads_a_critic_and_is_whitened_unless_told_otherwise() -> None:
    assert needs_critic(ADVANTAGES["gae"].function)
    assert not any(needs_critic(ADVANTAGES[name].function) for name in ("grpo", "rloo", "reinforce"))
    assert (GaeSettings().gamma, GaeSettings().lam, GaeSettings().whiten) == (1, 0.95, "batch")


def test_lam_is_1_over_tokens_unless_told_otherwise_and_inner_settings_are_bilevels_own() -> None:
    assert [GaeSettings(credit=credit).lam for credit in CREDITS] == [0.95, 1.0, 0.95, 0.95]
    assert GaeSettings(credit="token", lam=0.5).lam == 0.5
    assert GaeSettings(credit="bilevel", lam_token=0.9).lam_token == 0.9
    for credit in ("turn", "token", "episode"):
        with pytest.raises(ValueError, match=f"no effect with credit: {credit}. Set credit: bilevel"):
            GaeSettings(credit=credit, gamma_token=0.9)
