"""metrics.jsonl: valid JSON whatever the numbers, and cut back to the checkpoint on resumption."""

import json
import math
import re
from collections.abc import Mapping
from pathlib import Path

from turngym.training import metrics
from turngym.training.metrics import MetricsLog, MetricValue, read_metrics


def refuse(constant: str) -> float:
    raise AssertionError(f"{constant} is no JSON")


def test_numbers_that_are_not_finite_are_kept_as_text(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.write({"step": 1, "a": math.nan, "b": -math.inf, "c": 0.1 + 0.2, "stage": "rl\u2028"})
    [line] = log.path.read_text(encoding="utf-8").split("\n")[:-1]
    assert json.loads(line, parse_constant=refuse)["a"] == "nan"
    expected = {"step": 1, "a": "nan", "b": "-inf", "c": 0.30000000000000004, "stage": "rl\u2028"}
    assert read_metrics(log.path) == [expected]


def test_each_row_is_told_as_it_is_written(tmp_path: Path) -> None:
    told: list[Mapping[str, MetricValue]] = []
    log = MetricsLog(tmp_path / "metrics.jsonl", on_row=told.append)
    log.write({"step": 1})
    log.write({"step": 2})
    assert told == read_metrics(log.path) == [{"step": 1}, {"step": 2}]


def test_rows_after_the_checkpoint_and_half_written_ones_are_dropped(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    for step in (1, 2, 3, 4):
        log.write({"step": step})
    with log.path.open("a", encoding="utf-8") as file:
        file.write('{"step": 1, "lo')
    log.keep_until(2)
    assert read_metrics(log.path) == [{"step": 1}, {"step": 2}]
    log.write({"step": 3})
    assert log.path.read_bytes() == b'{"step": 1}\n{"step": 2}\n{"step": 3}\n'
    assert [path.name for path in tmp_path.iterdir()] == ["metrics.jsonl"]


def test_without_a_file_there_is_nothing_to_drop(tmp_path: Path) -> None:
    log = MetricsLog(tmp_path / "metrics.jsonl")
    log.keep_until(0)
    assert not log.path.exists()


def test_rows_of_another_program_are_dropped(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"loss": 1}\n[]\n3\n{"step": 1}\n', encoding="utf-8")
    MetricsLog(path).keep_until(5)
    assert read_metrics(path) == [{"step": 1}]


def documented() -> set[str]:
    """Names in the table of the module's docstring."""
    rows = [line.split("|")[1] for line in (metrics.__doc__ or "").splitlines() if line.startswith("| `")]
    return {name for row in rows for name in re.findall(r"`([^`]+)`", row)}


def test_the_table_of_names_has_those_that_every_run_writes() -> None:
    assert {
        "stage",
        "update",
        "step",
        "rollout/success",
        "episodes/*",
        "loss/sft",
        "time/update_s",
    } <= documented()
