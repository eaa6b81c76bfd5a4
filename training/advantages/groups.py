"""What the group estimators share: returns, peers that ended earlier, groups that teach nothing."""

from typing import Literal

import torch
from torch import Tensor

from turngym.training.advantages.base import Advantages

FLAT = 1e-6
"""Largest |advantage| of a group, before scaling, under which it counts as flat (DEFINITIONS section 4)."""


def returns_to_go(rewards: Tensor, mask: Tensor, gamma: float) -> Tensor:
    """(N, T) discounted sum of the rewards from each turn on, 0 where the turn was not played."""
    out = torch.zeros_like(rewards)
    running = torch.zeros_like(rewards[:, 0])
    for t in reversed(range(rewards.shape[1])):
        running = torch.where(mask[:, t], rewards[:, t] + gamma * running, running)
        out[:, t] = torch.where(mask[:, t], running, 0.0)
    return out


def credited_returns(
    rewards: Tensor, mask: Tensor, gamma: float, credit: Literal["turn", "episode"]
) -> Tensor:
    """(N, T) what a group's members are compared by: H(t) for turn credit, G(0) at every t for episode credit."""
    returns = returns_to_go(rewards, mask, gamma)
    return held(returns, mask) if credit == "turn" else returns[:, :1].expand_as(returns)


def judged(advantages: Tensor, centred: Tensor, mask: Tensor, group: Tensor) -> Advantages:
    """Advantages, with the episodes left out whose group teaches nothing by its `centred`, unscaled numbers."""
    reasons = not_kept(centred, mask, group)
    kept = ~(reasons["group_of_one"] | reasons["flat_group"])
    return Advantages(torch.where(mask, advantages, 0.0), kept=kept, reasons=reasons)


def held(returns: Tensor, mask: Tensor) -> Tensor:
    """(N, T) returns-to-go in which an ended episode keeps the one of its last turn: H of DEFINITIONS."""
    last = (mask.sum(dim=1) - 1).clamp(min=0)
    turns = torch.minimum(torch.arange(mask.shape[1], device=mask.device), last.unsqueeze(1))
    return returns.gather(1, turns)


def group_sums(values: Tensor, group: Tensor) -> Tensor:
    """(N, T) for each episode the sum of `values` over its group, itself included; groups by id."""
    _, index = torch.unique(group, return_inverse=True)
    sums = values.new_zeros((int(index.max()) + 1, values.shape[1]))
    return sums.index_add(0, index, values)[index]


def group_sizes(group: Tensor) -> Tensor:
    """(N,) number of members of each episode's group."""
    _, index, counts = torch.unique(group, return_inverse=True, return_counts=True)
    sizes: Tensor = counts[index]
    return sizes


def not_kept(centred: Tensor, mask: Tensor, group: Tensor) -> dict[str, Tensor]:
    """Episodes that teach nothing, by reason: `group_of_one` and `flat_group`, each (N,) bool."""
    alone = group_sizes(group) == 1
    largest = torch.where(mask, centred.abs(), 0.0).amax(dim=1)
    flat = torch.zeros_like(alone)
    for one in torch.unique(group):
        members = group == one
        flat |= members & (largest[members].max() < FLAT)
    return {"group_of_one": alone, "flat_group": flat & ~alone}


def spread(numbers: Tensor, group: Tensor) -> Tensor:
    """(N, T) std (n - 1) of `numbers` over each group, turn by turn; 0 for a group of one."""
    sizes = group_sizes(group).unsqueeze(1)
    mean = group_sums(numbers, group) / sizes
    squares = group_sums((numbers - mean) ** 2, group)
    return (squares / (sizes - 1).clamp(min=1)).sqrt()
