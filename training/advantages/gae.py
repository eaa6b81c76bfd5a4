"""Generalised advantage estimation over turns, with a critic."""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor

from turngym.training.advantages.base import Advantages, AdvantageSettings, register_advantage


class GaeSettings(AdvantageSettings):
    """Critic-based advantage (PPO's): discounted sum of one-step errors."""

    name: Literal["gae"] = "gae"
    credit: Literal["turn", "episode"] = "turn"
    """`turn`: one advantage and one value target per turn; `episode`: the whole return against V at the start."""
    lam: float = Field(0.95, ge=0, le=1)
    """Bias-variance trade over turns; 1 gives return minus value."""
    whiten: Literal["none", "batch"] = "batch"
    """Shift and scale the advantages of an update to mean 0 and spread 1."""


def gae(
    rewards: Tensor,
    mask: Tensor,
    values: Tensor,
    bootstrap: Tensor,
    *,
    gamma: float,
    lam: float,
    credit: Literal["turn", "episode"],
) -> Advantages:
    """Advantage of each turn by generalised advantage estimation.

    Turns that were not played are skipped, they are no endings.

    Args:
        rewards: (N, T) reward of each turn.
        mask: (N, T) bool, True on turns that were played.
        values: (N, T) critic's estimate at the token before the turn's first action token.
        bootstrap: (N,) value after the last turn, 0 where the episode ended for good.
        gamma: discount per turn, in [0, 1].
        lam: bias-variance trade, in [0, 1].
        credit: `turn`, or `episode`: G(0) - V(0) on every turn with target G(0) at the first turn only.

    Returns:
        (N, T) advantages, exactly 0 where mask is False, not whitened; targets advantage + value.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16, over turns.
    """
    lam = 1.0 if credit == "episode" else lam
    advantages = torch.zeros_like(rewards)
    next_value = bootstrap
    running = torch.zeros_like(bootstrap)
    for t in reversed(range(rewards.shape[1])):
        delta = rewards[:, t] + gamma * next_value - values[:, t]
        running = torch.where(mask[:, t], delta + gamma * lam * running, running)
        next_value = torch.where(mask[:, t], values[:, t], next_value)
        advantages[:, t] = torch.where(mask[:, t], running, 0.0)
    targets = torch.where(mask, advantages + values, 0.0)
    target_mask = mask.clone()
    if credit == "episode":
        # With lam = 1 the first turn's advantage is G(0) - V(0), bootstrap included.
        advantages = torch.where(mask, advantages[:, :1].expand_as(advantages), 0.0)
        target_mask[:, 1:] = False
    return Advantages(advantages, targets, target_mask)


register_advantage("gae", GaeSettings, gae)
