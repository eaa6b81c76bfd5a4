"""Quantiles of Student's t for whole degrees of freedom, without SciPy."""

import math

from turngym.errors import ConfigError

BISECTIONS = 200  # far below the last bit of a float64


def student_t_quantile(df: int, *, level: float) -> float:
    """The t with P(|T| < t) = level, for Student's t with df degrees of freedom.

    With t = sqrt(df) tan(angle) that probability is a finite sum; it rises with the angle, which is found
    by bisection.

    Raises:
        ConfigError: df below 1, or level outside (0, 1).

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.
    """
    if df < 1 or not 0 < level < 1:
        raise ConfigError(
            f"Student's t with df = {df}, level = {level}: df is 1 or more, the level between 0 and 1."
        )
    low, high = 0.0, math.pi / 2
    for _ in range(BISECTIONS):
        middle = (low + high) / 2
        if _central_probability(middle, df) < level:
            low = middle
        else:
            high = middle
    return math.sqrt(df) * math.tan((low + high) / 2)


def _central_probability(angle: float, df: int) -> float:
    """P(|T| < sqrt(df) tan(angle))."""
    sine, cosine = math.sin(angle), math.cos(angle)
    odd = df % 2 == 1
    total = term = cosine if odd else 1.0
    for j in range(3 if odd else 2, df - 1, 2):
        term *= cosine * cosine * (j - 1) / j
        total += term
    if not odd:
        return sine * total
    return 2 / math.pi * (angle + (sine * total if df > 1 else 0.0))
