"""Intervals, comparisons and pass@k, each exactly as DEFINITIONS section 7 states it.

All functions take plain numbers or `Wins` and know nothing of episodes. The level is 95 % throughout.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from turngym import seeding
from turngym.benchmarks.student_t import student_t_quantile
from turngym.errors import ConfigError

LEVEL = 0.95
Z = 1.959963984540054  # normal quantile at (1 + LEVEL) / 2
RESAMPLES = 10_000
DRAWS_PER_BLOCK = 2_000_000  # bounds the memory of a bootstrap to some tens of MiB

Wins = Mapping[str, Sequence[bool]]
"""Task id -> whether each scored repeat was won; episodes that ended in `infra` are left out."""

IntervalKind = Literal["wilson", "task bootstrap", "paired task bootstrap", "student t"]
Verdict = Literal["first is better", "second is better", "too few to tell"]


@dataclass(frozen=True, slots=True)
class Interval:
    """An estimate with its 95 % interval.

    Attributes:
        value, low, high: shares in [0, 1].
        kind: how the bounds were found.
        num_tasks: number of tasks behind it.
    """

    value: float
    low: float
    high: float
    kind: IntervalKind
    num_tasks: int


@dataclass(frozen=True, slots=True)
class Improvement:
    """How much better the second of two agents does on the same tasks.

    Attributes:
        points, low, high: difference of success, second minus first, in percentage points.
        kind: how the bounds were found.
        num_tasks: number of tasks that both played.
    """

    points: float
    low: float
    high: float
    kind: IntervalKind
    num_tasks: int

    @property
    def is_improvement(self) -> bool:
        """Whether the lower bound is above 0."""
        return self.low > 0


@dataclass(frozen=True, slots=True)
class SeedsImprovement:
    """The same improvement looked for under several training seeds.

    Attributes:
        is_improvement: every seed's lower bound is above 0.
        mean_points: mean over the seeds, in percentage points.
        worst_low: lowest of the seeds' lower bounds.
    """

    is_improvement: bool
    mean_points: float
    worst_low: float
    seeds: tuple[Improvement, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two algorithms over the same training seeds.

    Attributes:
        points, low, high: mean per-seed difference of success, second minus first, in percentage points.
    """

    points: float
    low: float
    high: float
    num_seeds: int
    verdict: Verdict
    kind: IntervalKind = "student t"


@dataclass(frozen=True, slots=True)
class PassK:
    """pass@k and pass^k, averaged over the tasks with at least k scored repeats.

    Attributes:
        at_least_one: pass@k, the chance that one of k tries succeeds.
        all_of_them: pass^k, the chance that k tries all succeed.
        num_left_out: tasks with fewer than k scored repeats, which count in neither.
    """

    k: int
    at_least_one: float
    all_of_them: float
    num_tasks: int
    num_left_out: int


def wilson(num_wins: int, num_trials: int) -> Interval:
    """Wilson's score interval of a share, without continuity correction.

    Source: Wilson 1927, J. Am. Stat. Assoc. 22, 209-212.

    Raises:
        ConfigError: no trials, or more wins than trials.
    """
    if num_trials < 1 or not 0 <= num_wins <= num_trials:
        raise ConfigError(
            f"{num_wins} wins of {num_trials}: an interval needs one trial or more and wins among them."
        )
    share = num_wins / num_trials
    weight = Z * Z / num_trials
    middle = (share + weight / 2) / (1 + weight)
    half = Z / (1 + weight) * math.sqrt(share * (1 - share) / num_trials + weight / (4 * num_trials))
    # At 0 and 1 the bound is exact; rounding must not put it beside the estimate.
    low = 0.0 if num_wins == 0 else max(0.0, middle - half)
    high = 1.0 if num_wins == num_trials else min(1.0, middle + half)
    return Interval(share, low, high, "wilson", num_trials)


def success_interval(wins: Wins, *, panel_hash: str) -> Interval:
    """Success, wins / scored episodes, with its interval over tasks.

    One repeat per task gives Wilson over tasks. Several (or several seeds, listed one after the other)
    give a percentile bootstrap that resamples whole tasks, `RESAMPLES` times, from the stream of the
    panel's hash; repeats of a task are no independent evidence.

    Where all tasks do equally well (at 0 and 1 always) that bootstrap has no width. The bounds are then
    those of `wilson` for none of the tasks being different, a different task doing anything from 0 to 1;
    at 0 and 1 this is Wilson over the number of tasks.

    Args:
        wins: tasks without scored repeats are left out.
        panel_hash: hash of the panel, which seeds the bootstrap.

    Raises:
        ConfigError: no task has a scored repeat.
    """
    tasks = sorted(task for task in wins if len(wins[task]))
    if not tasks:
        raise ConfigError(
            "No episode was scored, so there is no success to state. Look at the outcomes by reason."
        )
    won = np.array([sum(wins[task]) for task in tasks], dtype=np.float64)
    played = np.array([len(wins[task]) for task in tasks], dtype=np.float64)
    if played.max() == 1:
        return wilson(int(won.sum()), len(tasks))
    share = float(won.sum() / played.sum())
    if np.ptp(won / played) == 0:
        low, high = _bounds_without_spread(share, len(tasks), 0.0, 1.0)
        return Interval(share, low, high, "wilson", len(tasks))
    rng = seeding.generator("bootstrap", panel_hash)
    low, high = _percentiles(_resampled_ratios(won, played, rng))
    return Interval(share, low, high, "task bootstrap", len(tasks))


def paired_improvement(first: Wins, second: Wins, *, panel_hash: str) -> Improvement:
    """Success of the second agent minus the first's, over the same tasks, by a paired bootstrap.

    Repeats are averaged within each task, the difference is taken per task, and whole tasks are
    resampled. Where all tasks differ by the same amount the bounds come as in `success_interval`.

    Args:
        first, second: the same task ids in both; the number of repeats may differ.
        panel_hash: hash of the panel, which seeds the bootstrap.

    Raises:
        ConfigError: a task stands in one only, or has no scored repeat.
    """
    unmatched = sorted({*first} ^ {*second})
    if unmatched:
        raise ConfigError(
            f"{len(unmatched)} tasks stand in one result only, such as {unmatched[0]!r}. Compare results on the same tasks."
        )
    empty = sorted(task for task in first if not len(first[task]) or not len(second[task]))
    if empty or not first:
        what = f"Task {empty[0]!r} has no scored repeat" if empty else "There are no tasks"
        raise ConfigError(f"{what}, so nothing can be paired. Leave such tasks out of both and say how many.")
    tasks = sorted(first)
    gains = np.array([_mean(second[task]) - _mean(first[task]) for task in tasks])  # (tasks,) in [-1, 1]
    gain = float(gains.mean())
    kind: IntervalKind = "paired task bootstrap"
    if np.ptp(gains) == 0:
        kind, (low, high) = "wilson", _bounds_without_spread(gain, len(tasks), -1.0, 1.0)
    else:
        rng = seeding.generator("paired-bootstrap", panel_hash)
        low, high = _percentiles(_resampled_ratios(gains, np.ones(len(tasks)), rng))
    return Improvement(100 * gain, 100 * low, 100 * high, kind, len(tasks))


def improvement_over_seeds(seeds: Sequence[Improvement]) -> SeedsImprovement:
    """Whether one agent improves on another under every training seed.

    Raises:
        ConfigError: no seed.
    """
    if not seeds:
        raise ConfigError("No seed to judge by. Give the paired improvement of one seed or more.")
    return SeedsImprovement(
        is_improvement=all(seed.is_improvement for seed in seeds),
        mean_points=sum(seed.points for seed in seeds) / len(seeds),
        worst_low=min(seed.low for seed in seeds),
        seeds=tuple(seeds),
    )


def compare_algorithms(first: Mapping[int, float], second: Mapping[int, float]) -> Comparison:
    """Second minus first by Student's t over paired per-seed differences, df = seeds - 1.

    Bounds are cut to the possible -100..100 points. One seed, or differences that are all alike (a
    spread of 0 says that the measure is too coarse, not that training has no chance in it), leave them
    there: too few to tell.

    Args:
        first, second: seed -> success in [0, 1]; the same seeds in both.

    Raises:
        ConfigError: a seed stands in one only, or there is none.
    """
    unmatched = sorted({*first} ^ {*second})
    if unmatched or not first:
        what = f"Seed {unmatched[0]} stands in one algorithm only" if unmatched else "There are no seeds"
        raise ConfigError(f"{what}. Give the same seeds for both.")
    differences = np.array([100 * (second[seed] - first[seed]) for seed in sorted(first)])
    points, count = float(differences.mean()), len(differences)
    low, high = -100.0, 100.0
    if count > 1 and np.ptp(differences) > 1e-9:
        half = student_t_quantile(count - 1, level=LEVEL) * float(differences.std(ddof=1)) / math.sqrt(count)
        low, high = max(low, points - half), min(high, points + half)
    verdict: Verdict = "too few to tell"
    if low > 0 or high < 0:
        verdict = "second is better" if low > 0 else "first is better"
    return Comparison(points, low, high, count, verdict)


def pass_at_k(num_repeats: int, num_wins: int, k: int) -> float:
    """Unbiased chance that at least one of k tries succeeds: 1 - C(n-c, k) / C(n, k).

    Source: Chen et al. 2021, arXiv:2107.03374, eq. 1.

    Raises:
        ConfigError: k above the number of repeats, or below 1; wins outside 0..n.
    """
    _check_k(num_repeats, num_wins, k)
    return 1.0 - math.comb(num_repeats - num_wins, k) / math.comb(num_repeats, k)


def pass_hat_k(num_repeats: int, num_wins: int, k: int) -> float:
    """Unbiased chance that k tries all succeed (pass^k): C(c, k) / C(n, k).

    Source: Yao et al. 2024 (tau-bench), arXiv:2406.12045.

    Raises:
        ConfigError: k above the number of repeats, or below 1; wins outside 0..n.
    """
    _check_k(num_repeats, num_wins, k)
    return math.comb(num_wins, k) / math.comb(num_repeats, k)


def pass_over_tasks(wins: Wins, k: int) -> PassK:
    """Mean of `pass_at_k` and `pass_hat_k` over the tasks with at least k scored repeats.

    Raises:
        ConfigError: no task has k scored repeats, or k is below 1.
    """
    counts = [(len(repeats), sum(repeats)) for repeats in wins.values() if len(repeats) >= k]
    if k < 1 or not counts:
        most = max((len(repeats) for repeats in wins.values()), default=0)
        raise ConfigError(
            f"k = {k}, and no task has more than {most} scored repeats. Choose k from 1 to {most}."
        )
    return PassK(
        k=k,
        at_least_one=sum(pass_at_k(n, c, k) for n, c in counts) / len(counts),
        all_of_them=sum(pass_hat_k(n, c, k) for n, c in counts) / len(counts),
        num_tasks=len(counts),
        num_left_out=len(wins) - len(counts),
    )


def _check_k(num_repeats: int, num_wins: int, k: int) -> None:
    if not 1 <= k <= num_repeats or not 0 <= num_wins <= num_repeats:
        raise ConfigError(
            f"k = {k} with {num_wins} wins of {num_repeats}: k must be from 1 to {num_repeats}. Play more repeats."
        )


def _mean(repeats: Sequence[bool]) -> float:
    return sum(repeats) / len(repeats)


def _bounds_without_spread(value: float, num_tasks: int, least: float, most: float) -> tuple[float, float]:
    """Bounds where all tasks have the same value: some share of tasks, seen in none, may have any value."""
    unseen = wilson(0, num_tasks).high
    return value + unseen * (least - value), value + unseen * (most - value)


def _resampled_ratios(
    tops: NDArray[np.float64], bottoms: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float64]:
    """(RESAMPLES,) sum of tops / sum of bottoms, each over as many tasks drawn with replacement."""
    count = len(tops)
    rows = max(1, DRAWS_PER_BLOCK // count)
    ratios = []
    for start in range(0, RESAMPLES, rows):
        drawn = rng.integers(count, size=(min(rows, RESAMPLES - start), count))
        ratios.append(tops[drawn].sum(axis=1) / bottoms[drawn].sum(axis=1))
    return np.concatenate(ratios)


def _percentiles(values: NDArray[np.float64]) -> tuple[float, float]:
    low, high = np.quantile(values, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)
