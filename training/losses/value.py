"""The critic's loss."""

import torch
from torch import Tensor


def value_loss(
    values: Tensor, targets: Tensor, *, count: int, old: Tensor | None = None, clip: float | None = None
) -> Tensor:
    """() half the squared error, summed and divided by `count`.

    Args:
        values: (K,) critic's estimates, one per position of this micro-batch that has a target.
        targets: (K,) what they should be; no gradient.
        count: positions of the whole optimizer step.
        old: (K,) estimates before the update; needed by `clip`.
        clip: the larger of the errors of V and of V held within `clip` of `old`; None takes V's alone.

    Source: the clipped form is that of Schulman et al.'s PPO code (OpenAI Baselines, ppo2); DEFINITIONS section 5.
    """
    error = (values - targets) ** 2
    if clip is not None and old is not None:
        error = torch.maximum(error, (old + (values - old).clamp(-clip, clip) - targets) ** 2)
    return 0.5 * error.sum() / max(count, 1)
