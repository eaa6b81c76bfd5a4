"""Collapse alarms: what training watches itself for, and when it stops."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from turngym.errors import CollapseError
from turngym.training.settings import GuardSettings

PATIENCE = 3
"""Updates in a row that entropy, success or repetition may be out of bounds."""


@dataclass(frozen=True, slots=True)
class Signs:
    """What an update showed; None where it could not be seen."""

    trained_episodes: int
    success: float
    repetition: float
    entropy: float | None
    grad_norm: float | None


def watch(signs: Signs, settings: GuardSettings, counts: Mapping[str, int], last_good: str) -> dict[str, int]:
    """How many updates in a row each alarm has been on, this one included.

    Raises:
        CollapseError: an alarm has been on for too long; names the last good checkpoint.
    """
    entropy = signs.entropy
    alarms = {
        "flat": (signs.trained_episodes == 0, settings.flat_updates, "no group had members that differ"),
        "low_entropy": (
            bool(settings.min_entropy) and entropy is not None and entropy < settings.min_entropy,
            PATIENCE,
            f"entropy {entropy} is below {settings.min_entropy}",
        ),
        "high_entropy": (
            bool(settings.max_entropy) and entropy is not None and entropy > settings.max_entropy,
            PATIENCE,
            f"entropy {entropy} is above {settings.max_entropy}",
        ),
        "low_success": (
            signs.success < settings.min_success,
            PATIENCE,
            f"success {signs.success:.3f} is below {settings.min_success}",
        ),
        "repetition": (
            signs.repetition > settings.max_repetition,
            PATIENCE,
            f"{signs.repetition:.0%} of the action tokens repeat the token before",
        ),
        "gradient": (
            signs.grad_norm is not None
            and (not math.isfinite(signs.grad_norm) or signs.grad_norm > settings.max_grad_norm),
            1,
            f"the gradient's norm is {signs.grad_norm}",
        ),
    }
    out = {}
    for name, (is_on, patience, text) in alarms.items():
        out[name] = counts.get(name, 0) + 1 if is_on else 0
        if out[name] >= patience:
            times = f" for {out[name]} updates" if patience > 1 else ""
            raise CollapseError(
                f"Training stopped: {text}{times}. The last good checkpoint is {last_good}. "
                "Lower rl.optim.lr, add kl or entropy, or choose easier tasks; limits stand under rl.guard."
            )
    return out
