"""RLOO: the return, minus the mean of the group's others."""

from typing import Literal

from torch import Tensor

from turngym.training.advantages.base import Advantages, AdvantageSettings, register_advantage
from turngym.training.advantages.groups import credited_returns, group_sizes, group_sums, judged, spread


class RlooSettings(AdvantageSettings):
    """Leave-one-out advantage: return minus the mean of the others."""

    name: Literal["rloo"] = "rloo"
    credit: Literal["turn", "episode"] = "episode"
    """`episode`: every turn gets the whole return's advantage; `turn`: the return from that turn on."""
    scale_by_std: bool = False
    """Divide by the group's spread."""


def rloo(
    rewards: Tensor,
    mask: Tensor,
    group: Tensor,
    *,
    gamma: float,
    credit: Literal["turn", "episode"],
    scale_by_std: bool,
) -> Advantages:
    """Return of each turn minus the mean over the other members of the group; unbiased at gamma = 1.

    Args:
        rewards: (N, T) reward of each turn, float64.
        mask: (N, T) bool, True on turns that were played.
        group: (N,) id of each episode's group; order is free.
        gamma: discount per turn, in [0, 1].
        credit: `episode` puts G(0) minus the others' mean on every turn; `turn` does so for G(t), where a
            member that has ended holds its last return.
        scale_by_std: divide by (s + 1e-6), s the spread (n - 1) of the centred numbers.

    Returns:
        (N, T) advantages, 0 where mask is False; groups of one and flat groups are not kept.

    Source: Kool et al. 2019, and Ahmadian et al. 2024, arXiv:2402.14740, eq. 8; turn credit by DEFINITIONS
    section 4.
    """
    numbers = credited_returns(rewards, mask, gamma, credit)
    others = (group_sizes(group) - 1).clamp(min=1).unsqueeze(1)
    centred = numbers - (group_sums(numbers, group) - numbers) / others
    scaled = centred / (spread(centred, group) + 1e-6) if scale_by_std else centred
    return judged(scaled, centred, mask, group)


register_advantage("rloo", RlooSettings, rloo)
