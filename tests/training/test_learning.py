"""A tiny policy learns a toy game by RL, and with the advantage's sign flipped it does not.

The game is `toy_env.Signs`: two turns, the right command is the colour last shown, a guess is worth 1/3. The policy
begins as an imitation of an expert that slips every other turn, so it is right in about two turns of three.

Mean return of the first of 20 updates and of the last three, measured once on one CPU thread:

| seed | start | rloo | flipped |
| --- | --- | --- | --- |
| 1 | 0.734 | 0.997 | 0.003 |
| 2 | 0.625 | 0.984 | 0.000 |
| 3 | 0.641 | 0.992 | 0.000 |
"""

from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from torch import Tensor

from turngym.training.advantages import ADVANTAGES, Advantages, register_advantage
from turngym.training.advantages.rloo import RlooSettings, rloo
from turngym.training.run import train

UPDATES = 20
GOOD_RETURN = 0.93
BAD_RETURN = 0.2
SEED = 1


class FlippedSettings(RlooSettings):
    """RLOO with the wrong sign: what worked becomes less likely."""

    name: str = "flipped-rloo"  # type: ignore[assignment]


def flipped(
    rewards: Tensor, mask: Tensor, group: Tensor, *, gamma: float, credit: Any, scale_by_std: bool
) -> Advantages:
    right = rloo(rewards, mask, group, gamma=gamma, credit=credit, scale_by_std=scale_by_std)
    return Advantages(-right.advantages, kept=right.kept, reasons=right.reasons)


@pytest.fixture(autouse=True)
def flipped_is_registered() -> None:
    if "flipped-rloo" not in ADVANTAGES.names():
        register_advantage("flipped-rloo", FlippedSettings, flipped)


def warm_start(out: Path, seed: int) -> Path:
    """A policy that imitates a careless expert."""
    recipe = {
        "model": {"hidden": 32, "layers": 1, "heads": 2, "ff": 64, "positions": 64},
        "agent": {"max_new_tokens": 2, "max_context": 64},
        "envs": [{"id": "toy_env:toy/Signs-v0"}],
        "stages": [
            {
                "sft": {
                    "steps": 130,
                    "episodes_per_step": 16,
                    "demos": {"noise": [0.5]},
                    "train_on": "all",
                    "optim": {"name": "muon", "lr": 0.03, "muon_lr": 0.03, "warmup": 10, "hold": 0.7},
                }
            }
        ],
        "validation": {"tasks": 12},
        "run": {"threads": 1, "seed": seed, "out": str(out)},
    }
    return train(recipe).final


def returns_of(policy: Path, advantage: str, out: Path, seed: int) -> list[float]:
    """Mean return of the training episodes of each update."""
    recipe = {
        "model": {"path": str(policy)},
        "agent": {"max_new_tokens": 2, "max_context": 64},
        "envs": [{"id": "toy_env:toy/Signs-v0"}],
        "stages": [
            {
                "rl": {
                    "updates": UPDATES,
                    "groups": 8,
                    "group_size": 8,
                    "advantage": {"name": advantage, "credit": "turn"},
                    "optim": {"lr": 5e-3},
                    "checkpoint_every": UPDATES,
                    "save_episodes": False,
                    "guard": {"flat_updates": UPDATES + 1},
                }
            }
        ],
        "validation": {"tasks": 12},
        "run": {"threads": 1, "seed": seed, "out": str(out)},
    }
    return [float(row["rollout/return_mean"]) for row in train(recipe).metrics()]


@pytest.fixture(scope="module")
def policy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return warm_start(tmp_path_factory.mktemp("warm") / "run", SEED)


def test_a_tiny_policy_reaches_the_stated_return_within_the_stated_updates(
    policy: Path, tmp_path: Path
) -> None:
    returns = returns_of(policy, "rloo", tmp_path / "run", SEED)
    assert returns[0] < GOOD_RETURN - 0.1
    assert fmean(returns[-3:]) >= GOOD_RETURN


def test_with_the_sign_of_the_advantage_flipped_it_does_not(policy: Path, tmp_path: Path) -> None:
    returns = returns_of(policy, "flipped-rloo", tmp_path / "run", SEED)
    assert fmean(returns[-3:]) <= BAD_RETURN < returns[0]
    assert max(returns) < GOOD_RETURN
