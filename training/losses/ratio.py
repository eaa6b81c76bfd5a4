"""Importance ratios of tokens, turns or whole episodes."""

from typing import Literal

import torch
from torch import Tensor

Unit = Literal["token", "turn", "episode"]


def unit_means(numbers: Tensor, unit: Tensor) -> Tensor:
    """(M,) for each token the mean over all tokens of its unit; gradients pass.

    Args:
        numbers: (M,) one per action token.
        unit: (M,) id of each token's unit, such as its turn; all tokens of a unit have to be given.
    """
    _, index, counts = torch.unique(unit, return_inverse=True, return_counts=True)
    sums = torch.zeros(len(counts), dtype=numbers.dtype, device=numbers.device)
    means: Tensor = sums.index_add(0, index, numbers) / counts
    return means[index]


def log_ratios(new: Tensor, old: Tensor, unit: Tensor | None) -> Tensor:
    """(M,) log importance ratio that each action token is weighed by.

    Args:
        new: (M,) log-prob of each action token under the policy in training.
        old: (M,) the same before the first step of the update; no gradient.
        unit: None gives each token its own ratio. (M,) ids give each token the mean over its unit: the geometric
            mean of its tokens' ratios, not their product.

    Source: for whole episodes Zheng et al. 2025, GSPO, arXiv:2507.18071, section 4.1.
    """
    difference = new - old
    return difference if unit is None else unit_means(difference, unit)


def mismatch_weights(old: Tensor, sampler: Tensor, unit: Tensor | None, *, cap: float) -> Tensor:
    """(M,) weight min(cap, exp(old - sampler)), which mends that another program sampled the tokens.

    Args:
        old: (M,) the trainer's log-probs before the first step of the update; no gradient.
        sampler: (M,) the sampler's.
        unit: as in `log_ratios`.
        cap: largest weight, above 0.

    Source: Yao et al. 2025, "Your efficient RL framework secretly brings you off-policy RL training", truncated
    importance sampling; the unit and its geometric mean by DEFINITIONS section 3.
    """
    return log_ratios(old, sampler, unit).exp().clamp(max=cap)
