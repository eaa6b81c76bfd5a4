"""REINFORCE with the batch mean."""

from collections.abc import Callable
from typing import Literal

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from turngym.training.advantages.base import Advantages, estimate
from turngym.training.advantages.reinforce import ReinforceSettings, reinforce

Credit = Literal["turn", "episode"]
Ragged = Callable[[int], dict[str, Tensor]]
few = settings(max_examples=40, deadline=None, derandomize=True)


@few
@given(
    seed=st.integers(0, 10**6), gamma=st.sampled_from([1.0, 0.9]), credit=st.sampled_from(["turn", "episode"])
)
def test_it_equals_the_definition(ragged: Ragged, seed: int, gamma: float, credit: Credit) -> None:
    columns = ragged(seed)
    lengths = columns["mask"].sum(dim=1).tolist()
    rewards = [row[:n] for row, n in zip(columns["rewards"].tolist(), lengths, strict=True)]
    returns = [
        [sum(gamma ** (u - t) * r[u] for u in range(t, len(r))) for t in range(len(r))] for r in rewards
    ]
    numbers = [g for one in returns for g in one] if credit == "turn" else [one[0] for one in returns]
    mean = sum(numbers) / len(numbers)
    wanted = torch.zeros_like(columns["rewards"])
    for i, one in enumerate(returns):
        for t, number in enumerate(one):
            wanted[i, t] = (number if credit == "turn" else one[0]) - mean
    got = reinforce(columns["rewards"], columns["mask"], gamma=gamma, credit=credit)
    torch.testing.assert_close(got, wanted)


def test_it_matches_hand_computation() -> None:
    rewards = torch.tensor([[1.0, 2.0], [6.0, float("nan")]], dtype=torch.float64)
    mask = torch.tensor([[True, True], [True, False]])
    # G = 3, 2 and 6: mean over turns 11/3; mean of G(0) over episodes 4.5
    turn = reinforce(rewards, mask, gamma=1.0, credit="turn")
    torch.testing.assert_close(turn, torch.tensor([[-2 / 3, -5 / 3], [7 / 3, 0.0]], dtype=torch.float64))
    episode = reinforce(rewards, mask, gamma=1.0, credit="episode")
    assert episode.tolist() == [[-1.5, -1.5], [1.5, 0.0]]


def test_it_needs_no_groups_and_keeps_every_episode(ragged: Ragged) -> None:
    got = estimate(ReinforceSettings(), ragged(1))
    assert isinstance(got, Advantages) and got.kept is None and got.value_targets is None


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_a_batch_of_one_teaches_nothing_where_its_returns_are_alike(credit: Credit) -> None:
    rewards = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    assert not reinforce(rewards, torch.ones(1, 3, dtype=torch.bool), gamma=1.0, credit=credit).any()
