"""Several recipes over several seeds, on a toy game."""

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rich.console import Console

from turngym.benchmarks.report import BenchResult, read_result
from turngym.benchmarks.statistics import paired_improvement, success_interval
from turngym.config import dump_yaml
from turngym.errors import CheckpointError, ConfigError, UnknownNameError
from turngym.reporter import TrainingReporter
from turngym.sweep import SweepOptions, run_sweep
from turngym.training.run import train

SEEDS = (1, 2)
MODES = ("greedy", "sampled")
FOLDERS = [f"{name}-seed{seed}" for seed in SEEDS for name in ("start", "mean", "rloo")]


@pytest.fixture
def reporter() -> TrainingReporter:
    return TrainingReporter(Console(file=StringIO(), width=200, record=True))


@pytest.fixture
def options(
    toy: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> SweepOptions:
    """A sweep of the recipes mean.yaml and rloo.yaml in the current folder."""
    monkeypatch.chdir(tmp_path)
    rl = {"updates": 1, "groups": 4, "group_size": 4, "tasks": {"start": 8}, "optim": {"lr": 3e-2}}
    files = {
        "mean": toy(rl=rl | {"advantage": "reinforce"}),
        "rloo": toy(rl=rl | {"advantage": "rloo"}),
        "base": toy(rl=rl | {"advantage": "reinforce"}),
        "suite": {
            "name": "toy", "env": "toy_env:toy/Signs-v0", "tasks": {"split": "test", "count": 6}, "repeats": 2
        },
    }  # fmt: skip
    for name, values in files.items():
        (tmp_path / f"{name}.yaml").write_text(dump_yaml(values), encoding="utf-8")
    return SweepOptions("base.yaml", "suite.yaml", SEEDS)


def played(out: Path, name: str, mode: str) -> list[BenchResult]:
    return [read_result(out / f"{name}-seed{seed}" / "bench" / f"suite-{mode}.json") for seed in SEEDS]


def weights(folder: Path) -> bytes:
    return (folder / "model.safetensors").read_bytes()


def stamps(folder: Path) -> dict[str, int]:
    """When each file of a run was written, but for the recipe, which a look at a finished run writes again."""
    files = [path for path in folder.rglob("*") if path.is_file() and path.name != "recipe.yaml"]
    return {str(path): path.stat().st_mtime_ns for path in files}


def test_a_sweep_trains_from_one_start_and_compares(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter
) -> None:
    out = tmp_path / "out"
    report = run_sweep(["mean.yaml", "rloo.yaml"], options, out, reporter=reporter)
    assert json.loads((out / "sweep.json").read_text(encoding="utf-8")) == report
    assert sorted(path.name for path in out.iterdir()) == sorted([*FOLDERS, "sweep.json"])
    assert (report["suite"], report["start"], report["seeds"]) == ("suite.yaml", "base.yaml", [1, 2])
    for seed in SEEDS:
        start = weights(out / f"start-seed{seed}" / "final")
        for name in ("mean", "rloo"):
            assert weights(out / f"{name}-seed{seed}" / "rl" / "start") == start
            assert weights(out / f"{name}-seed{seed}" / "final") != start
            assert not (out / f"{name}-seed{seed}" / "sft").exists()
    assert weights(out / "start-seed1" / "final") != weights(out / "start-seed2" / "final")
    assert list(report["recipes"]) == ["start", "mean", "rloo"]
    for name in ("start", "mean", "rloo"):
        for mode in MODES:
            check_figures(report["recipes"][name][mode], played(out, name, mode))
    for name in ("mean", "rloo"):
        for mode in MODES:
            check_gain(
                report["recipes"][name][f"gain_{mode}"], played(out, "start", mode), played(out, name, mode)
            )
    assert "gain_greedy" not in report["recipes"]["start"]
    assert [(row["mode"], row["first"], row["second"]) for row in report["against"]] == [
        ("greedy", "mean", "rloo"), ("sampled", "mean", "rloo")
    ]  # fmt: skip
    for row in report["against"]:
        first, second = ([one.success for one in played(out, name, row["mode"])] for name in ("mean", "rloo"))
        assert row["points"] == pytest.approx(100 * (np.mean(second) - np.mean(first)))
        assert row["low"] <= row["points"] <= row["high"]
    shown = reporter.console.export_text()
    figures = report["recipes"]["rloo"]["sampled"]
    assert (
        f"{100 * figures['success']:.1f} % ({100 * figures['low']:.1f} to {100 * figures['high']:.1f})"
        in shown
    )


def check_figures(entry: dict[str, Any], results: list[BenchResult]) -> None:
    """Success over all seeds, from the outcomes that the benchmark's files hold."""
    wins: dict[str, list[bool]] = {}
    for result in results:
        for task in result.tasks:
            wins.setdefault(task.task, []).extend(outcome == "won" for outcome in task.outcomes)
    interval = success_interval(wins, panel_hash=results[0].panel_hash)
    assert entry["n"] == sum(result.num_episodes for result in results)
    assert entry["success"] == sum(result.outcomes["won"] for result in results) / entry["n"]
    assert (entry["low"], entry["high"]) == (interval.low, interval.high)
    assert entry["by_seed"] == [result.success for result in results]


def check_gain(entry: dict[str, Any], start: list[BenchResult], end: list[BenchResult]) -> None:
    """The gain of each seed, paired by task; an improvement only if every seed has its lower bound above 0."""
    for row, first, second in zip(entry["by_seed"], start, end, strict=True):
        wanted = paired_improvement(first.wins, second.wins, panel_hash=first.panel_hash)
        assert row["points"] == pytest.approx(100 * (second.success - first.success))
        assert (row["low"], row["high"]) == (wanted.low, wanted.high)
    assert entry["improves"] == all(row["low"] > 0 for row in entry["by_seed"])


def test_a_stopped_sweep_goes_on_and_does_nothing_twice(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, recipes = tmp_path / "out", ["mean.yaml", "rloo.yaml"]
    calls: list[object] = []

    def stopping(*arguments: Any, **more: Any) -> Any:
        calls.append(arguments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return train(*arguments, **more)

    with monkeypatch.context() as patched:
        patched.setattr("turngym.sweep.train", stopping)
        with pytest.raises(KeyboardInterrupt):
            run_sweep(recipes, options, out, reporter=reporter)
    assert sorted(path.name for path in out.iterdir()) == ["mean-seed1", "start-seed1"]
    before = stamps(out)
    report = run_sweep(recipes, options, out, reporter=reporter)
    after = stamps(out)
    assert {path: after[path] for path in before} == before
    assert run_sweep(recipes, options, out, reporter=reporter) == report
    assert {**stamps(out), str(out / "sweep.json"): 0} == {**after, str(out / "sweep.json"): 0}


def test_without_a_start_recipes_run_whole_and_a_new_run_is_measured_anew(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter
) -> None:
    out = tmp_path / "out"
    alone = replace(options, start="", seeds=(1,), overrides=("sft.steps=2",))
    report = run_sweep(["mean.yaml"], alone, out, reporter=reporter)
    assert (list(report["recipes"]), report["against"]) == (["mean"], [])
    assert list(report["recipes"]["mean"]) == ["greedy", "sampled"]
    assert (report["overrides"], (out / "mean-seed1" / "sft").is_dir()) == (["sft.steps=2"], True)
    measured = stamps(out / "mean-seed1" / "bench")
    fresh = replace(alone, overrides=("sft.steps=3", "run.resume=never"))
    run_sweep(["mean.yaml"], fresh, out, reporter=reporter)
    again = stamps(out / "mean-seed1" / "bench")
    assert all(again[path] > measured[path] for path in measured)


@pytest.mark.parametrize(
    ("recipes", "changes", "told"),
    [
        ([], {}, "at least one recipe and one seed"),
        (["mean.yaml"], {"seeds": ()}, "at least one recipe and one seed"),
        (["mean.yaml"], {"seeds": (1, 1)}, "named twice"),
        (["mean.yaml", "./mean.yaml"], {}, "named twice"),
        (["start.yaml"], {}, "cannot be called 'start'"),
        (["mean.yaml", "rooms-gpo"], {}, "No recipe 'rooms-gpo'. Did you mean 'rooms-grpo'?"),
        (["mean.yaml"], {"start": "none.yaml"}, "No recipe file 'none.yaml'"),
        (["mean.yaml"], {"suite": "room-easy"}, "No suite 'room-easy'"),
        (["mean.yaml"], {"overrides": ("rl.optim.lrr=1",)}, "lrr is not a setting"),
    ],
)
def test_what_is_wrong_is_told_before_anything_is_trained(
    recipes: list[str],
    changes: dict[str, Any],
    told: str,
    options: SweepOptions,
    tmp_path: Path,
    reporter: TrainingReporter,
) -> None:
    with pytest.raises(ConfigError) as caught:
        run_sweep(recipes, replace(options, **changes), tmp_path / "out", reporter=reporter)
    assert told in str(caught.value)
    assert isinstance(caught.value, UnknownNameError) == told.startswith("No ")
    assert not (tmp_path / "out").exists()


def test_all_seeds_start_from_the_weights_of_a_folder_that_are_measured_and_counted_once(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter
) -> None:
    run = train("base.yaml", only="sft", run__out=str(tmp_path / "given"))
    out, shared = tmp_path / "out", replace(options, start=str(run.out))
    report = run_sweep(["mean.yaml"], shared, out, reporter=reporter)
    assert sorted(path.name for path in out.iterdir()) == ["mean-seed1", "mean-seed2", "start", "sweep.json"]
    for seed in SEEDS:
        assert weights(out / f"mean-seed{seed}" / "rl" / "start") == weights(run.final)
    start = read_result(out / "start" / "bench" / "suite-greedy.json")
    check_figures(report["recipes"]["start"]["greedy"], [start])
    check_gain(report["recipes"]["mean"]["gain_greedy"], [start, start], played(out, "mean", "greedy"))
    before = stamps(out)
    assert run_sweep(["mean.yaml"], shared, out, reporter=reporter) == report
    assert {**stamps(out), str(out / "sweep.json"): 0} == {**before, str(out / "sweep.json"): 0}


def test_other_weights_in_the_same_place_are_measured_anew_whatever_the_times_of_their_files(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter
) -> None:
    older = train("base.yaml", only="sft", run__out=str(tmp_path / "older"), sft__steps=2)
    given = train("base.yaml", only="sft", run__out=str(tmp_path / "given"), sft__steps=3)
    out, shared = tmp_path / "out", replace(options, start=str(given.final), seeds=(1,))
    run_sweep(["mean.yaml"], shared, out, reporter=reporter)
    measured = stamps(out / "start")
    shutil.rmtree(given.final)
    shutil.copytree(older.final, given.final)
    again = replace(shared, overrides=("run.resume=never",))
    run_sweep(["mean.yaml"], again, out, reporter=reporter)
    assert all(when > measured[path] for path, when in stamps(out / "start").items())


def test_a_start_folder_without_a_checkpoint_is_told_before_anything_is_trained(
    options: SweepOptions, tmp_path: Path, reporter: TrainingReporter
) -> None:
    (tmp_path / "empty").mkdir()
    with pytest.raises(CheckpointError, match=r"empty holds no turngym_agent\.json"):
        run_sweep(["mean.yaml"], replace(options, start="empty"), tmp_path / "out", reporter=reporter)
    assert not (tmp_path / "out").exists()
