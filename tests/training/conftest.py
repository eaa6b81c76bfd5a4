"""Recipes of a toy game, small enough that a run takes about a second."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# Makes `toy_env:toy/Signs-v0` importable, as the command line does with the current folder.
sys.path.insert(0, str(Path(__file__).parent))

# Random play is imitated until some colour is said each turn, so that the episodes of RL differ.
SFT = {
    "steps": 10,
    "episodes_per_step": 4,
    "tasks": {"count": 8},
    "demos": {"noise": [1.0]},
    "train_on": "all",
    "optim": {"lr": 1e-2},
}
RL = {
    "updates": 2,
    "groups": 2,
    "group_size": 4,
    "advantage": "reinforce",
    "checkpoint_every": 1,
    "tasks": {"start": 8},
}

ToyRecipe = Callable[..., dict[str, Any]]


@pytest.fixture
def toy(tmp_path: Path) -> ToyRecipe:
    """Makes recipe values: `toy()` has both stages, `toy(sft=None)` or `toy(rl=None)` leaves one out."""

    def make(
        *, sft: dict[str, Any] | None = SFT, rl: dict[str, Any] | None = RL, **run: Any
    ) -> dict[str, Any]:
        stages: list[dict[str, Any]] = [{"sft": dict(sft)}] if sft is not None else []
        stages += [{"rl": dict(rl)}] if rl is not None else []
        return {
            "model": {"hidden": 32, "layers": 1, "heads": 2, "ff": 64, "positions": 64},
            "agent": {"max_new_tokens": 2, "max_context": 64},
            "envs": [{"id": "toy_env:toy/Signs-v0"}],
            "stages": stages,
            "validation": {"tasks": 4},
            "run": {"threads": 1, "out": str(tmp_path / "run"), **run},
        }

    return make
