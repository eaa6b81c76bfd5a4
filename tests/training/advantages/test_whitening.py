"""Whitening: mean 0 and spread 1 over the units that carry an advantage."""

import torch

from turngym.training.advantages.whitening import whitened

NAN = float("nan")


def test_the_units_left_have_mean_0_and_spread_1_and_others_change_nothing() -> None:
    advantages = torch.tensor([[[1.0, 2.0], [NAN, NAN]], [[4.0, NAN], [7.0, 9.0]]], dtype=torch.float64)
    mask = ~advantages.isnan()
    got = whitened(advantages, mask, per_episode=False)
    torch.testing.assert_close(got[mask].mean(), torch.tensor(0.0, dtype=torch.float64))
    torch.testing.assert_close(got[mask].std(correction=0), torch.tensor(1.0, dtype=torch.float64))
    assert not got[~mask].any()
    spread = advantages[mask].std(correction=0)
    torch.testing.assert_close((got[1, 1, 1] - got[0, 0, 0]) * spread, torch.tensor(8.0, dtype=torch.float64))


def test_an_episodes_one_number_counts_once_however_long_it_is() -> None:
    advantages = torch.tensor([[1.0, 1.0, 1.0], [3.0, NAN, NAN], [9.0, 9.0, NAN]])
    mask = torch.tensor([[True, True, True], [True, False, False], [False, False, False]])
    got = whitened(advantages, mask, per_episode=True)
    torch.testing.assert_close(got, torch.tensor([[-1.0, -1.0, -1.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]))


def test_with_nothing_left_nothing_changes() -> None:
    advantages, none = torch.tensor([[1.0, 2.0]]), torch.zeros(1, 2, dtype=torch.bool)
    assert torch.equal(whitened(advantages, none, per_episode=False), advantages)
