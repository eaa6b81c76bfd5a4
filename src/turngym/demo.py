"""The demonstration: SFT, then RL on Rooms, measured on held-out tasks."""

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from turngym.benchmarks.report import BenchResult, improvement, write_result
from turngym.benchmarks.run import MODES, BenchOptions, bench
from turngym.errors import MissingExtraError
from turngym.plot import Bar, plot_run
from turngym.reporter import TrainingReporter
from turngym.training.metrics import MetricValue
from turngym.training.recipe import load_recipe
from turngym.training.run import Run, train
from turngym.training.settings import Recipe
from turngym.viewer.view import view

RECIPE = "rooms-demo"
SUITE = "rooms-easy"

KEPT = ("sft", "rl")
"""Agents whose greedy episodes, one of each test task, are kept and go on the page."""

Results = dict[str, dict[str, BenchResult]]
"""Agent -> mode -> result; a scripted agent's one figure stands for both modes."""


def run_demo(seed: int, out: Path, *, control: bool, reporter: TrainingReporter) -> dict[str, Any]:
    """Trains and measures; writes the benchmark results, and into `out` report.json, curve.png, episodes.html.

    Args:
        seed: root of the run's chance; the test tasks are the same for every seed.
        control: also train SFT for as long as RL took, and SFT on the expert's tokens only.

    Returns:
        The report: success with interval of each agent, improvements, seconds.
    """
    started, console = time.perf_counter(), reporter.console
    console.print(
        f"turngym demo, seed {seed}: a tiny agent learns rooms from nothing. About four minutes on two cores."
    )
    recipe = load_recipe(RECIPE, run__seed=seed, run__out=str(out / f"seed-{seed}"))
    with reporter:
        run = train(recipe, on_row=reporter.row, on_progress=reporter.progress)
    measured = time.perf_counter()
    agents = {
        "random": "random",
        "expert": "expert",
        "sft": str(run.out / "sft" / "final"),
        "rl": str(run.out / "rl" / "final"),
    }
    results = {
        name: measure(spec, run.out / "bench" / name, console, keep=name in KEPT)
        for name, spec in agents.items()
    }
    page = view([_episodes_path(run.out / "bench" / name) for name in KEPT], out=out / "episodes.html")
    report = build_report(seed, results)
    # A run that was trained before, or in two parts, still took its training time.
    trained_s = float(run.metrics()[-1]["time/total_s"])
    now = time.perf_counter()
    report["seconds"] = round(max(now - started, trained_s + now - measured), 1)
    _write(report, results, run, out, console)
    console.print(f"Episodes: {page}  (open it in a browser)", highlight=False)
    if control:
        for name, one in _train_controls(recipe, run, reporter).items():
            results[name] = measure(str(one.run.final), run.out / "bench" / name, console)
            report[name] = _figures(results[name]) | {"steps": one.steps, "seconds": round(one.seconds, 1)}
        _write(report, results, run, out, console)
    return report


def measure(agent: str, stem: Path, console: Console, *, keep: bool = False) -> dict[str, BenchResult]:
    """Results of an agent on the suite, by mode; written to files that begin with `stem`.

    Args:
        keep: also writes the greedy episodes, in place of those of an earlier demonstration.
    """
    path = _episodes_path(stem) if keep else None
    if path is not None:
        path.unlink(missing_ok=True)
    results = list(
        bench(SUITE, agent=agent, modes=MODES[:1], console=console, options=BenchOptions(episodes_path=path))
    )
    if results[0].mode != "scripted":
        results += bench(SUITE, agent=agent, modes=MODES[1:], console=console)
    for result in results:
        write_result(result, stem.with_name(f"{stem.name}-{result.mode}.json"))
    by_mode = {result.mode: result for result in results}
    return {mode: by_mode.get(mode, results[0]) for mode in MODES}


def _episodes_path(stem: Path) -> Path:
    return stem.with_name(f"{stem.name}-episodes.jsonl")


def build_report(seed: int, results: Results) -> dict[str, Any]:
    """The figures as plain values, with RL's gain over its SFT start."""
    report: dict[str, Any] = {"seed": seed, "suite": SUITE, "panel_hash": results["rl"]["greedy"].panel_hash}
    report |= {name: _figures(modes) for name, modes in results.items()}
    for mode in MODES:
        gain = improvement(results["sft"][mode], results["rl"][mode]).improvement
        report[f"rl_over_sft_{mode}"] = {"points": gain.points, "low": gain.low, "high": gain.high}
    return report


@dataclass(frozen=True, slots=True)
class Control:
    """SFT that was trained instead of RL, to tell what more SFT would have given."""

    run: Run
    steps: int
    seconds: float


def _train_controls(recipe: Recipe, run: Run, reporter: TrainingReporter) -> dict[str, Control]:
    """SFT for the seconds that RL took besides its own, and SFT on the expert's tokens only."""
    first = recipe.stages[0].sft
    if first is None:
        raise AssertionError(f"{RECIPE} must begin with SFT")
    rows = run.metrics()
    longer = round(first.steps * (1 + training_seconds(rows, "rl") / training_seconds(rows, "sft")))
    changed = {
        "sft_same_time": first.model_copy(update={"steps": longer}),
        "sft_expert_only": first.model_copy(update={"train_on": "expert"}),
    }
    controls = {}
    for name, settings in changed.items():
        reporter.console.print(f"Control {name}: steps={settings.steps} train_on={settings.train_on}")
        other = load_recipe(
            recipe,
            run__out=f"{run.out}-{name}",
            sft__steps=settings.steps,
            sft__train_on=settings.train_on,
        )
        with reporter:
            trained = train(other, only="sft", on_row=reporter.row, on_progress=reporter.progress)
        seconds = training_seconds(trained.metrics(), settings.name)
        controls[name] = Control(trained, settings.steps, seconds)
    return controls


def training_seconds(rows: Sequence[Mapping[str, MetricValue]], stage: str) -> float:
    """Wall seconds of a stage's rollouts and updates, without validation and checkpoints."""
    mine = [row for row in rows if row["stage"] == stage]
    return sum(float(row.get("time/rollout_s", 0)) + float(row.get("time/update_s", 0)) for row in mine)


def _figures(modes: Mapping[str, BenchResult]) -> dict[str, Any]:
    return {
        mode: {"success": r.success, "low": r.low, "high": r.high, "n": r.num_episodes}
        for mode, r in modes.items()
    }


def _write(report: dict[str, Any], results: Results, run: Run, out: Path, console: Console) -> None:
    """Writes the report and the curve, and prints what they say."""
    text = json.dumps(report, indent=1)
    for folder in (out, run.out):
        (folder / "report.json").write_text(text, encoding="utf-8")
    console.print(_table(results))
    for mode in MODES:
        gain = report[f"rl_over_sft_{mode}"]
        bounds = f"from {gain['low']:+.1f} to {gain['high']:+.1f}"
        console.print(f"RL over SFT, {mode}: {gain['points']:+.1f} points, {bounds}.", highlight=False)
    curve = out / "curve.png"
    try:
        plot_run(run.metrics(), curve, title=f"SFT, then RL (seed {report['seed']})", bars=_bars(results))
        console.print(f"Curve: {curve}", highlight=False)
    except MissingExtraError as error:
        console.print(f"No curve: {error}", highlight=False, markup=False)
    console.print(f"Report: {out / 'report.json'}   {report['seconds']} s in all.", highlight=False)


def _table(results: Results) -> Table:
    tasks = results["rl"]["greedy"].num_panel
    table = Table(title=f"Success on the {tasks} test tasks of {SUITE}, 95 % intervals", title_justify="left")
    for column in ("agent", *MODES):
        table.add_column(column)
    for name, modes in results.items():
        table.add_row(name, *(_figure(modes[mode]) for mode in MODES))
    return table


def _figure(result: BenchResult) -> str:
    return f"{100 * result.success:.1f} %  ({100 * result.low:.1f} to {100 * result.high:.1f})"


def _bars(results: Results) -> list[Bar]:
    """A bar per agent and mode; one for a scripted agent, which plays one way."""
    bars = []
    for name, modes in results.items():
        for mode, result in modes.items():
            label = name if result.mode == "scripted" else f"{name}, {mode}"
            bar = Bar(label, result.success, result.low, result.high)
            if bar not in bars:
                bars.append(bar)
    return bars
