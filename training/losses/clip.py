"""PPO's clipped policy loss, with the dual clip."""

from dataclasses import dataclass

import torch
from torch import Tensor

from turngym.training.losses.ratio import log_ratios


@dataclass(frozen=True, slots=True)
class PolicyLoss:
    """A policy loss and what it did, over the action tokens given."""

    loss: Tensor  # () scalar, to minimise
    num_clipped: Tensor  # () tokens where the clip was active
    num_dual_clipped: Tensor  # () tokens where the dual clip was
    approx_kl_sum: Tensor  # () nats, old || new, summed over tokens


def clip_loss(
    new: Tensor,
    old: Tensor,
    advantages: Tensor,
    weights: Tensor,
    *,
    clip_low: float,
    clip_high: float,
    dual_clip: float | None = None,
    unit: Tensor | None = None,
) -> PolicyLoss:
    """Clipped surrogate, as the weighted sum over action tokens.

    Args:
        new: (M,) log-prob of each action token under the policy in training.
        old: (M,) the same before the first step of the update; no gradient.
        advantages: (M,) advantage of each action token.
        weights: (M,) from `token_weights`, over the whole optimizer step; times mismatch weights, where used.
        clip_low, clip_high: the ratio is held in [1 - low, 1 + high] where that lowers the gain.
        dual_clip: for A < 0 the loss of a token is at most -c A, c above 1; None leaves it unbounded.
        unit: (M,) ids of turns or episodes whose ratio each token takes; None gives each its own.

    Returns:
        Sum of weight * max(-A rho, -A clip(rho)); clipped counts tokens with A > 0 and rho > 1 + high, or
        A < 0 and rho < 1 - low.

    Source: Schulman et al. 2017, arXiv:1707.06347, eq. 7; dual clip: Ye et al. 2020, arXiv:1912.09729, eq. 5.
    """
    ratio = log_ratios(new, old, unit).exp()
    bounded = ratio.clamp(1 - clip_low, 1 + clip_high)
    loss = torch.maximum(-advantages * ratio, -advantages * bounded)
    clipped = ((advantages > 0) & (ratio > 1 + clip_high)) | ((advantages < 0) & (ratio < 1 - clip_low))
    dual_clipped = torch.zeros_like(clipped)
    if dual_clip is not None:
        dual_clipped = (advantages < 0) & (ratio > dual_clip)
        loss = torch.where(advantages < 0, torch.minimum(loss, -dual_clip * advantages), loss)
    apart = new - old
    approx_kl = (apart.exp() - 1 - apart).detach().sum()
    return PolicyLoss((weights * loss).sum(), clipped.sum(), dual_clipped.sum(), approx_kl)
