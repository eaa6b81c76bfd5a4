"""What the steps of an update read of each action token, M in all, in row order."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from turngym import seeding
from turngym.training.batch import RolloutBatch
from turngym.training.losses.ratio import Unit


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """What the policy's steps read."""

    advantages: Tensor  # (M,) float32
    kept: Tensor  # (M,) bool, False for tokens of dropped episodes
    old: Tensor | None  # (M,) log-probs before the update; None where its only step's own forward is that
    reference: Tensor | None  # (M,) log-probs of the reference
    mismatch: Tensor | None = None  # (M,) weights of the policy term; None weighs all alike


@dataclass(frozen=True, slots=True)
class ValueColumns:
    """What the critic's steps read: V of a token stands at the token before it."""

    targets: Tensor  # (M,) what the critic should say there
    mask: Tensor  # (M,) bool, tokens that have a target
    old: Tensor  # (M,) what it said before the update


def unit_ids(batch: RolloutBatch, unit: Unit) -> Tensor | None:
    """(M,) an id per (episode, turn) or per episode, over all segments; None where each token stands for itself."""
    if unit == "token":
        return None
    if unit == "episode":
        return batch.token_episode
    return batch.token_episode * (batch.mask.shape[1] + 1) + batch.token_turn


def row_slices(batch: RolloutBatch) -> list[slice]:
    """Where each row's action tokens stand in the columns."""
    slices, end = [], 0
    for row in batch.rows:
        start, end = end, end + int(row.action_mask.sum())
        slices.append(slice(start, end))
    return slices


def places_of(slices: Sequence[slice], rows: Sequence[int]) -> Tensor:
    """Where the action tokens of some rows stand in the columns."""
    return torch.cat([torch.arange(slices[i].start, slices[i].stop) for i in rows])


def episode_parts(kept: Tensor, batch: RolloutBatch, minibatches: int, *path: str | int) -> list[set[int]]:
    """Kept episodes of each optimizer step of a pass; empty parts are left out.

    Args:
        kept: (M,) bool.
        path: names the order's stream of chance.
    """
    episodes = torch.unique(batch.token_episode[kept]).tolist()
    order = [episodes[i] for i in seeding.generator(*path).permutation(len(episodes))]
    parts = [order[i::minibatches] for i in range(minibatches)]
    return [set(part) for part in parts if part]
