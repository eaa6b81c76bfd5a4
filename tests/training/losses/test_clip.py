"""PPO's clipped loss."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.training.losses.clip import clip_loss

# Case 16, band [0.8, 1.28]: (A, ratio, loss, d loss / d log-prob, clipped)
POINTS = (
    (1.0, 0.7, -0.7, -0.7, False),
    (1.0, 1.0, -1.0, -1.0, False),
    (1.0, 1.1, -1.1, -1.1, False),
    (1.0, 1.4, -1.28, 0.0, True),
    (-1.0, 0.7, 0.8, 0.0, True),
    (-1.0, 1.0, 1.0, 1.0, False),
    (-1.0, 1.1, 1.1, 1.1, False),
    (-1.0, 1.4, 1.4, 1.4, False),
)


@pytest.mark.parametrize("point", POINTS)
def test_the_clip_is_one_sided(point: tuple[float, float, float, float, bool]) -> None:
    advantage, ratio, loss, slope, clipped = point
    new = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, dtype=torch.float64)
    got = clip_loss(new, torch.zeros_like(one), advantage * one, one, clip_low=0.2, clip_high=0.28)
    got.loss.backward()
    assert new.grad is not None
    assert (got.loss.item(), new.grad.item()) == pytest.approx((loss, slope))
    assert int(got.num_clipped) == clipped
    assert got.approx_kl_sum.item() == pytest.approx(ratio - 1 - math.log(ratio))


def test_two_of_the_eight_points_are_clipped_and_the_loss_is_their_weighted_sum() -> None:
    advantages, ratios, losses = (
        torch.tensor([p[k] for p in POINTS], dtype=torch.float64) for k in (0, 1, 2)
    )
    weights = torch.arange(1.0, 9.0, dtype=torch.float64)
    got = clip_loss(ratios.log() - 3, ratios * 0 - 3, advantages, weights, clip_low=0.2, clip_high=0.28)
    assert int(got.num_clipped) == 2
    torch.testing.assert_close(got.loss, (weights * losses).sum())


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ratio=st.floats(0.01, 5), advantage=st.floats(-3, 3), low=st.floats(0, 0.9), high=st.floats(0, 0.9))
def test_it_equals_the_definition(ratio: float, advantage: float, low: float, high: float) -> None:
    new = torch.tensor([math.log(ratio)], dtype=torch.float64)
    one = torch.ones(1, dtype=torch.float64)
    got = clip_loss(new, 0 * one, advantage * one, one, clip_low=low, clip_high=high).loss.item()
    bounded = min(max(ratio, 1 - low), 1 + high)
    assert got == pytest.approx(max(-advantage * ratio, -advantage * bounded), abs=1e-12)


def test_at_ratio_1_the_gradient_is_that_of_the_plain_policy_gradient() -> None:
    new = torch.randn(5, dtype=torch.float64, requires_grad=True)
    advantages, weights = torch.randn(5, dtype=torch.float64), torch.rand(5, dtype=torch.float64)
    clip_loss(new, new.detach(), advantages, weights, clip_low=0.2, clip_high=0.2).loss.backward()
    assert new.grad is not None
    torch.testing.assert_close(new.grad, -advantages * weights)


@settings(max_examples=60, deadline=None, derandomize=True)
@given(ratio=st.floats(0.01, 9), advantage=st.floats(-3, 3), bound=st.floats(1.5, 4))
def test_the_dual_clip_bounds_what_a_bad_token_loses(ratio: float, advantage: float, bound: float) -> None:
    new = torch.tensor([math.log(ratio)], dtype=torch.float64, requires_grad=True)
    one = torch.ones(1, dtype=torch.float64)
    got = clip_loss(new, 0 * one, advantage * one, one, clip_low=0.2, clip_high=0.2, dual_clip=bound)
    wanted = max(-advantage * ratio, -advantage * min(max(ratio, 0.8), 1.2))
    if advantage < 0:
        wanted = min(wanted, -bound * advantage)
    assert got.loss.item() == pytest.approx(wanted, abs=1e-12)
    assert int(got.num_dual_clipped) == (advantage < 0 and math.exp(math.log(ratio)) > bound)
    got.loss.backward()
    assert new.grad is not None
    if int(got.num_dual_clipped):
        assert new.grad.item() == 0


def test_a_units_ratio_is_clipped_as_one() -> None:
    # The mean of .5 and -.1 is .2: e^.2 is past 1.1 for both, though e^-.1 alone is not.
    new = torch.tensor([0.5, -0.1], dtype=torch.float64, requires_grad=True)
    one = torch.ones(2, dtype=torch.float64)
    unit = torch.tensor([4, 4])
    got = clip_loss(new, 0 * one, one, one, clip_low=0.1, clip_high=0.1, unit=unit)
    assert got.loss.item() == pytest.approx(-2.2) and int(got.num_clipped) == 2
    free = clip_loss(new, 0 * one, one, one, clip_low=0.9, clip_high=9.0, unit=unit).loss
    free.backward()
    assert new.grad is not None and new.grad.tolist() == pytest.approx([-math.exp(0.2)] * 2)
