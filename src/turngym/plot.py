"""Curves of a run as a picture (extra `plot`)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turngym.errors import MissingExtraError

Row = Mapping[str, float | int | str]


@dataclass(frozen=True, slots=True)
class Bar:
    """Success of an agent on the test tasks, with its 95 % interval; shares in [0, 1]."""

    label: str
    success: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class _Line:
    """A success over time, as it is drawn."""

    key: str
    label: str
    colour: str
    marker: str


_LINES = (
    _Line("rollout/success", "training rollouts (sampled)", "#9aa7b5", ""),
    _Line("validation/greedy_success", "validation, greedy", "#1f6f8b", "o"),
    _Line("validation/sampled_success", "validation, sampled", "#d1793b", "o"),
)


def plot_run(rows: Sequence[Row], path: Path, *, title: str, bars: Sequence[Bar]) -> None:
    """Draws success over time with the final figures beside it.

    Args:
        rows: rows of metrics.jsonl.
        path: PNG to write.
        bars: figures on the test tasks, from top to bottom.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    try:
        import matplotlib

        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError as error:
        raise MissingExtraError("The curve needs matplotlib: pip install 'turngym[plot]'") from error
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(11, 4.2), width_ratios=[1.6, 1])
    _draw_curves(left, rows)
    left.set(title=title)
    _draw_bars(right, bars)
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)


def _draw_curves(axis: Any, rows: Sequence[Row]) -> None:
    """Success against seconds, with a dashed line where a stage follows another."""
    for line in _LINES:
        points = [(float(row["time/total_s"]), 100 * float(row[line.key])) for row in rows if line.key in row]
        if points:
            seconds, successes = zip(*points, strict=True)
            style = {"color": line.colour, "marker": line.marker, "markersize": 4, "linewidth": 1.4}
            axis.plot(seconds, successes, label=line.label, **style)
    for before, row in zip(rows, rows[1:], strict=False):
        if row["stage"] != before["stage"]:
            second = float(row["time/total_s"])
            axis.axvline(second, color="#c8ccd1", linewidth=1, linestyle="--")
            axis.text(second, 2, f" {str(row['stage']).upper()} begins", color="#6b7280", fontsize=8)
    axis.set(xlabel="seconds of training", ylabel="success (%)", ylim=(0, 102))
    axis.set_xlim(left=0)
    if axis.lines:
        axis.legend(frameon=False, fontsize=8, loc="lower right")


def _draw_bars(axis: Any, bars: Sequence[Bar]) -> None:
    """The figures from top to bottom; each label stands right of its interval, beyond 100 % if need be."""
    shares = [100 * bar.success for bar in bars]
    below = [100 * (bar.success - bar.low) for bar in bars]
    above = [100 * (bar.high - bar.success) for bar in bars]
    places = range(len(bars))
    axis.barh(places, shares, xerr=[below, above], color="#1f6f8b", ecolor="#374151", capsize=3, height=0.6)
    for place, bar in enumerate(bars):
        axis.text(100 * bar.high + 2, place, f"{100 * bar.success:.1f} %", va="center", fontsize=8)
    axis.set_yticks(places, [bar.label for bar in bars])
    axis.invert_yaxis()
    axis.set(xlabel="success on test tasks (%), 95 % interval", xlim=(0, 118), xticks=range(0, 101, 20))
    axis.spines["bottom"].set_bounds(0, 100)
