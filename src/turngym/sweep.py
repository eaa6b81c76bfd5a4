"""Several recipes over several seeds from one start, and the table that compares them."""

import hashlib
import itertools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from turngym.agents.agent_config import AgentConfig
from turngym.agents.load import checkpoint_folder
from turngym.benchmarks.report import BenchResult, improvement, read_result, write_result
from turngym.benchmarks.run import MODES, bench
from turngym.benchmarks.statistics import compare_algorithms, improvement_over_seeds, success_interval
from turngym.benchmarks.suite import load_suite
from turngym.errors import ConfigError
from turngym.reporter import TrainingReporter
from turngym.training.recipe import load_recipe
from turngym.training.run import Run, train

START = "start"
"""Name of the common start in the report, and of its runs' folders."""

Results = dict[str, dict[int, dict[str, BenchResult]]]
"""Recipe -> seed -> mode -> result."""


@dataclass(frozen=True, slots=True)
class SweepOptions:
    """What a sweep plays.

    Attributes:
        start: recipe whose SFT stages give the common start of each seed, or a folder with weights, a run's or a
            model's, from which all seeds start; "" lets every recipe run whole.
        suite: benchmark on which starts and results are measured, once.
        seeds: root seeds; the same for all recipes.
        overrides: `key=value` for every recipe.
    """

    start: str
    suite: str
    seeds: tuple[int, ...]
    overrides: tuple[str, ...] = ()

    @property
    def shares_start(self) -> bool:
        """Whether all seeds start from the same weights."""
        return bool(self.start) and Path(self.start).is_dir()


def run_sweep(
    recipes: Sequence[str], options: SweepOptions, out: Path, *, reporter: TrainingReporter
) -> dict[str, Any]:
    """Trains every recipe with every seed, measures, compares; writes `out/sweep.json`.

    What is finished already is not done again, so a stopped sweep goes on.

    Raises:
        ConfigError: no recipe or seed, one named twice, or a wrong recipe or suite; before anything is trained.
    """
    _check(recipes, options)
    results: Results = {}
    for seed in options.seeds:
        start = _start(options, seed, out, reporter)
        if start is not None:
            results.setdefault(START, {})[seed] = _measured(start, options.suite, reporter.console)
        for recipe in recipes:
            run = _train_recipe(recipe, options, seed, start, out, reporter)
            results.setdefault(_name(recipe), {})[seed] = _measured(run, options.suite, reporter.console)
    report = sweep_report(results, options)
    (out / "sweep.json").write_text(json.dumps(report, indent=1), encoding="utf-8")
    _show(report, reporter.console)
    reporter.console.print(f"Raw figures: {out / 'sweep.json'}", highlight=False)
    return report


def sweep_report(results: Results, options: SweepOptions) -> dict[str, Any]:
    """Success of each recipe over all seeds, its gain over the start, and recipes against each other."""
    recipes: dict[str, Any] = {}
    for name, by_seed in results.items():
        # A start that all seeds share was played once, and counts once.
        played = options.seeds[:1] if name == START and options.shares_start else options.seeds
        recipes[name] = {mode: _over_seeds([by_seed[seed][mode] for seed in played]) for mode in MODES}
        if START in results and name != START:
            for mode in MODES:
                recipes[name][f"gain_{mode}"] = _gains(results[START], by_seed, options.seeds, mode)
    pairs = list(itertools.combinations([name for name in results if name != START], 2))
    return {
        "suite": options.suite,
        "start": options.start,
        "seeds": list(options.seeds),
        "overrides": list(options.overrides),
        "recipes": recipes,
        "against": [_against(results, first, second, mode) for mode in MODES for first, second in pairs],
    }


def _check(recipes: Sequence[str], options: SweepOptions) -> None:
    """Finds out before hours of work that something of the sweep is wrong."""
    if not recipes or not options.seeds:
        raise ConfigError("A sweep needs at least one recipe and one seed, as in --seeds 1,2,3.")
    names = [_name(recipe) for recipe in recipes]
    if len(set(names)) < len(names) or len(set(options.seeds)) < len(options.seeds):
        raise ConfigError("A recipe or a seed is named twice. Name each once.")
    if START in names:
        raise ConfigError(f"A recipe of a sweep cannot be called {START!r}. Give its file another name.")
    for recipe in recipes:
        load_recipe(recipe, options.overrides)
    if options.shares_start:
        AgentConfig.load(checkpoint_folder(options.start))
    elif options.start:
        load_recipe(options.start)
    load_suite(options.suite)


def _name(recipe: str) -> str:
    """What a recipe is called in the report and in the names of its folders."""
    return Path(recipe).stem


def _start(options: SweepOptions, seed: int, out: Path, reporter: TrainingReporter) -> Run | None:
    """Where the recipes begin with this seed; None where they run whole."""
    if not options.start:
        return None
    if options.shares_start:
        return Run(out / START, checkpoint_folder(options.start))
    recipe = load_recipe(options.start, run__seed=seed, run__out=str(out / f"{START}-seed{seed}"))
    with reporter:
        return train(recipe, only="sft", on_row=reporter.row, on_progress=reporter.progress)


def _train_recipe(
    name: str, options: SweepOptions, seed: int, start: Run | None, out: Path, reporter: TrainingReporter
) -> Run:
    """One run of a recipe; with a start, its RL stages alone, from the start's weights."""
    changes: dict[str, Any] = {"run__seed": seed, "run__out": str(out / f"{_name(name)}-seed{seed}")}
    if start is not None:
        changes["model"] = {"path": str(start.final)}
    recipe = load_recipe(name, options.overrides, **changes)
    only = None if start is None else "rl"
    with reporter:
        return train(recipe, only=only, on_row=reporter.row, on_progress=reporter.progress)


def _measured(run: Run, suite: str, console: Console) -> dict[str, BenchResult]:
    """Results on the suite, from the run's folder where they lie there already for the same weights."""
    stem = Path(suite).stem
    paths: dict[str, Path] = {mode: run.out / "bench" / f"{stem}-{mode}.json" for mode in MODES}
    measured, weights = run.out / "bench" / f"{stem}-weights.sha256", _digest(run.final)
    if not measured.is_file() or measured.read_text(encoding="utf-8") != weights:
        for result in bench(suite, agent=str(run.final), console=console):
            write_result(result, paths[result.mode])
        # Last, so that it vouches for whole results.
        measured.write_text(weights, encoding="utf-8")
    return {mode: read_result(path) for mode, path in paths.items()}


def _digest(folder: Path) -> str:
    """Of all files of a checkpoint, which times of files do not tell apart once a folder was copied."""
    digest = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        if path.is_file():
            with path.open("rb") as file:
                digest.update(f"{path.name}\n{hashlib.file_digest(file, 'sha256').hexdigest()}\n".encode())
    return digest.hexdigest()


def _over_seeds(results: Sequence[BenchResult]) -> dict[str, Any]:
    wins: dict[str, list[bool]] = {}
    for result in results:
        for task, one in result.wins.items():
            wins.setdefault(task, []).extend(one)
    interval = success_interval(wins, panel_hash=results[0].panel_hash)
    played = sum(len(one) for one in wins.values())
    return {
        "success": sum(sum(one) for one in wins.values()) / played,
        "low": interval.low,
        "high": interval.high,
        "kind": interval.kind,
        "n": played,
        "by_seed": [result.success for result in results],
    }


def _gains(
    start: dict[int, dict[str, BenchResult]],
    end: dict[int, dict[str, BenchResult]],
    seeds: Sequence[int],
    mode: str,
) -> dict[str, Any]:
    gains = [improvement(start[seed][mode], end[seed][mode]).improvement for seed in seeds]
    return {
        "by_seed": [{"points": gain.points, "low": gain.low, "high": gain.high} for gain in gains],
        "improves": improvement_over_seeds(gains).is_improvement,
    }


def _against(results: Results, first: str, second: str, mode: str) -> dict[str, Any]:
    one, two = (
        {seed: modes[mode].success for seed, modes in results[name].items()} for name in (first, second)
    )
    compared = compare_algorithms(one, two)
    return {
        "mode": mode,
        "first": first,
        "second": second,
        "points": compared.points,
        "low": compared.low,
        "high": compared.high,
        "verdict": compared.verdict,
    }


def _show(report: dict[str, Any], console: Console) -> None:
    table = Table(title=f"{report['suite']}, seeds {report['seeds']}, 95 % intervals", title_justify="left")
    for column in ("recipe", "greedy", "sampled", "gain greedy by seed", "gain sampled by seed"):
        table.add_column(column)
    for name, entry in report["recipes"].items():
        table.add_row(
            name,
            *(_figure(entry[mode]) for mode in MODES),
            *(_gain_text(entry.get(f"gain_{mode}")) for mode in MODES),
        )
    console.print(table)
    for row in report["against"]:
        console.print(
            f"{row['mode']}: {row['second']} - {row['first']} = {row['points']:+.1f} points "
            f"({row['low']:+.1f} to {row['high']:+.1f}): {_verdict(row)}.",
            highlight=False,
        )


def _verdict(row: Mapping[str, Any]) -> str:
    """The verdict with the winner's name."""
    for place in ("first", "second"):
        if row["verdict"] == f"{place} is better":
            return f"{row[place]} is better"
    return str(row["verdict"])


def _figure(entry: dict[str, Any]) -> str:
    return f"{100 * entry['success']:.1f} % ({100 * entry['low']:.1f} to {100 * entry['high']:.1f})"


def _gain_text(gain: dict[str, Any] | None) -> str:
    if gain is None:
        return ""
    parts = [f"{one['points']:+.1f} ({one['low']:+.1f} to {one['high']:+.1f})" for one in gain["by_seed"]]
    return "\n".join([*parts, "improves" if gain["improves"] else "not in every seed"])
