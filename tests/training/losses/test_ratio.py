"""Importance ratios and mismatch weights of tokens, turns and episodes."""

import pytest
import torch

from turngym.training.losses.ratio import log_ratios, mismatch_weights, unit_means

NEW = torch.tensor([-1.0, -2.0, -0.5, -3.0], dtype=torch.float64)
OLD = torch.tensor([-1.5, -1.0, -0.5, -2.0], dtype=torch.float64)
UNIT = torch.tensor([7, 3, 7, 3])


def test_a_token_has_its_own_ratio_and_a_unit_the_mean_over_its_tokens() -> None:
    assert log_ratios(NEW, OLD, None).tolist() == [0.5, -1.0, 0.0, -1.0]
    assert log_ratios(NEW, OLD, UNIT).tolist() == [0.25, -1.0, 0.25, -1.0]


def test_each_token_of_a_unit_gets_its_share_of_the_gradient() -> None:
    new = NEW.clone().requires_grad_(True)
    unit_means(new, UNIT)[0].backward()
    assert new.grad is not None and new.grad.tolist() == [0.5, 0.0, 0.5, 0.0]


def test_mismatch_weights_are_ratios_to_the_sampler_under_a_cap() -> None:
    got = mismatch_weights(OLD, NEW, None, cap=2.0)
    assert got.tolist() == pytest.approx([2.718281828**-0.5, 2.0, 1.0, 2.0])
    assert mismatch_weights(OLD, NEW, UNIT, cap=9.0).tolist() == pytest.approx(
        [2.718281828**e for e in (-0.25, 1.0, -0.25, 1.0)]
    )
