"""One update: episodes with advantages become optimizer steps of policy and critic."""

import math
import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from turngym import seeding
from turngym.agents.language_model import LanguageModel
from turngym.training.batch import RolloutBatch, cut_row, micro_batches
from turngym.training.forward import Critic, token_scores, turn_places
from turngym.training.losses.averages import token_weights
from turngym.training.losses.clip import clip_loss
from turngym.training.losses.kl import kl_loss
from turngym.training.losses.value import value_loss
from turngym.training.optimizers import OptimizerSet
from turngym.training.settings import RlSettings


@dataclass(frozen=True, slots=True)
class TokenColumns:
    """Per action token of a batch, M in all, in row order."""

    advantages: Tensor  # (M,) float32
    kept: Tensor  # (M,) bool, False for tokens of dropped episodes
    old: Tensor | None  # (M,) log-probs before the update; None where its only step's own forward is that
    reference: Tensor | None  # (M,) log-probs of the reference


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What the policy's steps did, over kept action tokens."""

    policy_loss: float
    kl_loss: float
    entropy: float
    clip_share: float
    approx_kl: float
    grad_norm: float  # the largest of the steps, before clipping
    sampler_gap_mean: float  # abs(trainer - sampler) before the first step
    sampler_gap_max: float
    kl_k1: float | None  # to the reference before the first step; None without one
    kl_k3: float | None
    steps: int


def update_policy(
    lm: LanguageModel,
    batch: RolloutBatch,
    columns: TokenColumns,
    settings: RlSettings,
    optimizer: OptimizerSet,
    *,
    temperature: float,
    done: int,
    seed: int,
    update: int,
) -> PolicyReport:
    """Takes the policy's optimizer steps.

    Args:
        done: optimizer steps taken before this update, for the schedule.
        seed, update: name the order of the episodes in each pass.
    """
    lm.model.train()
    sums = _Sums()
    slices = _row_slices(batch)
    for epoch in range(settings.epochs):
        for part in episode_parts(columns, batch, settings.minibatches, seed, update, epoch):
            norm = _policy_step(
                lm, batch, columns, settings, optimizer, part, slices, temperature, done, sums
            )
            sums.grad_norm = norm if not norm <= sums.grad_norm else sums.grad_norm
            if not math.isfinite(norm):
                return sums.report()
            done += 1
            sums.steps += 1
    return sums.report()


def episode_parts(
    columns: TokenColumns, batch: RolloutBatch, minibatches: int, seed: int, update: int, epoch: int
) -> list[set[int]]:
    """Kept episodes of each optimizer step of a pass; empty parts are left out."""
    kept = torch.unique(batch.token_episode[columns.kept]).tolist()
    order = [kept[i] for i in seeding.generator(seed, "minibatch", update, epoch).permutation(len(kept))]
    parts = [order[i::minibatches] for i in range(minibatches)]
    return [set(part) for part in parts if part]


class _Sums:
    """Running sums over the steps of an update."""

    def __init__(self) -> None:
        self.policy = self.kl = self.entropy = self.clipped = self.approx_kl = 0.0
        self.gap_sum = self.gap_max = self.grad_norm = 0.0
        self.k1 = self.k3 = 0.0
        self.has_reference = False
        self.tokens = self.gap_tokens = self.steps = 0

    def report(self) -> PolicyReport:
        tokens, steps = max(self.tokens, 1), max(self.steps, 1)
        return PolicyReport(
            self.policy / steps,
            self.kl / steps,
            self.entropy / tokens,
            self.clipped / tokens,
            self.approx_kl / tokens,
            self.grad_norm,
            self.gap_sum / max(self.gap_tokens, 1),
            self.gap_max,
            self.k1 / max(self.gap_tokens, 1) if self.has_reference else None,
            self.k3 / max(self.gap_tokens, 1) if self.has_reference else None,
            self.steps,
        )


def _policy_step(
    lm: LanguageModel,
    batch: RolloutBatch,
    columns: TokenColumns,
    settings: RlSettings,
    optimizer: OptimizerSet,
    part: set[int],
    slices: list[slice],
    temperature: float,
    done: int,
    sums: _Sums,
) -> float:
    """One optimizer step over some episodes; averages are over the whole step, however it is cut."""
    rows = [i for i, row in enumerate(batch.rows) if row.episode in part and row.action_mask.any()]
    places = torch.cat([torch.arange(slices[i].start, slices[i].stop) for i in rows])
    mask = torch.zeros(batch.num_tokens, dtype=torch.bool)
    mask[places] = True
    turn_ids = batch.token_episode * (batch.mask.shape[1] + 1) + batch.token_turn
    weights = token_weights(
        mask, turn_ids, batch.token_episode, average=settings.average, constant=settings.constant
    ).float()
    for micro in micro_batches([batch.rows[i] for i in rows], settings.tokens_per_batch):
        chosen = [rows[i] for i in micro]
        at = torch.cat([torch.arange(slices[i].start, slices[i].stop) for i in chosen])
        _micro_step(lm, batch, columns, settings, chosen, at, weights[at], temperature, sums)
    return optimizer.step(done)


def _micro_step(
    lm: LanguageModel,
    batch: RolloutBatch,
    columns: TokenColumns,
    settings: RlSettings,
    chosen: Sequence[int],
    at: Tensor,
    weights: Tensor,
    temperature: float,
    sums: _Sums,
) -> None:
    scores = token_scores(lm, [batch.rows[i] for i in chosen], temperature=temperature)
    new, device = scores.log_probs, scores.log_probs.device
    # With one optimizer step this forward is the one before the first step, so old equals new.
    old = new.detach() if columns.old is None else columns.old[at].to(device)
    weights = weights.to(device)
    policy = clip_loss(
        new,
        old,
        columns.advantages[at].to(device),
        weights,
        clip_low=settings.policy_loss.clip_low,
        clip_high=settings.policy_loss.clip_high,
    )
    loss = policy.loss
    if settings.entropy:
        loss = loss - settings.entropy * (weights * scores.entropy).sum()
    if settings.kl.name == "loss" and columns.reference is not None:
        penalty = kl_loss(new, columns.reference[at].to(device), old, estimator=settings.kl.estimator)
        kl = (weights * penalty).sum()
        loss = loss + settings.kl.beta * kl
        sums.kl += float(kl.detach())
    loss.backward()
    sums.policy += float(policy.loss.detach())
    sums.entropy += float(scores.entropy.detach().sum())
    sums.clipped += float(policy.num_clipped)
    sums.approx_kl += float(policy.approx_kl_sum)
    sums.tokens += len(at)
    if sums.steps == 0:
        gap = (new.detach().cpu().double() - batch.sampler_log_probs[at]).abs()
        sums.gap_sum += float(gap.sum())
        sums.gap_max = max(sums.gap_max, float(gap.max()))
        sums.gap_tokens += len(at)
        if columns.reference is not None:
            d = new.detach().cpu().double() - columns.reference[at].double()
            sums.has_reference = True
            sums.k1 += float(d.sum())
            sums.k3 += float(((-d).exp() - 1 + d).sum())


def _row_slices(batch: RolloutBatch) -> list[slice]:
    """Where each row's action tokens stand in the per-token columns."""
    ends = np.cumsum([int(row.action_mask.sum()) for row in batch.rows])
    return [
        slice(int(end - row.action_mask.sum()), int(end)) for end, row in zip(ends, batch.rows, strict=True)
    ]


@torch.no_grad()
def critic_values(critic: Critic, batch: RolloutBatch, tokens_per_batch: int) -> Tensor:
    """(N, T) V before each turn, 0 where it was not played."""
    critic.eval()
    values = torch.zeros(batch.mask.shape, dtype=torch.float64)
    for micro in micro_batches(batch.rows, tokens_per_batch):
        rows = [batch.rows[i] for i in micro]
        places = [turn_places(row) for row in rows]
        got = critic(rows, [list(one.values()) for one in places])
        keys = [(row.episode, turn) for row, one in zip(rows, places, strict=True) for turn in one]
        for (episode, turn), value in zip(keys, got.tolist(), strict=True):
            values[episode, turn] = value
    return values


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Values after the last turn."""

    values: Tensor  # (N,) 0 where the episode ended for good
    num_clipped: (
        int  # episodes whose following prompt did not fit the model, read at the last token that does
    )


@torch.no_grad()
def bootstrap_values(critic: Critic, batch: RolloutBatch, tokens_per_batch: int) -> Bootstrap:
    """V at the last token of the prompt that would have followed, for `token_limit` endings."""
    critic.eval()
    values = torch.zeros(len(batch.episodes), dtype=torch.float64)
    fits = getattr(critic.trunk.config, "max_position_embeddings", None) or sys.maxsize
    last = {row.episode: i for i, row in enumerate(batch.rows)}
    cut = [i for i, episode in enumerate(batch.episodes) if episode.outcome == "token_limit"]
    rows = [cut_row(batch.rows[last[i]], fits) for i in cut]
    for micro in micro_batches(rows, tokens_per_batch):
        part = [rows[i] for i in micro]
        got = critic(part, [[len(row) - 1] for row in part])
        for row, value in zip(part, got.tolist(), strict=True):
            values[row.episode] = value
    return Bootstrap(values, sum(len(batch.rows[last[i]]) > fits for i in cut))


@dataclass(frozen=True, slots=True)
class CriticReport:
    """What the critic's steps did."""

    value_loss: float
    grad_norm: float
    steps: int


def update_critic(
    critic: Critic,
    batch: RolloutBatch,
    targets: Tensor,
    target_mask: Tensor,
    settings: RlSettings,
    optimizer: OptimizerSet,
    *,
    done: int,
    seed: int,
    update: int,
) -> CriticReport:
    """Takes the critic's optimizer steps towards (N, T) targets where `target_mask` is True."""
    critic.train()
    total, norm, steps = 0.0, 0.0, 0
    for epoch in range(settings.epochs):
        order = seeding.generator(seed, "critic", update, epoch).permutation(len(batch.episodes))
        for place in range(settings.minibatches):
            part = {int(i) for i in order[place :: settings.minibatches]}
            count = int(target_mask[sorted(part)].sum()) if part else 0
            if not count:
                continue
            total += _critic_step(critic, batch, targets, target_mask, part, count, settings)
            norm = optimizer.step(done + steps)
            steps += 1
    return CriticReport(total / max(steps, 1), norm, steps)


def _critic_step(
    critic: Critic,
    batch: RolloutBatch,
    targets: Tensor,
    target_mask: Tensor,
    part: set[int],
    count: int,
    settings: RlSettings,
) -> float:
    rows = [row for row in batch.rows if row.episode in part]
    total = 0.0
    for micro in micro_batches(rows, settings.tokens_per_batch):
        chosen = [rows[i] for i in micro]
        kept = [
            {turn: place for turn, place in turn_places(row).items() if target_mask[row.episode, turn]}
            for row in chosen
        ]
        values = critic(chosen, [list(one.values()) for one in kept])
        wanted = torch.tensor(
            [
                float(targets[row.episode, turn])
                for row, one in zip(chosen, kept, strict=True)
                for turn in one
            ],
            device=values.device,
        )
        loss = value_loss(values, wanted, count=count)
        (settings.value_weight * loss).backward()
        total += float(loss.detach())
    return total
