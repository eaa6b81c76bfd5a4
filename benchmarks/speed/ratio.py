"""The ratio of two speeds over several rounds, with its interval."""

import math
from collections.abc import Sequence

from turngym.benchmarks.statistics import LEVEL
from turngym.benchmarks.student_t import student_t_quantile
from turngym.config import Settings
from turngym.errors import ConfigError

MIN_ROUNDS = 2
"""One round has no spread, so no interval."""


class Ratio(Settings):
    """How many times as fast the first of two sides is."""

    value: float
    """Geometric mean of the rounds' ratios."""

    low: float
    """Lower bound of the 95 % interval."""

    high: float
    """Upper bound of the 95 % interval."""

    rounds: tuple[float, ...]
    """Ratio in each round."""


def ratio_over_rounds(first: Sequence[float], second: Sequence[float]) -> Ratio:
    """The ratio of the first speeds to the second ones, each pair from one round.

    Geometric mean of the per-round ratios r_1 .. r_n; the interval is Student's t of n - 1 degrees of freedom on
    their logarithms: exp(m -+ t s / sqrt(n)), m and s mean and standard deviation of ln r_i.

    Args:
        first, second: speeds above 0, in one unit.

    Raises:
        ConfigError: fewer than two rounds, or not as many of one as of the other.
    """
    num = len(first)
    if num < MIN_ROUNDS or len(second) != num:
        raise ConfigError(
            f"Ratio of {num} and {len(second)} speeds: give as many of each, {MIN_ROUNDS} or more."
        )
    ratios = [one / other for one, other in zip(first, second, strict=True)]
    logs = [math.log(ratio) for ratio in ratios]
    mean = math.fsum(logs) / num
    spread = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (num - 1))
    half = student_t_quantile(num - 1, level=LEVEL) * spread / math.sqrt(num)
    return Ratio(
        value=math.exp(mean), low=math.exp(mean - half), high=math.exp(mean + half), rounds=tuple(ratios)
    )


def geometric_mean(values: Sequence[float]) -> float:
    """Of numbers above 0."""
    return math.exp(math.fsum(math.log(value) for value in values) / len(values))
