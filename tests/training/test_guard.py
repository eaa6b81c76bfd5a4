"""Collapse alarms: each stops training after its patience, not before, and names the last good checkpoint."""

import math
from dataclasses import replace

import pytest

from turngym.errors import CollapseError
from turngym.training.guard import PATIENCE, Signs, watch
from turngym.training.settings import GuardSettings

GOOD = Signs(trained_episodes=8, success=0.5, repetition=0.1, entropy=0.6, grad_norm=1.0)
LIMITS = GuardSettings(flat_updates=4, min_entropy=0.1, max_entropy=2.0, min_success=0.2)


def updates_until_stopped(signs: Signs, settings: GuardSettings = LIMITS, most: int = 20) -> int:
    counts: dict[str, int] = {}
    for update in range(1, most + 1):
        try:
            counts = watch(signs, settings, counts, "out/checkpoints/step-7")
        except CollapseError:
            return update
    return 0


@pytest.mark.parametrize(
    ("signs", "patience"),
    [
        (GOOD, 0),
        (replace(GOOD, trained_episodes=0), 4),
        (replace(GOOD, entropy=0.05), PATIENCE),
        (replace(GOOD, entropy=2.5), PATIENCE),
        (replace(GOOD, success=0.1), PATIENCE),
        (replace(GOOD, repetition=0.99), PATIENCE),
        (replace(GOOD, grad_norm=1e5), 1),
        (replace(GOOD, grad_norm=math.nan), 1),
        (replace(GOOD, grad_norm=math.inf), 1),
        (replace(GOOD, entropy=None, grad_norm=None), 0),
    ],
)
def test_an_alarm_stops_after_its_patience(signs: Signs, patience: int) -> None:
    assert updates_until_stopped(signs) == patience


def test_an_entropy_that_is_no_number_is_out_of_bounds_by_its_gradient() -> None:
    assert updates_until_stopped(replace(GOOD, entropy=math.nan, grad_norm=math.nan)) == 1


def test_bounds_that_are_not_set_never_stop() -> None:
    signs = replace(GOOD, entropy=0.0, success=0.0)
    assert updates_until_stopped(signs, GuardSettings()) == 0


def test_one_good_update_starts_the_count_again() -> None:
    bad = replace(GOOD, entropy=0.05)
    counts: dict[str, int] = {}
    for signs in [bad, bad, GOOD, bad, bad]:
        counts = watch(signs, LIMITS, counts, "x")
    assert counts["low_entropy"] == 2
    with pytest.raises(CollapseError):
        watch(bad, LIMITS, counts, "x")


def test_the_counts_of_the_caller_are_not_changed() -> None:
    counts = {"flat": 1}
    watch(replace(GOOD, trained_episodes=0), LIMITS, counts, "x")
    assert counts == {"flat": 1}


def test_the_error_says_what_for_how_long_and_where_the_good_weights_are() -> None:
    with pytest.raises(CollapseError) as caught:
        watch(replace(GOOD, entropy=0.05), LIMITS, {"low_entropy": 2}, "out/checkpoints/step-7")
    assert str(caught.value) == (
        "Training stopped: entropy 0.05 is below 0.1 for 3 updates. The last good checkpoint is "
        "out/checkpoints/step-7. Lower rl.optim.lr, add kl or entropy, or choose easier tasks; "
        "limits stand under rl.guard."
    )
