"""Student's t quantiles."""

import math

import pytest

from turngym.benchmarks.student_t import student_t_quantile
from turngym.errors import ConfigError


@pytest.mark.parametrize(
    ("df", "known"),
    [
        (1, 12.706),
        (2, 4.303),
        (3, 3.182),
        (4, 2.776),
        (5, 2.571),
        (9, 2.262),
        (10, 2.228),
        (30, 2.042),
        (120, 1.980),
    ],
)
def test_quantiles_are_those_of_printed_tables(df: int, known: float) -> None:
    assert student_t_quantile(df, level=0.95) == pytest.approx(known, abs=5e-4)


def test_closed_forms_of_one_and_two_degrees() -> None:
    # df = 1 is Cauchy: P(|T| < t) = 2/pi atan(t), so t = tan(pi/2 * level).
    assert student_t_quantile(1, level=0.95) == pytest.approx(math.tan(math.pi / 2 * 0.95), rel=1e-12)
    # df = 2: P(|T| < t) = t / sqrt(2 + t^2), so t = level * sqrt(2 / (1 - level^2)).
    assert student_t_quantile(2, level=0.95) == pytest.approx(0.95 * math.sqrt(2 / (1 - 0.95**2)), rel=1e-12)


def test_quantiles_fall_towards_the_normal_one() -> None:
    values = [student_t_quantile(df, level=0.95) for df in (1, 2, 3, 7, 20, 100, 2000)]
    assert values == sorted(values, reverse=True)
    assert values[-1] == pytest.approx(1.959964, abs=2e-3)


@pytest.mark.parametrize(("df", "level"), [(0, 0.95), (3, 0.0), (3, 1.0)])
def test_impossible_questions_are_refused(df: int, level: float) -> None:
    with pytest.raises(ConfigError):
        student_t_quantile(df, level=level)
