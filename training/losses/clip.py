"""PPO's clipped policy loss."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A policy loss and what it did, over the action tokens given."""

    loss: Tensor  # () scalar, to minimise
    num_clipped: Tensor  # () tokens where the clip was active
    approx_kl_sum: Tensor  # () nats, old || new, summed over tokens


def clip_loss(
    new: Tensor, old: Tensor, advantages: Tensor, weights: Tensor, *, clip_low: float, clip_high: float
) -> PolicyLoss:
    """Clipped surrogate, as the weighted sum over action tokens.

    Args:
        new: (M,) log-prob of each action token under the policy in training.
        old: (M,) the same before the first step of the update; no gradient.
        advantages: (M,) advantage of each action token.
        weights: (M,) from `token_weights`, over the whole optimizer step.
        clip_low, clip_high: the ratio is held in [1 - low, 1 + high] where that lowers the gain.

    Returns:
        Sum of weight * max(-A rho, -A clip(rho)); clipped counts tokens with A > 0 and rho > 1 + high, or
        A < 0 and rho < 1 - low.

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7.
    """
    log_ratio = new - old
    ratio = log_ratio.exp()
    bounded = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = torch.maximum(-advantages * ratio, -advantages * bounded)
    clipped = ((advantages > 0) & (ratio > 1 + clip_high)) | ((advantages < 0) & (ratio < 1 - clip_low))
    approx_kl = (ratio - 1 - log_ratio).detach().sum()
    return PolicyLoss((weights * loss).sum(), clipped.sum(), approx_kl)
