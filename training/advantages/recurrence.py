"""The backward sum that every form of GAE is made of."""

import torch
from torch import Tensor


def discounted_errors(
    rewards: Tensor, mask: Tensor, values: Tensor, bootstrap: Tensor, *, gamma: float, lam: float
) -> Tensor:
    """Sum over the later steps of (gamma lam)^k times the one-step error, over the steps where mask is True.

    Masked steps are skipped, they are no endings.

    Args:
        rewards: (B, S) reward of each step.
        mask: (B, S) bool, True on steps that exist; what stands elsewhere is never read.
        values: (B, S) critic's estimate before each step.
        bootstrap: (B,) value after the last step, 0 where nothing follows.
        gamma: discount per step, in [0, 1].
        lam: bias-variance trade, in [0, 1]; 1 gives the discounted rest of the rewards minus the value.

    Returns:
        (B, S) sums, exactly 0 where mask is False.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16.
    """
    sums = torch.zeros_like(rewards)
    next_value = bootstrap
    running = torch.zeros_like(bootstrap)
    for s in reversed(range(rewards.shape[1])):
        error = rewards[:, s] + gamma * next_value - values[:, s]
        running = torch.where(mask[:, s], error + gamma * lam * running, running)
        next_value = torch.where(mask[:, s], values[:, s], next_value)
        sums[:, s] = torch.where(mask[:, s], running, 0.0)
    return sums
