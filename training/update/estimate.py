"""From the episodes of an update to what its steps learn from: advantages, value targets, who is kept."""

from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor

from turngym.training.advantages.base import Advantages, estimate
from turngym.training.advantages.whitening import whitened
from turngym.training.batch import RolloutBatch
from turngym.training.settings import RlSettings
from turngym.training.update.columns import ValueColumns


@dataclass(frozen=True, slots=True)
class Estimated:
    """What an update learns from.

    Attributes:
        advantages: (N, T) per turn or (N, T, K) per action token, float64, whitened where the settings ask for it.
        mask: same shape, bool, what was played and is kept.
        kept: (N,) bool, episodes that are trained on.
        reasons: why episodes were not kept, reason -> (N,) bool.
        values: of the critic's steps; None without a critic.
    """

    advantages: Tensor
    mask: Tensor
    kept: Tensor
    reasons: Mapping[str, Tensor]
    values: ValueColumns | None


def estimated(
    settings: RlSettings,
    batch: RolloutBatch,
    *,
    values: Tensor | None,
    bootstrap: Tensor,
    old: Tensor | None,
    reference: Tensor | None,
) -> Estimated:
    """Runs the estimator; with KL in the reward, which episodes are kept is judged without it.

    Args:
        values: (M,) critic's estimate before each action token; None without a critic.
        bootstrap: (N,) critic's estimate after the last turn, 0 where the episode ended for good.
        old, reference: (M,) log-probs of each action token before the update and under the reference.
    """
    plain = estimate(settings.advantage, _columns(batch, values, bootstrap, penalty=None))
    given = plain
    if settings.kl.name == "reward" and old is not None and reference is not None:
        penalty = settings.kl.beta * (old - reference).double()
        given = estimate(settings.advantage, _columns(batch, values, bootstrap, penalty=penalty))
    kept = plain.kept if plain.kept is not None else torch.ones(len(batch.episodes), dtype=torch.bool)
    per_token = given.advantages.dim() == 3
    played = batch.token_mask if per_token else batch.mask
    mask = played & (kept[:, None, None] if per_token else kept[:, None])
    advantages = given.advantages
    if settings.advantage.whiten == "batch":
        per_episode = getattr(settings.advantage, "credit", "turn") == "episode"
        advantages = whitened(advantages, mask, per_episode=per_episode)
    return Estimated(advantages, mask, kept, plain.reasons or {}, _value_columns(batch, given, values))


def _columns(
    batch: RolloutBatch, values: Tensor | None, bootstrap: Tensor, *, penalty: Tensor | None
) -> dict[str, Tensor]:
    """All columns that an estimator may ask for; `penalty` (M,) is what KL takes from each action token."""
    token_mask = batch.token_mask
    ends = token_mask.clone()
    ends[:, :, :-1] &= ~token_mask[:, :, 1:]
    token_rewards = torch.where(ends, batch.rewards.unsqueeze(-1), 0.0)
    rewards = batch.rewards
    if penalty is not None:
        taken = batch.per_turn(penalty)
        token_rewards = token_rewards - taken
        rewards = rewards - taken.sum(dim=-1)
    told = values if values is not None else torch.zeros(batch.num_tokens, dtype=torch.float64)
    token_values = batch.per_turn(told)
    return {
        "rewards": rewards,
        "mask": batch.mask,
        "group": batch.group,
        "values": token_values[:, :, 0],
        "bootstrap": bootstrap,
        "token_rewards": token_rewards,
        "token_mask": token_mask,
        "token_values": token_values,
    }


def _value_columns(batch: RolloutBatch, given: Advantages, values: Tensor | None) -> ValueColumns | None:
    """Targets by action token; one of a turn stands at its first."""
    if values is None or given.value_targets is None:
        return None
    targets, wanted = given.value_targets, given.target_mask
    if wanted is None:
        wanted = batch.mask if targets.dim() == 2 else batch.token_mask
    mask = batch.per_token(wanted)
    if targets.dim() == 2:
        mask = mask & (batch.token_place == 0)
    return ValueColumns(batch.per_token(targets), mask, values)
