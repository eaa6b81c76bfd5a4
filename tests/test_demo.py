"""The demonstration, on a toy game."""

import base64
import gzip
import json
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from turngym import demo
from turngym.benchmarks.report import read_result
from turngym.benchmarks.suite import load_suite, panel_of
from turngym.config import dump_yaml
from turngym.episode_file import read_episodes
from turngym.reporter import TrainingReporter
from turngym.training.metrics import MetricValue, read_metrics
from turngym.training.recipe import load_saved

NUM_TASKS, REPEATS = 6, 2
STEPS = 8


@pytest.fixture
def reporter() -> TrainingReporter:
    return TrainingReporter(Console(file=StringIO(), width=200, record=True))


@pytest.fixture(autouse=True)
def toy_demo(toy: Callable[..., dict[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes the demonstration one of the toy game: seconds become a fraction of one."""
    sft = {
        "steps": STEPS, "episodes_per_step": 4, "tasks": {"count": 8}, "demos": {"noise": [0.5]},
        "train_on": "all", "optim": {"lr": 1e-2},
    }  # fmt: skip
    suite = {
        "name": "toy", "env": "toy_env:toy/Signs-v0", "tasks": {"split": "test", "count": NUM_TASKS},
        "repeats": REPEATS,
    }  # fmt: skip
    for name, values in (("recipe", toy(sft=sft)), ("suite", suite)):
        (tmp_path / f"{name}.yaml").write_text(dump_yaml(values), encoding="utf-8")
        monkeypatch.setattr(demo, "RECIPE" if name == "recipe" else "SUITE", str(tmp_path / f"{name}.yaml"))


def test_the_report_has_every_agent_the_gain_and_the_seconds(
    tmp_path: Path, reporter: TrainingReporter
) -> None:
    out = tmp_path / "demo"
    report = demo.run_demo(3, out, control=False, reporter=reporter)
    agents = ("random", "expert", "sft", "rl")
    assert set(report) == {
        "seed", "suite", "panel_hash", "seconds", *agents, "rl_over_sft_greedy", "rl_over_sft_sampled"
    }  # fmt: skip
    assert (report["seed"], report["suite"]) == (3, demo.SUITE)
    assert report["panel_hash"] == panel_of(load_suite(demo.SUITE)).hash
    for agent in agents:
        assert list(report[agent]) == ["greedy", "sampled"]
        for figures in report[agent].values():
            assert list(figures) == ["success", "low", "high", "n"]
            assert 0 <= figures["low"] <= figures["success"] <= figures["high"] <= 1
    assert report["expert"]["greedy"] == report["expert"]["sampled"]
    assert report["expert"]["greedy"]["success"] == 1.0
    assert [report[name]["greedy"]["n"] for name in agents] == [NUM_TASKS] * 4
    assert [report[name]["sampled"]["n"] for name in ("sft", "rl")] == [NUM_TASKS * REPEATS] * 2
    for mode in ("greedy", "sampled"):
        gain = report[f"rl_over_sft_{mode}"]
        success = {name: report[name][mode]["success"] for name in ("sft", "rl")}
        assert gain["points"] == pytest.approx(100 * (success["rl"] - success["sft"]))
        assert gain["low"] <= gain["points"] <= gain["high"]
        bench = read_result(out / "seed-3" / "bench" / f"rl-{mode}.json")
        assert success["rl"] == bench.success == bench.outcomes["won"] / bench.num_episodes
    for path in (out / "report.json", out / "seed-3" / "report.json"):
        assert json.loads(path.read_text(encoding="utf-8")) == report
    shown = reporter.console.export_text()
    assert f"Report: {out / 'report.json'}   {report['seconds']} s in all." in shown
    assert f"Episodes: {out / 'episodes.html'}" in shown


def test_the_page_has_the_greedy_episodes_that_the_report_counts(
    tmp_path: Path, reporter: TrainingReporter
) -> None:
    out = tmp_path / "demo"
    report = demo.run_demo(1, out, control=False, reporter=reporter)
    for agent in ("sft", "rl"):
        episodes = read_episodes(out / "seed-1" / "bench" / f"{agent}-episodes.jsonl")
        assert len(episodes) == NUM_TASKS
        assert sum(one.success for one in episodes) / NUM_TASKS == report[agent]["greedy"]["success"]
        assert all(one.segments for one in episodes)
    page = (out / "episodes.html").read_text(encoding="utf-8")
    index = json.loads(gzip.decompress(base64.b64decode(page.partition('id="data-0">')[2].partition("<")[0])))
    assert [source["shown"] for source in index["sources"]] == [NUM_TASKS, NUM_TASKS]
    # The tokenizers were found, so the page shows words and not only ids.
    assert [source["tokenizer"] for source in index["sources"]] == [0, 1]
    assert all(one["pieces"] for one in index["tokenizers"])


def test_the_controls_are_sft_for_as_long_and_on_expert_tokens(
    tmp_path: Path, reporter: TrainingReporter
) -> None:
    out = tmp_path / "demo"
    report = demo.run_demo(1, out, control=True, reporter=reporter)
    rows = read_metrics(out / "seed-1" / "metrics.jsonl")
    share = demo.training_seconds(rows, "rl") / demo.training_seconds(rows, "sft")
    same, expert = report["sft_same_time"], report["sft_expert_only"]
    assert (same["steps"], expert["steps"]) == (round(STEPS * (1 + share)), STEPS)
    for name, control in (("sft_same_time", same), ("sft_expert_only", expert)):
        assert list(control) == ["greedy", "sampled", "steps", "seconds"]
        folder = out / f"seed-1-{name}"
        trained = read_metrics(folder / "metrics.jsonl")
        assert len(trained) == control["steps"]
        assert control["seconds"] == round(demo.training_seconds(trained, "sft"), 1)
        (stage,) = load_saved(folder / "recipe.yaml").stages
        assert stage.sft is not None
        assert stage.sft.train_on == ("expert" if control is expert else "all")
    assert json.loads((out / "report.json").read_text(encoding="utf-8")) == report


def test_without_matplotlib_the_demo_ends_and_says_what_is_missing(
    tmp_path: Path, reporter: TrainingReporter, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    demo.run_demo(1, tmp_path / "demo", control=False, reporter=reporter)
    assert (
        "No curve: The curve needs matplotlib: pip install 'turngym[plot]'" in reporter.console.export_text()
    )
    assert (tmp_path / "demo" / "report.json").is_file()
    assert not (tmp_path / "demo" / "curve.png").exists()


def test_a_second_demo_trains_nothing_and_finds_the_same(tmp_path: Path, reporter: TrainingReporter) -> None:
    def updates() -> list[str]:
        return [
            line for line in reporter.console.export_text().splitlines() if line.startswith(("sft ", "rl "))
        ]

    first = demo.run_demo(1, tmp_path / "demo", control=False, reporter=reporter)
    trained_s = float(read_metrics(tmp_path / "demo" / "seed-1" / "metrics.jsonl")[-1]["time/total_s"])
    assert len(updates()) == 3
    again = demo.run_demo(1, tmp_path / "demo", control=False, reporter=reporter)
    assert updates() == []
    assert {**again, "seconds": 0} == {**first, "seconds": 0}
    assert again["seconds"] >= round(trained_s, 1)


def test_training_seconds_leave_out_validation_and_other_stages() -> None:
    rows: list[dict[str, MetricValue]] = [
        {"stage": "sft", "time/update_s": 1.0, "time/total_s": 50.0},
        {"stage": "rl", "time/update_s": 2.0, "time/rollout_s": 3.0, "time/total_s": 90.0},
        {"stage": "rl", "time/total_s": 95.0},
    ]
    assert (demo.training_seconds(rows, "sft"), demo.training_seconds(rows, "rl")) == (1.0, 5.0)
