"""Worker processes under a run: the same bits, and counts of what happened to them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from turngym.errors import ConfigError
from turngym.training.metrics import MetricValue
from turngym.training.run import Run, train

ToyRecipe = Callable[..., dict[str, Any]]

COUNTS = {"started", "died", "killed", "recycled", "deadline_misses", "late_replies"}


@pytest.fixture
def rooms(toy: ToyRecipe, tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Makes recipes of a few updates on Rooms, with validation in between."""

    def make(name: str, **run: Any) -> dict[str, Any]:
        recipe = toy(out=str(tmp_path / name), **run)
        recipe["envs"] = [{"id": "Rooms-v0", "kwargs": {"level": "w2-o3-q4", "max_turns": 5}}]
        recipe["model"] |= {"positions": 256}
        recipe["agent"] |= {"max_new_tokens": 4, "max_context": 256}
        recipe["stages"][0]["sft"] |= {"steps": 4}
        recipe["validation"] |= {"every": 1}
        return recipe

    return make


def rows(run: Run) -> list[dict[str, MetricValue]]:
    """Rows of metrics, without the clock's and the workers'."""
    return [
        {key: value for key, value in row.items() if not key.startswith(("time/", "pool/"))}
        for row in run.metrics()
    ]


def weights(run: Run) -> dict[str, bytes]:
    return {str(path.relative_to(run.out)): path.read_bytes() for path in run.out.rglob("*.safetensors")}


class Stopped(Exception):
    """Breaks a run off."""


def test_any_number_of_workers_gives_the_same_bits_also_after_a_stop(
    rooms: Callable[..., dict[str, Any]],
) -> None:
    inline = train(rooms("inline"))
    in_workers = train(rooms("workers"), workers=2)
    assert [row["policy/steps"] for row in rows(inline) if row["stage"] == "rl"] == [1, 1]
    assert weights(inline) and weights(inline) == weights(in_workers)
    assert rows(inline) == rows(in_workers)

    def stop(row: Any) -> None:
        if row["step"] == 5:
            raise Stopped

    with pytest.raises(Stopped):
        train(rooms("resumed"), workers=1, on_row=stop)
    resumed = train(rooms("resumed"))
    assert weights(resumed) == weights(inline)
    assert rows(resumed) == rows(inline)


def test_the_metrics_count_what_happened_to_the_workers(
    rooms: Callable[..., dict[str, Any]], tmp_path: Path
) -> None:
    recipe = rooms("run", workers=1)
    del recipe["stages"][1]
    told = [
        {key.removeprefix("pool/"): value for key, value in row.items() if key.startswith("pool/")}
        for row in train(recipe).metrics()
    ]
    assert all(set(row) == COUNTS for row in told)
    assert sum(int(row["started"]) for row in told) == 2  # A worker and its spare.
    assert not any(row[name] for row in told for name in COUNTS - {"started"})


def test_without_workers_there_is_nothing_to_count(toy: ToyRecipe) -> None:
    run = train(toy(rl=None))
    assert not [key for row in run.metrics() for key in row if key.startswith("pool/")]


def test_an_environment_that_workers_cannot_make_stops_the_run_at_once(
    toy: ToyRecipe, vault: Any, tmp_path: Path
) -> None:
    with pytest.raises(ConfigError, match="set workers to 0"):
        train(toy(rl=None), env=type("Local", (vault,), {}), workers=1)
