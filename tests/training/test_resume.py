"""A killed run, resumed, ends with the weights of an uninterrupted one, bit for bit.

Each start is a process of its own, since only SIGKILL leaves what a crash leaves.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from turngym.training.metrics import read_metrics
from turngym.training.run import train

ToyRecipe = Callable[..., dict[str, Any]]

HERE = Path(__file__).parent
SOURCE = HERE.parents[1] / "src"

CLOCK = ("time/rollout_s", "time/update_s", "time/total_s")


def start(recipe: dict[str, Any], place: str = "never", call: int = 0) -> int:
    """Runs the recipe in a process of its own, to its end or its death; returns the exit code."""
    path = Path(recipe["run"]["out"]).with_suffix(".json")
    path.write_text(json.dumps(recipe), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_run.py"), str(path), place, str(call)],
        env={**os.environ, "PYTHONPATH": f"{SOURCE}{os.pathsep}{HERE}"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def metrics(out: Path) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k not in CLOCK} for row in read_metrics(out / "metrics.jsonl")]


def episodes(out: Path) -> list[dict[str, Any]]:
    lines = (out / "rl" / "episodes.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    read = [json.loads(line) for line in lines]
    for one in read:
        for turn in one["turns"]:
            turn["latency_s"] = 0.0
    return read


def assert_equal_runs(one: Path, other: Path) -> None:
    """The folders hold the same run: weights to the last bit, metrics but for the clock, trainer's state."""
    weights = [path.relative_to(one) for path in sorted(one.rglob("*.safetensors"))]
    assert weights
    assert weights == [path.relative_to(other) for path in sorted(other.rglob("*.safetensors"))]
    for name in weights:
        assert (one / name).read_bytes() == (other / name).read_bytes(), name
    for name in sorted(path.relative_to(one) for path in one.rglob("trainer.pt")):
        states = [torch.load(folder / name, weights_only=True) for folder in (one, other)]
        torch.testing.assert_close(states[0], states[1], rtol=0, atol=0)
    assert metrics(one) == metrics(other)


def a_busy_recipe(toy: ToyRecipe, out: Path) -> dict[str, Any]:
    """Both stages, a critic, a reference, several steps an update, validation, three epochs of tasks."""
    recipe = toy(out=str(out), keep_checkpoints=3)
    sft, rl = recipe["stages"][0]["sft"], recipe["stages"][1]["rl"]
    sft |= {"checkpoint_every": 4, "optim": {"name": "muon", "lr": 1e-2, "muon_lr": 1e-2, "warmup": 2}}
    rl |= {
        "updates": 6,
        "checkpoint_every": 2,
        "tasks": {"start": 8, "count": 5},
        "advantage": "gae",
        "kl": {"name": "reward", "beta": 0.05},
        "epochs": 2,
        "minibatches": 2,
        "optim": {"lr": 3e-3, "hold": 0.5},
    }
    recipe["validation"] |= {"every": 1, "keep": "best"}
    return recipe


@pytest.mark.slow  # four processes, each of which loads torch
def test_a_run_killed_again_and_again_ends_bit_for_bit_as_the_uninterrupted_one(
    toy: ToyRecipe, tmp_path: Path
) -> None:
    whole, killed = a_busy_recipe(toy, tmp_path / "whole"), a_busy_recipe(toy, tmp_path / "killed")
    train(whole)
    # SFT ends at step 10, RL saves at 12, 14 and 16; its updates take 4 steps of the critic and 4 of the policy.
    deaths = [
        ("rollout", 4, 12),  # in the middle of the rollout of the fourth update
        ("update", 7, 12),  # in the third update, played again, between two steps of the policy
        ("save", 1, 12),  # while the checkpoint of step 14 is written
    ]
    for place, call, newest in deaths:
        assert start(killed, place, call) == -signal.SIGKILL, place
        names = sorted(
            path.parent.name for path in (tmp_path / "killed").glob("checkpoints/step-*/complete.json")
        )
        assert names[-1] == f"step-{newest:08d}", place
        halves = [path.name for path in (tmp_path / "killed" / "checkpoints").glob("*.tmp")]
        assert halves == (["step-00000014.tmp"] if place == "save" else [])
    assert start(killed) == 0
    assert_equal_runs(tmp_path / "whole", tmp_path / "killed")
    played = episodes(tmp_path / "whole")
    assert len(played) == 6 * 8
    rl = [row for row in metrics(tmp_path / "whole") if row["stage"] == "rl"]
    assert all(row["policy/steps"] == 4 and row["policy/grad_norm"] > 0 for row in rl)
    assert episodes(tmp_path / "killed") == played


class Stopped(Exception):
    """Raised where a run is to break off without a process of its own."""


def broken_off(recipe: dict[str, Any], step: int) -> None:
    """Runs until the row of a step is written."""

    def stop(row: Any) -> None:
        if row["step"] == step:
            raise Stopped

    with pytest.raises(Stopped):
        train(recipe, on_row=stop)


def test_sft_broken_off_between_checkpoints_ends_as_the_uninterrupted_one(
    toy: ToyRecipe, tmp_path: Path
) -> None:
    def recipe(name: str) -> dict[str, Any]:
        made = toy(rl=None, out=str(tmp_path / name))
        made["stages"][0]["sft"] |= {"checkpoint_every": 4, "bucket": 3}
        return made

    train(recipe("whole"))
    broken_off(recipe("broken"), 7)
    train(recipe("broken"))
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")


@pytest.mark.parametrize("step", [11, 12, 14])
def test_rl_broken_off_at_any_step_ends_as_the_uninterrupted_one(
    toy: ToyRecipe, tmp_path: Path, step: int
) -> None:
    def recipe(name: str) -> dict[str, Any]:
        made = toy(out=str(tmp_path / name))
        made["stages"][1]["rl"] |= {"updates": 4, "checkpoint_every": 2, "tasks": {"start": 8, "count": 3}}
        return made

    train(recipe("whole"))
    broken_off(recipe("broken"), step)
    train(recipe("broken"))
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
    assert episodes(tmp_path / "whole") == episodes(tmp_path / "broken")


@pytest.mark.parametrize(
    "changes",
    [
        {"advantage": {"name": "gae", "credit": "bilevel"}, "critic": {"shared": True, "warmup_updates": 1}},
        {"kl": {"name": "loss", "beta": 0.1, "update_every": 3, "update_share": 0.5}},
    ],
    ids=["shared_critic", "moving_reference"],
)
def test_a_shared_critic_and_a_moving_reference_go_on_where_they_stood(
    toy: ToyRecipe, tmp_path: Path, changes: dict[str, Any]
) -> None:
    def recipe(name: str) -> dict[str, Any]:
        made = toy(out=str(tmp_path / name))
        made["stages"][1]["rl"] |= {"updates": 6, "checkpoint_every": 2, "minibatches": 2, **changes}
        return made

    train(recipe("whole"))
    # After the reference moved at the third update, and the checkpoint of the fourth.
    broken_off(recipe("broken"), 15)
    train(recipe("broken"))
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")


def test_a_run_that_died_before_its_first_checkpoint_starts_again(toy: ToyRecipe, tmp_path: Path) -> None:
    whole, broken = toy(out=str(tmp_path / "whole")), toy(out=str(tmp_path / "broken"))
    train(whole)
    broken_off(broken, 2)
    train(broken)
    assert_equal_runs(tmp_path / "whole", tmp_path / "broken")
