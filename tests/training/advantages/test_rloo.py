"""RLOO against hand computation, the definition as loops, and its laws."""

from collections.abc import Callable
from statistics import stdev
from typing import Literal

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.training.advantages.base import ADVANTAGES
from turngym.training.advantages.rloo import RlooSettings, rloo

Credit = Literal["turn", "episode"]
Ragged = Callable[[int], dict[str, Tensor]]
SEEDS = st.integers(0, 10**6)
CREDITS: tuple[Credit, ...] = ("turn", "episode")
few = settings(max_examples=40, deadline=None, derandomize=True)


def slow(columns: dict[str, Tensor], gamma: float, credit: Credit, scale: bool) -> tuple[Tensor, list[str]]:
    """DEFINITIONS section 4, turn by turn: the advantages, and why an episode is dropped."""
    lengths = columns["mask"].sum(dim=1).tolist()
    rewards = [row[:n] for row, n in zip(columns["rewards"].tolist(), lengths, strict=True)]
    group = columns["group"].tolist()
    returns = [
        [sum(gamma ** (u - t) * r[u] for u in range(t, len(r))) for t in range(len(r))] for r in rewards
    ]
    out, reasons = torch.zeros_like(columns["rewards"]), [""] * len(rewards)
    for name in set(group):
        members = [i for i, g in enumerate(group) if g == name]
        largest = 0.0
        for t in range(max(lengths[i] for i in members)):
            number = {i: returns[i][min(t, lengths[i] - 1) if credit == "turn" else 0] for i in members}
            centred = {
                i: number[i] - sum(number[j] for j in members if j != i) / max(len(members) - 1, 1)
                for i in members
            }
            s = stdev(centred.values()) if scale and len(members) > 1 else 0.0
            for i in members:
                if t < lengths[i]:
                    largest = max(largest, abs(centred[i]))
                    out[i, t] = centred[i] / (s + 1e-6) if scale else centred[i]
        for i in members:
            reasons[i] = "group_of_one" if len(members) == 1 else "flat_group" if largest < 1e-6 else ""
    return out, reasons


@few
@given(
    seed=SEEDS, gamma=st.sampled_from([1.0, 0.9, 0.5]), credit=st.sampled_from(CREDITS), scale=st.booleans()
)
def test_it_equals_the_definition(
    ragged: Ragged, seed: int, gamma: float, credit: Credit, scale: bool
) -> None:
    columns = ragged(seed)
    got = rloo(**columns, gamma=gamma, credit=credit, scale_by_std=scale)
    wanted, reasons = slow(columns, gamma, credit, scale)
    assert got.kept is not None and got.reasons is not None
    assert got.kept.tolist() == [reason == "" for reason in reasons]
    for name, where in got.reasons.items():
        assert where.tolist() == [reason == name for reason in reasons]
    # A flat turn of a group that is not flat: rounding over 1e-6 is not the definition's business.
    torch.testing.assert_close(got.advantages[got.kept], wanted[got.kept], atol=1e-8, rtol=1e-9)
    assert bool((got.advantages[~columns["mask"]] == 0).all())


def test_turn_credit_matches_hand_computation() -> None:
    # i = 0: rewards 0, 1 (gamma 1/2): G = .5, 1.   i = 1: reward 0: G = 0, held 0.   i = 2: 1, 0, 2: G = 1.5, 1, 2
    # i = 0: .5 - (0 + 1.5)/2, 1 - (0 + 1)/2; i = 1: 0 - (.5 + 1.5)/2; i = 2: 1.5 - .5/2, 1 - 1/2, 2 - (1 + 0)/2
    rewards = torch.tensor([[0.0, 1.0, 9.0], [0.0, 9.0, 9.0], [1.0, 0.0, 2.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True, False], [True, False, False], [True, True, True]])
    got = rloo(
        rewards, mask, torch.tensor([5, 5, 5]), gamma=0.5, credit="turn", scale_by_std=False
    ).advantages
    wanted = torch.tensor([[-0.25, 0.5, 0.0], [-1.0, 0.0, 0.0], [1.25, 0.5, 1.5]], dtype=torch.float64)
    torch.testing.assert_close(got, wanted)


def test_episode_credit_matches_hand_computation() -> None:
    # Case 09, group b: returns 1, 0, 0, 1: 1 - 1/3 and 0 - 2/3.
    rewards = torch.tensor([[0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [1.0, 7.0]], dtype=torch.float64)
    mask = torch.tensor([[True, True]] * 3 + [[True, False]])
    group = torch.zeros(4, dtype=torch.int64)
    got = rloo(rewards, mask, group, gamma=1.0, credit="episode", scale_by_std=False).advantages
    wanted = torch.tensor(
        [[2 / 3, 2 / 3], [-2 / 3, -2 / 3], [-2 / 3, -2 / 3], [2 / 3, 0.0]], dtype=torch.float64
    )
    torch.testing.assert_close(got, wanted)
    # Scaled by the std of the centred numbers themselves, sqrt(4 * 4/9 / 3) = .769800, it is GRPO's scaled form.
    scaled = rloo(rewards, mask, group, gamma=1.0, credit="episode", scale_by_std=True).advantages
    torch.testing.assert_close(scaled, got.sign() * 0.866025, atol=2e-6, rtol=0)


def test_groups_are_found_by_id_in_any_order() -> None:
    # Case 10: AAABBBB with rewards 1, 0, 1 and 0, 0, 1, 0, and the same in another order of arrival.
    rewards = torch.tensor([1.0, 0, 1, 0, 0, 1, 0], dtype=torch.float64).unsqueeze(1)
    group = torch.tensor([3, 3, 3, 8, 8, 8, 8])
    mask = torch.ones(7, 1, dtype=torch.bool)
    wanted = torch.tensor([1 / 2, -1.0, 1 / 2, -1 / 3, -1 / 3, 1.0, -1 / 3], dtype=torch.float64).unsqueeze(1)
    for order in ([0, 1, 2, 3, 4, 5, 6], [3, 0, 6, 1, 4, 2, 5]):
        got = rloo(rewards[order], mask, group[order], gamma=1.0, credit="episode", scale_by_std=False)
        torch.testing.assert_close(got.advantages, wanted[order])


def test_a_group_of_one_is_dropped_and_counted() -> None:
    # Case 09, group a: [2.0] has no baseline.
    rewards = torch.tensor([[2.0], [1.0], [0.0]], dtype=torch.float64)
    got = rloo(
        rewards, torch.ones(3, 1, dtype=torch.bool), torch.tensor([0, 1, 1]), gamma=1.0, credit="episode", scale_by_std=True
    )  # fmt: skip
    assert got.kept is not None and got.kept.tolist() == [False, True, True]
    assert got.reasons is not None and got.reasons["group_of_one"].tolist() == [True, False, False]
    assert got.advantages.isfinite().all()


@few
@given(seed=SEEDS, constant=st.floats(-3, 3), scale=st.booleans())
def test_a_constant_on_every_return_changes_nothing_for_episode_credit(
    ragged: Ragged, seed: int, constant: float, scale: bool
) -> None:
    columns = ragged(seed)
    moved = columns["rewards"].clone()
    moved[:, 0] += constant
    one = rloo(**columns, gamma=1.0, credit="episode", scale_by_std=scale)
    two = rloo(**{**columns, "rewards": moved}, gamma=1.0, credit="episode", scale_by_std=scale)
    assert one.kept is not None and two.kept is not None
    torch.testing.assert_close(one.advantages[one.kept], two.advantages[one.kept], atol=1e-6, rtol=1e-6)
    assert torch.equal(one.kept, two.kept)


@few
@given(seed=SEEDS, scale=st.booleans())
def test_episode_advantages_of_a_group_sum_to_0(ragged: Ragged, seed: int, scale: bool) -> None:
    columns = ragged(seed)
    got = rloo(**columns, gamma=0.9, credit="episode", scale_by_std=scale).advantages[:, 0]
    names, counts = columns["group"].unique(return_counts=True)
    for name in names[counts > 1]:
        assert abs(float(got[columns["group"] == name].sum())) < 1e-6


@few
@given(seed=SEEDS, credit=st.sampled_from(CREDITS), scale=st.booleans())
def test_the_order_of_episodes_changes_nothing(
    ragged: Ragged, seed: int, credit: Credit, scale: bool
) -> None:
    columns = ragged(seed)
    order = torch.randperm(len(columns["group"]), generator=torch.Generator().manual_seed(seed))
    one = rloo(**columns, gamma=0.9, credit=credit, scale_by_std=scale)
    two = rloo(**{k: v[order] for k, v in columns.items()}, gamma=0.9, credit=credit, scale_by_std=scale)
    assert one.kept is not None and two.kept is not None
    assert torch.equal(one.kept[order], two.kept)
    torch.testing.assert_close(
        one.advantages[order][two.kept], two.advantages[two.kept], atol=1e-8, rtol=1e-9
    )


@few
@given(seed=SEEDS, scale=st.booleans())
def test_with_sparse_rewards_and_gamma_1_both_credits_coincide(
    ragged: Ragged, seed: int, scale: bool
) -> None:
    columns = ragged(seed)
    last = columns["mask"].sum(dim=1, keepdim=True) - 1 == torch.arange(columns["mask"].shape[1])
    won = columns["group"].unsqueeze(1) * 0 + torch.arange(len(columns["group"])).unsqueeze(1) % 2
    columns["rewards"] = torch.where(
        columns["mask"], torch.where(last, won.double(), 0.0), columns["rewards"]
    )
    one, two = (rloo(**columns, gamma=1.0, credit=credit, scale_by_std=scale) for credit in CREDITS)
    torch.testing.assert_close(one.advantages, two.advantages, atol=1e-9, rtol=1e-9)


@few
@given(seed=SEEDS, credit=st.sampled_from(CREDITS))
def test_what_stands_in_slots_not_played_changes_nothing(ragged: Ragged, seed: int, credit: Credit) -> None:
    columns = ragged(seed)
    clean = {**columns, "rewards": torch.where(columns["mask"], columns["rewards"], 0.0)}
    one = rloo(**columns, gamma=0.9, credit=credit, scale_by_std=True)
    two = rloo(**clean, gamma=0.9, credit=credit, scale_by_std=True)
    assert torch.equal(one.advantages, two.advantages)
    assert one.kept is not None and two.kept is not None and torch.equal(one.kept, two.kept)


def test_arguments_are_left_as_they_are(ragged: Ragged) -> None:
    columns, again = ragged(4), ragged(4)
    rloo(**columns, gamma=0.9, credit="turn", scale_by_std=True)
    assert all(torch.equal(columns[key].nan_to_num(), again[key].nan_to_num()) for key in columns)


def test_it_is_not_scaled_unless_asked() -> None:
    assert not RlooSettings().scale_by_std and not RlooSettings(credit="turn").scale_by_std
    assert (RlooSettings().credit, RlooSettings().whiten, RlooSettings().gamma) == ("episode", "none", 1)
    assert ADVANTAGES["rloo"].function is rloo
