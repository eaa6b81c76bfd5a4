"""The demonstration: SFT, then RL on Rooms, measured on held-out tasks."""

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from rich.console import Console
from rich.table import Table

from turngym.benchmarks.report import BenchResult, improvement, write_result
from turngym.benchmarks.run import bench
from turngym.errors import MissingExtraError
from turngym.plot import plot_run
from turngym.training.metrics import read_metrics
from turngym.training.recipe import load_recipe
from turngym.training.run import Run, train
from turngym.training.settings import Recipe

RECIPE = "rooms-demo"
SUITE = "rooms-easy"


class Reporter(Protocol):
    """Shows a run in the terminal."""

    def row(self, row: Mapping[str, float | int | str]) -> None: ...
    def progress(self, what: str, done: int, total: int) -> None: ...
    def __enter__(self) -> Any: ...
    def __exit__(self, *error: object) -> None: ...


def run_demo(seed: int, out: Path, *, control: bool, console: Console, reporter: Reporter) -> dict[str, Any]:
    """Trains and measures; writes `out/report.json`, `out/curve.png` and the benchmark results.

    Args:
        seed: root of the run's chance; the test tasks are the same for every seed.
        control: also train SFT for as long as RL took, and SFT on the expert's tokens only.

    Returns:
        The report: success with interval of each agent, improvements, seconds.
    """
    started = time.perf_counter()
    console.print(
        f"turngym demo, seed {seed}: a tiny agent learns rooms from nothing. About four minutes on two cores."
    )
    run = _train(load_recipe(RECIPE, run__seed=seed, run__out=str(out / f"seed-{seed}")), reporter)
    measured = time.perf_counter()
    agents = {
        "random": "random",
        "expert": "expert",
        "sft": str(run.out / "sft" / "final"),
        "rl": str(run.out / "rl" / "final"),
    }
    results = {name: measure(spec, run.out / "bench" / name, console) for name, spec in agents.items()}
    report = build_report(seed, results)
    # A run that was trained before, or in two parts, still took its training time.
    trained_s = float(run.metrics()[-1]["time/total_s"])
    report["seconds"] = round(
        max(time.perf_counter() - started, trained_s + time.perf_counter() - measured), 1
    )
    _write(report, results, run, out, console)
    if control:
        report |= _controls(seed, run, results, out, console, reporter)
        _write(report, results, run, out, console)
    return report


def measure(agent: str, stem: Path, console: Console) -> dict[str, BenchResult]:
    """Results of an agent on the suite, by mode; a scripted agent's one figure stands for both."""
    results = bench(SUITE, agent=agent, console=console)
    for result in results:
        write_result(result, stem.with_name(f"{stem.name}-{result.mode}.json"))
    if len(results) == 1:
        return {"greedy": results[0], "sampled": results[0]}
    return {result.mode: result for result in results}


def build_report(seed: int, results: Mapping[str, Mapping[str, BenchResult]]) -> dict[str, Any]:
    """The figures as plain values, with RL's gain over its SFT start."""
    report: dict[str, Any] = {"seed": seed, "suite": SUITE, "panel_hash": results["rl"]["greedy"].panel_hash}
    for name, modes in results.items():
        report[name] = {
            mode: {"success": r.success, "low": r.low, "high": r.high, "n": r.num_episodes}
            for mode, r in modes.items()
        }
    for mode in ("greedy", "sampled"):
        gain = improvement(results["sft"][mode], results["rl"][mode]).improvement
        report[f"rl_over_sft_{mode}"] = {"points": gain.points, "low": gain.low, "high": gain.high}
    return report


def _train(recipe: Recipe, reporter: Reporter) -> Run:
    with reporter:
        return train(recipe, on_row=reporter.row, on_progress=reporter.progress)


def _controls(
    seed: int,
    run: Run,
    results: dict[str, dict[str, BenchResult]],
    out: Path,
    console: Console,
    reporter: Reporter,
) -> dict[str, Any]:
    """SFT for the seconds that RL took besides its own, and SFT on the expert's tokens only."""
    recipe = load_recipe(RECIPE, run__seed=seed)
    rows = [row for row in run.metrics() if "time/update_s" in row]
    first = recipe.stages[0].sft
    if first is None:
        raise AssertionError(f"{RECIPE} must begin with SFT")
    sft_s = _seconds(rows, "sft")
    rl_s = _seconds(rows, "rl")
    longer = round(first.steps * (1 + rl_s / sft_s))
    report: dict[str, Any] = {}
    for name, changes in (
        ("sft_same_time", {"sft__steps": longer}),
        ("sft_expert_only", {"sft__train_on": "expert"}),
    ):
        console.print(f"Control {name}: {changes}")
        other = load_recipe(RECIPE, run__seed=seed, run__out=str(out / f"seed-{seed}-{name}"), **changes)
        control = train(other, only="sft", on_row=reporter.row, on_progress=reporter.progress)
        results[name] = measure(str(control.final), run.out / "bench" / name, console)
        seconds = _seconds(control.metrics(), "sft")
        report[name] = build_report(seed, results)[name] | {
            "steps": changes.get("sft__steps", first.steps),
            "seconds": round(seconds, 1),
        }
    return report


def _seconds(rows: list[dict[str, float | int | str]], stage: str) -> float:
    """Wall seconds of a stage's rollouts and updates, without validation and checkpoints."""
    mine = [row for row in rows if row["stage"] == stage]
    return sum(float(row.get("time/rollout_s", 0)) + float(row.get("time/update_s", 0)) for row in mine)


def _write(
    report: dict[str, Any],
    results: Mapping[str, Mapping[str, BenchResult]],
    run: Run,
    out: Path,
    console: Console,
) -> None:
    text = json.dumps(report, indent=1)
    (out / "report.json").write_text(text, encoding="utf-8")
    (run.out / "report.json").write_text(text, encoding="utf-8")
    table = Table(
        title=f"Success on the {results['rl']['greedy'].num_panel} test tasks of {SUITE}, 95 % intervals",
        title_justify="left",
    )
    for column in ("agent", "greedy", "sampled"):
        table.add_column(column)
    for name, modes in results.items():
        table.add_row(name, *(_figure(modes[mode]) for mode in ("greedy", "sampled")))
    console.print(table)
    for mode in ("greedy", "sampled"):
        gain = report[f"rl_over_sft_{mode}"]
        console.print(
            f"RL over SFT, {mode}: {gain['points']:+.1f} points, from {gain['low']:+.1f} to {gain['high']:+.1f}.",
            highlight=False,
        )
    bars = {f"{name}, {mode}": _bar(results[name][mode]) for name in results for mode in _modes(name)}
    try:
        plot_run(
            read_metrics(run.out / "metrics.jsonl"),
            out / "curve.png",
            title=f"SFT, then RL (seed {report['seed']})",
            bars=bars,
        )
        console.print(f"Curve: {out / 'curve.png'}", highlight=False)
    except MissingExtraError as error:
        console.print(f"No curve: {error}", highlight=False, markup=False)
    console.print(f"Report: {out / 'report.json'}   {report['seconds']} s in all.", highlight=False)


def _modes(name: str) -> tuple[str, ...]:
    return ("greedy",) if name in ("random", "expert") else ("greedy", "sampled")


def _bar(result: BenchResult) -> tuple[float, float, float]:
    return result.success, result.low, result.high


def _figure(result: BenchResult) -> str:
    return f"{100 * result.success:.1f} %  ({100 * result.low:.1f} to {100 * result.high:.1f})"
