"""REINFORCE with a batch baseline."""

from typing import Literal

import torch
from torch import Tensor

from turngym.training.advantages.base import AdvantageSettings, register_advantage
from turngym.training.advantages.groups import returns_to_go


class ReinforceSettings(AdvantageSettings):
    """Return minus the batch mean; with episode credit its gradient is (N-1)/N of the true one."""

    name: Literal["reinforce"] = "reinforce"
    credit: Literal["turn", "episode"] = "turn"
    """`episode`: every turn gets the whole return; `turn`: the return from that turn on."""


def reinforce(rewards: Tensor, mask: Tensor, *, gamma: float, credit: Literal["turn", "episode"]) -> Tensor:
    """Return of each turn minus the mean return of the batch.

    Args:
        rewards: (N, T) reward of each turn, float64.
        mask: (N, T) bool, True on turns that were played.
        gamma: discount per turn, in [0, 1].
        credit: `turn` centres G(t) over all played turns, `episode` G(0) over episodes.

    Returns:
        (N, T) advantages, 0 where mask is False.

    Source: Williams 1992; the batch mean holds the episode itself, hence (N-1)/N of the gradient with episode
    credit. With turn credit it also holds the episode's other turns, so the share differs from turn to turn.
    """
    returns = returns_to_go(rewards, mask, gamma)
    if credit == "episode":
        centred = (returns[:, :1] - returns[:, 0].mean()).expand_as(returns)
    else:
        centred = returns - returns[mask].mean()
    return torch.where(mask, centred, 0.0)


register_advantage("reinforce", ReinforceSettings, reinforce)
