"""Advantages of an update brought to mean 0 and spread 1."""

import torch
from torch import Tensor


def whitened(advantages: Tensor, mask: Tensor, *, per_episode: bool) -> Tensor:
    """(x - mean) / (std + 1e-8) over the units that carry an advantage (DEFINITIONS section 4).

    Args:
        advantages: (N, T) one per turn, or (N, T, K) one per action token.
        mask: same shape, bool, True on what was played and is kept.
        per_episode: every unit of an episode carries the same number, which counts once.

    Returns:
        Same shape, 0 where mask is False; unchanged where mask is all False.
    """
    if not bool(mask.any()):
        return advantages
    flat, where = advantages.flatten(1), mask.flatten(1)
    over = flat[where]
    if per_episode:
        over = flat.gather(1, where.int().argmax(dim=1, keepdim=True))[where.any(dim=1)]
    scaled = (advantages - over.mean()) / (over.std(correction=0) + 1e-8)
    return torch.where(mask, scaled, 0.0)
