"""The ratio over rounds, against numbers worked by hand."""

import math

import pytest

from turngym.benchmarks.speed.ratio import geometric_mean, ratio_over_rounds
from turngym.errors import ConfigError


def test_two_rounds_match_hand_computation() -> None:
    # Ratios 2 and 8: logarithms ln 2 and 3 ln 2, mean 2 ln 2, so 4. Their standard deviation is sqrt(2) ln 2, over
    # sqrt(2) rounds it is ln 2; t of one degree of freedom at 95 % is tan(0.475 pi) = 12.7062.
    got = ratio_over_rounds([20.0, 40.0], [10.0, 5.0])
    assert got.rounds == (2.0, 8.0)
    assert got.value == pytest.approx(4.0)
    half = math.tan(0.475 * math.pi) * math.log(2)
    assert got.low == pytest.approx(4 * math.exp(-half))
    assert got.high == pytest.approx(4 * math.exp(half))


def test_three_rounds_match_hand_computation() -> None:
    # Logarithms 0, 1, 2: mean 1, standard deviation 1, so half the interval is 4.30265 / sqrt(3) = 2.48414.
    got = ratio_over_rounds([1.0, math.e, math.e**2], [1.0, 1.0, 1.0])
    assert math.log(got.value) == pytest.approx(1.0)
    assert math.log(got.low) == pytest.approx(1 - 2.48414, abs=1e-5)
    assert math.log(got.high) == pytest.approx(1 + 2.48414, abs=1e-5)


def test_rounds_are_paired() -> None:
    # Both became three times as fast in the second round, as on a machine whose clock went up: no spread at all.
    got = ratio_over_rounds([10.0, 30.0], [5.0, 15.0])
    assert (got.low, got.value, got.high) == pytest.approx((2.0, 2.0, 2.0))


def test_the_other_way_round_is_the_inverse() -> None:
    one, other = ratio_over_rounds([2.0, 3.0], [1.0, 1.0]), ratio_over_rounds([1.0, 1.0], [2.0, 3.0])
    assert (other.low, other.value, other.high) == pytest.approx((1 / one.high, 1 / one.value, 1 / one.low))


@pytest.mark.parametrize(("first", "second"), [([1.0], [1.0]), ([1.0, 2.0], [1.0]), ([], [])])
def test_too_few_rounds_are_refused(first: list[float], second: list[float]) -> None:
    with pytest.raises(ConfigError, match="give as many of each, 2 or more"):
        ratio_over_rounds(first, second)


def test_geometric_mean() -> None:
    assert geometric_mean([2.0, 8.0]) == pytest.approx(4.0)
