"""The optimizer steps of a critic with a trunk of its own."""

from dataclasses import dataclass

from torch import Tensor

from turngym import seeding
from turngym.training.batch import RolloutBatch, micro_batches
from turngym.training.forward import Critic, value_places
from turngym.training.losses.value import value_loss
from turngym.training.optimizers import OptimizerSet
from turngym.training.settings import RlSettings
from turngym.training.update.columns import ValueColumns, places_of, row_slices


@dataclass(frozen=True, slots=True)
class CriticReport:
    """What the critic's steps did."""

    value_loss: float
    grad_norm: float
    steps: int


def update_critic(
    critic: Critic,
    batch: RolloutBatch,
    columns: ValueColumns,
    settings: RlSettings,
    optimizer: OptimizerSet,
    *,
    seed: int,
    update: int,
) -> CriticReport:
    """Takes the critic's optimizer steps towards its targets.

    Args:
        seed, update: as in `update_policy`.
    """
    critic.train()
    done = update * settings.epochs * settings.minibatches
    total, norm, steps = 0.0, 0.0, 0
    for epoch in range(settings.epochs):
        order = seeding.generator(seed, "critic", update, epoch).permutation(len(batch.episodes))
        for place in range(settings.minibatches):
            part = {int(i) for i in order[place :: settings.minibatches]}
            rows = [i for i, row in enumerate(batch.rows) if row.episode in part]
            if not rows or not columns.mask[places_of(row_slices(batch), rows)].any():
                continue
            total += _critic_step(critic, batch, columns, rows, settings)
            norm = optimizer.step(done + steps)
            steps += 1
    return CriticReport(total / max(steps, 1), norm, steps)


def _critic_step(
    critic: Critic, batch: RolloutBatch, columns: ValueColumns, rows: list[int], settings: RlSettings
) -> float:
    """Gradients of one step over some rows; the loss is averaged over the targets of all of them."""
    slices = row_slices(batch)
    count = int(columns.mask[places_of(slices, rows)].sum())
    total = 0.0
    for micro in micro_batches([batch.rows[i] for i in rows], settings.tokens_per_batch):
        chosen = [rows[i] for i in micro]
        at = places_of(slices, chosen)
        at = at[columns.mask[at]]
        values = critic([batch.rows[i] for i in chosen], _target_places(batch, columns.mask, slices, chosen))
        loss = value_loss(
            values,
            columns.targets[at].to(values),
            count=count,
            old=columns.old[at].to(values),
            clip=settings.critic.value_clip,
        )
        (settings.value_weight * loss).backward()
        total += float(loss.detach())
    return total


def _target_places(
    batch: RolloutBatch, mask: Tensor, slices: list[slice], rows: list[int]
) -> list[list[int]]:
    """Where the values that have a target are read, in each row."""
    return [
        [
            place
            for place, wanted in zip(value_places(batch.rows[i]), mask[slices[i]].tolist(), strict=True)
            if wanted
        ]
        for i in rows
    ]
