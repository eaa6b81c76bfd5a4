"""The critic's loss."""

import torch

from turngym.training.losses.value import value_loss


def test_it_matches_hand_computation() -> None:
    # half of the squares 1 and 4, over four positions
    assert value_loss(torch.tensor([1.0, 3.0]), torch.tensor([2.0, 1.0]), count=4).item() == 0.625


def test_micro_batches_add_up_to_the_whole() -> None:
    values, targets = torch.randn(7, dtype=torch.float64), torch.randn(7, dtype=torch.float64)
    whole = value_loss(values, targets, count=7)
    parts = value_loss(values[:2], targets[:2], count=7) + value_loss(values[2:], targets[2:], count=7)
    torch.testing.assert_close(parts, whole)
    torch.testing.assert_close(whole, 0.5 * ((values - targets) ** 2).mean())


def test_no_positions_give_no_loss() -> None:
    assert value_loss(torch.zeros(0), torch.zeros(0), count=0).item() == 0
