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
    seed: int,
    update: int,
) -> PolicyReport:
    """Takes the policy's optimizer steps.

    Args:
        seed, update: name the order of the episodes in each pass; the update's number in the stage also
            places its steps in the schedule.
    """
    lm.model.train()
    steps = _PolicySteps(lm, batch, columns, settings, temperature)
    done = update * settings.epochs * settings.minibatches
    for epoch in range(settings.epochs):
        for part in episode_parts(columns, batch, settings.minibatches, seed, update, epoch):
            steps.backward(part)
            norm = optimizer.step(done + steps.taken)
            steps.grad_norm = norm if not norm <= steps.grad_norm else steps.grad_norm
            if not math.isfinite(norm):
                return steps.report()
            steps.taken += 1
    return steps.report()


def episode_parts(
    columns: TokenColumns, batch: RolloutBatch, minibatches: int, seed: int, update: int, epoch: int
) -> list[set[int]]:
    """Kept episodes of each optimizer step of a pass; empty parts are left out."""
    kept = torch.unique(batch.token_episode[columns.kept]).tolist()
    order = [kept[i] for i in seeding.generator(seed, "minibatch", update, epoch).permutation(len(kept))]
    parts = [order[i::minibatches] for i in range(minibatches)]
    return [set(part) for part in parts if part]


class _PolicySteps:
    """The optimizer steps of an update: what they share, and running sums over them."""

    def __init__(
        self,
        lm: LanguageModel,
        batch: RolloutBatch,
        columns: TokenColumns,
        settings: RlSettings,
        temperature: float,
    ) -> None:
        self._lm, self._batch, self._columns = lm, batch, columns
        self._settings, self._temperature = settings, temperature
        self._slices = _row_slices(batch)
        self._policy = self._kl = self._entropy = self._clipped = self._approx_kl = 0.0
        self._gap_sum = self._gap_max = self._k1 = self._k3 = 0.0
        self._tokens = self._gap_tokens = 0
        self.grad_norm = 0.0
        self.taken = 0

    def backward(self, part: set[int]) -> None:
        """Gradients of one step over some episodes; averages are over the whole step, however it is cut."""
        batch, settings = self._batch, self._settings
        rows = [i for i, row in enumerate(batch.rows) if row.episode in part and row.action_mask.any()]
        mask = torch.zeros(batch.num_tokens, dtype=torch.bool)
        mask[self._places(rows)] = True
        turn_ids = batch.token_episode * (batch.mask.shape[1] + 1) + batch.token_turn
        weights = token_weights(
            mask, turn_ids, batch.token_episode, average=settings.average, constant=settings.constant
        ).float()
        for micro in micro_batches([batch.rows[i] for i in rows], settings.tokens_per_batch):
            chosen = [rows[i] for i in micro]
            at = self._places(chosen)
            self._micro_step(chosen, at, weights[at])

    def _places(self, rows: Sequence[int]) -> Tensor:
        """Where the action tokens of some rows stand in the per-token columns."""
        return torch.cat([torch.arange(self._slices[i].start, self._slices[i].stop) for i in rows])

    def _micro_step(self, chosen: Sequence[int], at: Tensor, weights: Tensor) -> None:
        columns, settings = self._columns, self._settings
        scores = token_scores(self._lm, [self._batch.rows[i] for i in chosen], temperature=self._temperature)
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
            self._kl += float(kl.detach())
        loss.backward()
        self._policy += float(policy.loss.detach())
        self._entropy += float(scores.entropy.detach().sum())
        self._clipped += float(policy.num_clipped)
        self._approx_kl += float(policy.approx_kl_sum)
        self._tokens += len(at)
        if self.taken == 0:
            self._compare(new.detach().cpu().double(), at)

    def _compare(self, new: Tensor, at: Tensor) -> None:
        """Distances of the trainer's log-probs, before the first step, to the sampler's and the reference's."""
        gap = (new - self._batch.sampler_log_probs[at]).abs()
        self._gap_sum += float(gap.sum())
        self._gap_max = max(self._gap_max, float(gap.max()))
        self._gap_tokens += len(at)
        if self._columns.reference is not None:
            d = new - self._columns.reference[at].double()
            self._k1 += float(d.sum())
            self._k3 += float(((-d).exp() - 1 + d).sum())

    def report(self) -> PolicyReport:
        tokens, steps, gap_tokens = max(self._tokens, 1), max(self.taken, 1), max(self._gap_tokens, 1)
        has_reference = self._columns.reference is not None and self._gap_tokens > 0
        return PolicyReport(
            policy_loss=self._policy / steps,
            kl_loss=self._kl / steps,
            entropy=self._entropy / tokens,
            clip_share=self._clipped / tokens,
            approx_kl=self._approx_kl / tokens,
            grad_norm=self.grad_norm,
            sampler_gap_mean=self._gap_sum / gap_tokens,
            sampler_gap_max=self._gap_max,
            kl_k1=self._k1 / gap_tokens if has_reference else None,
            kl_k3=self._k3 / gap_tokens if has_reference else None,
            steps=self.taken,
        )


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
    # Episodes whose following prompt did not fit the model; V was read at the last token that does.
    num_clipped: int


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
    seed: int,
    update: int,
) -> CriticReport:
    """Takes the critic's optimizer steps towards (N, T) targets where `target_mask` is True.

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
            if not part or not target_mask[sorted(part)].any():
                continue
            total += _critic_step(critic, batch, targets, target_mask, part, settings)
            norm = optimizer.step(done + steps)
            steps += 1
    return CriticReport(total / max(steps, 1), norm, steps)


def _critic_step(
    critic: Critic,
    batch: RolloutBatch,
    targets: Tensor,
    target_mask: Tensor,
    part: set[int],
    settings: RlSettings,
) -> float:
    """Gradients of one step over some episodes; the loss is averaged over the targets of all of them."""
    rows = [row for row in batch.rows if row.episode in part]
    count = int(target_mask[sorted(part)].sum())
    total = 0.0
    for micro in micro_batches(rows, settings.tokens_per_batch):
        chosen = [rows[i] for i in micro]
        kept = [
            {turn: place for turn, place in turn_places(row).items() if target_mask[row.episode, turn]}
            for row in chosen
        ]
        values = critic(chosen, [list(one.values()) for one in kept])
        keys = [(row.episode, turn) for row, one in zip(chosen, kept, strict=True) for turn in one]
        wanted = torch.tensor([float(targets[key]) for key in keys], device=values.device)
        loss = value_loss(values, wanted, count=count)
        (settings.value_weight * loss).backward()
        total += float(loss.detach())
    return total
