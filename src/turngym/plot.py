"""Curves of a run as a picture (extra `plot`)."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from turngym.errors import MissingExtraError

Row = Mapping[str, float | int | str]


def plot_run(
    rows: Sequence[Row], path: Path, *, title: str, bars: Mapping[str, tuple[float, float, float]]
) -> None:
    """Draws success over time with the final figures beside it.

    Args:
        rows: rows of metrics.jsonl.
        path: PNG to write.
        bars: name -> (success, low, high) on the test tasks.

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
    colours = {
        "rollout/success": "#9aa7b5",
        "validation/greedy_success": "#1f6f8b",
        "validation/sampled_success": "#d1793b",
    }
    labels = {
        "rollout/success": "training rollouts (sampled)",
        "validation/greedy_success": "validation, greedy",
        "validation/sampled_success": "validation, sampled",
    }
    for key, colour in colours.items():
        points = [(float(row["time/total_s"]), 100 * float(row[key])) for row in rows if key in row]
        if points:
            seconds, successes = zip(*points, strict=True)
            marker = "" if key == "rollout/success" else "o"
            left.plot(
                seconds,
                successes,
                color=colour,
                label=labels[key],
                marker=marker,
                markersize=4,
                linewidth=1.4,
            )
    starts = [
        float(rows[i]["time/total_s"])
        for i in range(1, len(rows))
        if rows[i]["stage"] != rows[i - 1]["stage"]
    ]
    for second in starts:
        left.axvline(second, color="#c8ccd1", linewidth=1, linestyle="--")
        left.text(second, 2, " RL begins", color="#6b7280", fontsize=8)
    left.set(xlabel="seconds of training", ylabel="success (%)", ylim=(0, 102), title=title)
    left.legend(frameon=False, fontsize=8, loc="lower right")
    names = list(bars)
    shares = [100 * bars[name][0] for name in names]
    below = [100 * (bars[name][0] - bars[name][1]) for name in names]
    above = [100 * (bars[name][2] - bars[name][0]) for name in names]
    right.barh(names, shares, xerr=[below, above], color="#1f6f8b", ecolor="#374151", capsize=3, height=0.6)
    for place, share in enumerate(shares):
        right.text(min(share + above[place] + 2, 86), place, f"{share:.1f} %", va="center", fontsize=8)
    right.invert_yaxis()
    right.set(xlabel="success on test tasks (%), 95 % interval", xlim=(0, 102))
    for axis in (left, right):
        axis.spines[["top", "right"]].set_visible(False)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
