"""GRPO: the return, centred on the group's mean."""

from typing import Literal

from pydantic import model_validator
from torch import Tensor

from turngym.training.advantages.base import Advantages, AdvantageSettings, register_advantage
from turngym.training.advantages.groups import credited_returns, group_sizes, group_sums, judged, spread


class GrpoSettings(AdvantageSettings):
    """Group-relative advantage: return minus the group's mean."""

    name: Literal["grpo"] = "grpo"
    credit: Literal["turn", "episode"] = "episode"
    """`episode`: every turn gets the whole return's advantage; `turn`: the return from that turn on."""
    scale_by_std: bool = True
    """Divide by the group's spread; unset means true for episode credit and false for turn credit."""

    @model_validator(mode="before")
    @classmethod
    def _default_scale(cls, data: object) -> object:
        if isinstance(data, dict) and "scale_by_std" not in data:
            return {**data, "scale_by_std": data.get("credit", "episode") == "episode"}
        return data


def grpo(
    rewards: Tensor,
    mask: Tensor,
    group: Tensor,
    *,
    gamma: float,
    credit: Literal["turn", "episode"],
    scale_by_std: bool,
) -> Advantages:
    """Return of each turn minus the mean over all members of the group.

    Args:
        rewards: (N, T) reward of each turn, float64.
        mask: (N, T) bool, True on turns that were played.
        group: (N,) id of each episode's group; order is free.
        gamma: discount per turn, in [0, 1].
        credit: `episode` puts G(0) - mean G(0) on every turn; `turn` puts G(t) - mean H(t), where a member
            that has ended holds its last return.
        scale_by_std: divide by (s + 1e-6), s the spread (n - 1) of the centred numbers: one per group for
            `episode`, one per turn of the group for `turn`.

    Returns:
        (N, T) advantages, 0 where mask is False; groups of one and flat groups are not kept.

    Source: Shao et al. 2024, arXiv:2402.03300, section 4.1; turn credit by DEFINITIONS section 4.
    """
    numbers = credited_returns(rewards, mask, gamma, credit)
    centred = numbers - group_sums(numbers, group) / group_sizes(group).unsqueeze(1)
    scaled = centred / (spread(numbers, group) + 1e-6) if scale_by_std else centred
    return judged(scaled, centred, mask, group)


register_advantage("grpo", GrpoSettings, grpo)
