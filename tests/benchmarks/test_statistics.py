"""Intervals, comparisons and pass@k (DEFINITIONS section 7; cases 39 and 59)."""

from itertools import combinations
from math import comb, sqrt

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.benchmarks.statistics import (
    Improvement,
    compare_algorithms,
    improvement_over_seeds,
    paired_improvement,
    pass_at_k,
    pass_hat_k,
    pass_over_tasks,
    success_interval,
    wilson,
)
from turngym.errors import ConfigError

wins_of_tasks = st.dictionaries(
    st.text("abcdef", min_size=1, max_size=3), st.lists(st.booleans(), min_size=1, max_size=4), min_size=1
)


def random_wins(rng: np.random.Generator, *, num_tasks: int, repeats: int) -> dict[str, list[bool]]:
    """Tasks of chance difficulty (uniform over 0..1, so the true success is 0.5)."""
    chances = rng.random(num_tasks)
    return {str(at): [bool(won) for won in rng.random(repeats) < p] for at, p in enumerate(chances)}


# Wilson.


def test_wilson_matches_hand_computation() -> None:
    # 8 of 10, z = 1.96: z^2/n = .38415; middle = (.8 + .19207) / 1.38415 = .71674;
    # half = 1.95996 / 1.38415 * sqrt(.8 * .2 / 10 + .38415 / 40) = 1.41601 * .16001 = .22658
    got = wilson(8, 10)
    assert (got.value, got.kind, got.num_tasks) == (0.8, "wilson", 10)
    assert got.low == pytest.approx(0.49016, abs=1e-5)
    assert got.high == pytest.approx(0.94332, abs=1e-5)


def test_wilson_at_the_ends_has_the_closed_form() -> None:
    # 0 of n: [0, z^2 / (n + z^2)]; n = 10: 3.84146 / 13.84146
    none, all_won = wilson(0, 10), wilson(10, 10)
    assert (none.low, all_won.high) == (0.0, 1.0)
    assert none.high == pytest.approx(3.84146 / 13.84146, abs=1e-6)
    assert all_won.low == pytest.approx(10 / 13.84146, abs=1e-6)


@given(st.integers(1, 500).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n))))
def test_wilson_stays_in_bounds_holds_the_share_and_mirrors(pair: tuple[int, int]) -> None:
    won, trials = pair
    got, mirror = wilson(won, trials), wilson(trials - won, trials)
    assert 0 <= got.low <= got.value <= got.high <= 1
    assert got.low == pytest.approx(1 - mirror.high, abs=1e-12)


def test_wilson_covers_95_percent_on_average_by_exact_enumeration() -> None:
    trials, shares = 30, np.linspace(0.02, 0.98, 97)
    bounds = [wilson(won, trials) for won in range(trials + 1)]
    covered = [
        sum(
            comb(trials, won) * p**won * (1 - p) ** (trials - won)
            for won, one in enumerate(bounds)
            if one.low <= p <= one.high
        )
        for p in shares
    ]
    assert 0.94 < float(np.mean(covered)) < 0.97


@pytest.mark.parametrize(("won", "trials"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_refuses_impossible_counts(won: int, trials: int) -> None:
    with pytest.raises(ConfigError):
        wilson(won, trials)


# Success.


def test_one_repeat_gives_wilson_over_tasks() -> None:
    # Case 59: seven tasks, four wins is 4/7, in whatever batches they were played.
    wins = {str(task): [won] for task, won in enumerate([True, False, True, True, False, False, True])}
    got = success_interval(wins, panel_hash="any")
    assert got == wilson(4, 7)
    assert (got.value, got.num_tasks) == (4 / 7, 7)


def test_success_is_wins_over_episodes_not_a_mean_of_task_means() -> None:
    # 1/1 and 1/3: 2 of 4 episodes = .5; the mean of means would be .667.
    got = success_interval({"a": [True], "b": [True, False, False]}, panel_hash="any")
    assert (got.value, got.kind) == (0.5, "task bootstrap")


def test_bootstrap_over_two_tasks_spans_what_can_be_drawn() -> None:
    # Two tasks at 1 and 0: a resample is (a,a), (b,b) or mixed with 1/4, 1/4, 1/2, so 2.5 % and 97.5 % are 0 and 1.
    got = success_interval({"a": [True, True], "b": [False, False]}, panel_hash="any")
    assert (got.low, got.value, got.high) == (0.0, 0.5, 1.0)


def test_bootstrap_width_is_that_of_the_spread_over_tasks() -> None:
    # 100 tasks, half at 1, half at 0: standard error .5 / 10 = .05, bounds .5 -+ 1.96 * .05, however many repeats.
    wins = {str(task): [task < 50] * 8 for task in range(100)}
    got = success_interval(wins, panel_hash="any")
    assert got.low == pytest.approx(0.402, abs=0.015)
    assert got.high == pytest.approx(0.598, abs=0.015)


@pytest.mark.parametrize("won", [True, False])
def test_at_0_and_1_repeats_give_wilson_over_the_number_of_tasks(won: bool) -> None:
    got = success_interval({str(task): [won] * 4 for task in range(10)}, panel_hash="any")
    assert got.kind == "wilson"
    assert (got.low, got.high) == pytest.approx((wilson(10 * won, 10).low, wilson(10 * won, 10).high))


def test_tasks_that_are_all_alike_give_no_interval_of_width_0() -> None:
    # Wilson for 0 of 10 has the upper bound u = .27753; low = .5 - .5u, high = .5 + .5u
    got = success_interval({str(task): [True, False] for task in range(10)}, panel_hash="any")
    assert (got.low, got.high) == pytest.approx((0.5 - 0.138766, 0.5 + 0.138766), abs=1e-5)


def test_bootstrap_is_fixed_by_the_panels_hash_and_not_by_order() -> None:
    wins = random_wins(np.random.default_rng(1), num_tasks=23, repeats=3)
    again = dict(reversed(wins.items()))
    assert success_interval(wins, panel_hash="a") == success_interval(again, panel_hash="a")
    assert success_interval(wins, panel_hash="a") != success_interval(wins, panel_hash="b")


@settings(max_examples=25, deadline=None)
@given(wins_of_tasks)
def test_success_lies_in_its_interval(wins: dict[str, list[bool]]) -> None:
    got = success_interval(wins, panel_hash="any")
    assert 0 <= got.low <= got.value <= got.high <= 1
    assert got.high > got.low
    assert got.value == pytest.approx(sum(map(sum, wins.values())) / sum(map(len, wins.values())))


def test_bootstrap_covers_about_95_percent() -> None:
    rng = np.random.default_rng(7)
    intervals = [
        success_interval(random_wins(rng, num_tasks=40, repeats=3), panel_hash=str(at)) for at in range(120)
    ]
    covered = np.mean([one.low <= 0.5 <= one.high for one in intervals])
    # Taking all 120 episodes as independent would give the variance .25 / 120 = .0021 in place of
    # (1/12 + 1/6 / 3) / 40 = .0035, so bounds at 1.52 standard errors, which cover 87 %.
    assert 0.88 <= covered <= 1.0


def test_success_of_no_episode_is_refused() -> None:
    with pytest.raises(ConfigError, match="No episode was scored"):
        success_interval({"a": []}, panel_hash="any")


# Improvement of one agent over another.


def test_paired_improvement_averages_repeats_within_the_task() -> None:
    # a: 1/2 -> 1, gain .5; b: 0 -> 1/4, gain .25; mean 37.5 points, though episodes would say 1/3 -> 2/5.
    got = paired_improvement(
        {"a": [True, False], "b": [False]},
        {"a": [True], "b": [True, False, False, False]},
        panel_hash="any",
    )
    assert got.points == pytest.approx(37.5)
    # Resamples: both a (1/4), both b (1/4), mixed: so 2.5 % is 25 and 97.5 % is 50.
    assert (got.low, got.high) == pytest.approx((25.0, 50.0))
    assert (got.kind, got.num_tasks, got.is_improvement) == ("paired task bootstrap", 2, True)


def test_pairing_by_task_finds_what_two_intervals_overlap_on() -> None:
    # Of 100 tasks 50 are won before; after, the same ones and 8 more: +8 points, all in one direction.
    first = {str(task): [task < 50] for task in range(100)}
    second = {str(task): [task < 58] for task in range(100)}
    assert success_interval(first, panel_hash="p").high > success_interval(second, panel_hash="p").low
    got = paired_improvement(first, second, panel_hash="p")
    # sd of the gains = sqrt(.08 * .92) = .271, standard error 2.71 points: about 8 -+ 5.3
    assert got.points == pytest.approx(8)
    assert got.low == pytest.approx(8 - 1.96 * 100 * sqrt(0.08 * 0.92) / 10, abs=1.0)
    assert got.is_improvement


def test_improvement_matches_tasks_by_id_not_by_place() -> None:
    first = {"a": [True], "b": [False], "c": [False]}
    second = {"c": [False], "b": [True], "a": [True]}
    assert paired_improvement(first, second, panel_hash="p").points == pytest.approx(100 / 3)


def test_the_same_gain_everywhere_is_no_proof_from_two_tasks() -> None:
    # Wilson for 0 of 2: u = 3.84146 / 5.84146 = .65762; low = 1 - 2u = -31.5 points; of 10 tasks u = .27753: +44.5
    two = paired_improvement({"a": [False], "b": [False]}, {"a": [True], "b": [True]}, panel_hash="p")
    assert (two.points, two.low, two.high) == pytest.approx((100, -31.52, 100), abs=0.01)
    assert not two.is_improvement
    lost = {str(task): [False] for task in range(10)}
    won = {str(task): [True] for task in range(10)}
    assert paired_improvement(lost, won, panel_hash="p").low == pytest.approx(44.49, abs=0.01)


@settings(max_examples=25, deadline=None)
@given(wins_of_tasks)
def test_no_agent_improves_on_itself(wins: dict[str, list[bool]]) -> None:
    got = paired_improvement(wins, wins, panel_hash="p")
    assert got.points == 0
    assert got.low < 0 < got.high


def test_unmatched_and_empty_tasks_are_refused() -> None:
    with pytest.raises(ConfigError, match="2 tasks stand in one result only, such as 'a'"):
        paired_improvement({"a": [True]}, {"b": [True]}, panel_hash="p")
    with pytest.raises(ConfigError, match="'a' has no scored repeat"):
        paired_improvement({"a": [True]}, {"a": []}, panel_hash="p")
    with pytest.raises(ConfigError, match="no tasks"):
        paired_improvement({}, {}, panel_hash="p")


def test_improvement_needs_every_seeds_lower_bound_above_0() -> None:
    def seed(points: float, low: float) -> Improvement:
        return Improvement(points, low, points + 5, "paired task bootstrap", 100)

    good = improvement_over_seeds([seed(10, 4), seed(8, 1), seed(12, 6)])
    assert (good.is_improvement, good.mean_points, good.worst_low) == (True, 10, 1)
    assert not improvement_over_seeds([seed(10, 4), seed(8, 0), seed(12, 6)]).is_improvement
    with pytest.raises(ConfigError):
        improvement_over_seeds([])


# Comparison of algorithms.


def test_compare_algorithms_matches_hand_computation() -> None:
    # Differences 10, 12, 14 points: mean 12, s = 2, half = 4.30265 * 2 / sqrt(3) = 4.9683
    got = compare_algorithms({0: 0.5, 1: 0.6, 2: 0.7}, {2: 0.84, 0: 0.6, 1: 0.72})
    assert (got.points, got.low, got.high) == pytest.approx((12, 7.0317, 16.9683), abs=1e-3)
    assert (got.verdict, got.num_seeds, got.kind) == ("second is better", 3, "student t")
    mirrored = compare_algorithms({2: 0.84, 0: 0.6, 1: 0.72}, {0: 0.5, 1: 0.6, 2: 0.7})
    assert mirrored.verdict == "first is better"


def test_an_interval_with_0_is_too_few_to_tell() -> None:
    # Differences 2, 12, 22: mean 12, s = 10, half = 4.30265 * 10 / sqrt(3) = 24.84
    got = compare_algorithms({0: 0.5, 1: 0.5, 2: 0.5}, {0: 0.52, 1: 0.62, 2: 0.72})
    assert (got.low, got.high) == pytest.approx((-12.84, 36.84), abs=0.01)
    assert got.verdict == "too few to tell"


def test_one_seed_and_equal_differences_tell_nothing() -> None:
    one = compare_algorithms({0: 0.1}, {0: 0.9})
    assert (one.low, one.high, one.verdict) == (-100, 100, "too few to tell")
    assert compare_algorithms({0: 0.1, 1: 0.2}, {0: 0.2, 1: 0.3}).verdict == "too few to tell"


def test_seeds_must_match() -> None:
    with pytest.raises(ConfigError, match="Seed 1 stands in one"):
        compare_algorithms({0: 0.1, 1: 0.2}, {0: 0.1})
    with pytest.raises(ConfigError, match="no seeds"):
        compare_algorithms({}, {})


# pass@k (case 39).


@pytest.mark.parametrize(
    ("n", "c", "k", "at", "hat"),
    [
        (4, 0, 4, 0.0, 0.0),
        (5, 1, 1, 0.2, 0.2),
        (5, 2, 3, 0.9, 0.0),
        (8, 3, 4, 0.928571, 0.0),
        (1, 1, 1, 1.0, 1.0),
    ],
)
def test_pass_k_has_the_values_of_case_39(n: int, c: int, k: int, at: float, hat: float) -> None:
    assert pass_at_k(n, c, k) == pytest.approx(at, abs=1e-6)
    assert pass_hat_k(n, c, k) == pytest.approx(hat, abs=1e-6)


@given(
    st.integers(1, 8).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n), st.integers(1, n))),
)
def test_pass_k_equals_the_listing_of_all_subsets(counts: tuple[int, int, int]) -> None:
    n, c, k = counts
    subsets = list(combinations([True] * c + [False] * (n - c), k))
    assert pass_at_k(n, c, k) == pytest.approx(sum(map(any, subsets)) / len(subsets), abs=1e-12)
    assert pass_hat_k(n, c, k) == pytest.approx(sum(map(all, subsets)) / len(subsets), abs=1e-12)


@pytest.mark.parametrize(("n", "c", "k"), [(4, 0, 6), (4, 2, 6), (4, 2, 0), (4, 5, 2), (4, -1, 2)])
def test_impossible_k_is_an_error_and_never_1(n: int, c: int, k: int) -> None:
    for function in (pass_at_k, pass_hat_k):
        with pytest.raises(ConfigError):
            function(n, c, k)


def test_tasks_with_too_few_repeats_leave_and_are_counted() -> None:
    # a: n 3, c 1: pass@2 = 1 - C(2,2)/C(3,2) = 2/3, pass^2 = 0; b: n 2, c 2: 1 and 1; c has one repeat only.
    got = pass_over_tasks({"a": [True, False, False], "b": [True, True], "c": [True]}, 2)
    assert (got.at_least_one, got.all_of_them) == pytest.approx((5 / 6, 1 / 2))
    assert (got.num_tasks, got.num_left_out) == (2, 1)
    with pytest.raises(ConfigError, match="Choose k from 1 to 3"):
        pass_over_tasks({"a": [True, False, False], "c": [True]}, 4)
