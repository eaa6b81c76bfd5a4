"""GAE with one advantage per turn, or one per episode."""

import torch
from torch import Tensor

from turngym.training.advantages.base import Advantages
from turngym.training.advantages.recurrence import discounted_errors


def gae_turn(
    rewards: Tensor, mask: Tensor, values: Tensor, bootstrap: Tensor, *, gamma: float, lam: float
) -> Advantages:
    """Advantage of each turn; turns that were not played are skipped, they are no endings.

    Args:
        rewards: (N, T) reward of each turn.
        mask: (N, T) bool, True on turns that were played.
        values: (N, T) critic's estimate at the token before the turn's first action token.
        bootstrap: (N,) value after the last turn, 0 where the episode ended for good.
        gamma: discount per turn, in [0, 1].
        lam: bias-variance trade, in [0, 1].

    Returns:
        (N, T) advantages, exactly 0 where mask is False, not whitened; targets advantage + value.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16, over turns.
    """
    advantages = discounted_errors(rewards, mask, values, bootstrap, gamma=gamma, lam=lam)
    return Advantages(advantages, torch.where(mask, advantages + values, 0.0), mask.clone())


def gae_episode(
    rewards: Tensor, mask: Tensor, values: Tensor, bootstrap: Tensor, *, gamma: float
) -> Advantages:
    """G(0) - V(0) on every turn, G(0) with gamma^T times the bootstrap; the target G(0) at the first turn only.

    Args:
        rewards, mask, values, bootstrap, gamma: as in `gae_turn`.
    """
    first = discounted_errors(rewards, mask, values, bootstrap, gamma=gamma, lam=1.0)[:, :1]
    target_mask = mask.clone()
    target_mask[:, 1:] = False
    return Advantages(
        torch.where(mask, first.expand_as(rewards), 0.0),
        torch.where(target_mask, first + values, 0.0),
        target_mask,
    )
