"""The averages of DEFINITIONS section 5, as one weight per token, so that accumulation changes nothing."""

from typing import Literal

import torch
from torch import Tensor

Average = Literal["token", "turn", "episode", "constant"]


def token_weights(
    action_mask: Tensor, turn: Tensor, episode: Tensor, *, average: Average, constant: float
) -> Tensor:
    """(M,) weight of each token of an optimizer step: the average of l is the sum of weight * l.

    Args:
        action_mask: (M,) bool, all tokens of the step, of all micro-batches, after drops.
        turn: (M,) an id per (episode, turn).
        episode: (M,) an id per episode, over all its segments.
        average: `token`: 1 / all action tokens. `turn`: mean over turns of the mean over their tokens.
            `episode`: mean over episodes of the mean over their tokens. `constant`: 1 / (episodes * constant).
        constant: C of `constant`.

    Returns:
        Weights, 0 where action_mask is False; units without action tokens count nowhere.
    """
    weights = torch.zeros(action_mask.shape, dtype=torch.float64)
    if not bool(action_mask.any()):
        return weights
    if average == "token":
        weights[action_mask] = 1.0 / int(action_mask.sum())
        return weights
    unit = turn if average == "turn" else episode
    _, index, counts = torch.unique(unit[action_mask], return_inverse=True, return_counts=True)
    if average == "constant":
        weights[action_mask] = 1.0 / (len(counts) * constant)
    else:
        weights[action_mask] = 1.0 / (len(counts) * counts[index].double())
    return weights
