"""The optimizer steps of the policy, and of a critic that shares its trunk."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from turngym.agents.language_model import LanguageModel
from turngym.training.batch import RolloutBatch, micro_batches
from turngym.training.forward import Critic, TokenScores, token_scores
from turngym.training.losses.averages import token_weights
from turngym.training.losses.clip import clip_loss
from turngym.training.losses.kl import kl_loss
from turngym.training.losses.value import value_loss
from turngym.training.optimizers import OptimizerSet
from turngym.training.settings import RlSettings
from turngym.training.update.columns import (
    TokenColumns,
    ValueColumns,
    episode_parts,
    places_of,
    row_slices,
    unit_ids,
)


@dataclass(frozen=True, slots=True)
class SharedCritic:
    """A head on the policy's trunk, which learns in the policy's steps.

    Attributes:
        optimizer: of the head alone; the trunk is the policy's.
        trains_policy: False while the critic warms up: the head learns, and nothing else.
    """

    critic: Critic
    optimizer: OptimizerSet
    columns: ValueColumns
    trains_policy: bool


@dataclass(frozen=True, slots=True)
class PolicyReport:
    """What the policy's steps did, over kept action tokens."""

    policy_loss: float
    kl_loss: float
    entropy: float
    clip_share: float
    dual_clip_share: float
    approx_kl: float
    grad_norm: float  # the largest of the steps, before clipping
    sampler_gap_mean: float  # abs(trainer - sampler) before the first step
    sampler_gap_max: float
    kl_k1: float | None  # to the reference before the first step; None without one
    kl_k3: float | None
    value_loss: float | None  # of a shared critic
    critic_grad_norm: float | None  # of its head, the largest
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
    shared: SharedCritic | None = None,
) -> PolicyReport:
    """Takes the policy's optimizer steps.

    Args:
        seed, update: name the order of the episodes in each pass; the update's number in the stage also
            places its steps in the schedule.
        shared: the critic on the policy's trunk, where there is one.
    """
    lm.model.train()
    steps = _PolicySteps(lm, batch, columns, settings, temperature, shared)
    done = update * settings.epochs * settings.minibatches
    for epoch in range(settings.epochs):
        path = (seed, "minibatch", update, epoch)
        for part in episode_parts(columns.kept, batch, settings.minibatches, *path):
            steps.backward(part)
            if not steps.take(optimizer, done):
                return steps.report()
    return steps.report()


class _PolicySteps:
    """The optimizer steps of an update: what they share, and running sums over them."""

    def __init__(
        self,
        lm: LanguageModel,
        batch: RolloutBatch,
        columns: TokenColumns,
        settings: RlSettings,
        temperature: float,
        shared: SharedCritic | None,
    ) -> None:
        self._lm, self._batch, self._columns = lm, batch, columns
        self._settings, self._temperature, self._shared = settings, temperature, shared
        self._slices = row_slices(batch)
        self._ratio_ids = unit_ids(batch, settings.policy_loss.ratio)
        self._policy = self._kl = self._entropy = self._approx_kl = self._value = 0.0
        self._clipped = self._dual_clipped = 0.0
        self._gap_sum = self._gap_max = self._k1 = self._k3 = 0.0
        self._tokens = self._gap_tokens = 0
        self._grad_norm = self._critic_grad_norm = 0.0
        self._taken = 0

    def backward(self, part: set[int]) -> None:
        """Gradients of one step over some episodes; averages are over the whole step, however it is cut."""
        batch, settings = self._batch, self._settings
        rows = [i for i, row in enumerate(batch.rows) if row.episode in part and row.action_mask.any()]
        step = places_of(self._slices, rows)
        mask = torch.zeros(batch.num_tokens, dtype=torch.bool)
        mask[step] = True
        turn_ids = unit_ids(batch, "turn")
        if turn_ids is None:
            raise AssertionError("turns have ids")
        weights = token_weights(
            mask, turn_ids, batch.token_episode, average=settings.average, constant=settings.constant
        ).float()
        num_targets = int(self._shared.columns.mask[step].sum()) if self._shared is not None else 0
        whole = settings.policy_loss.ratio == "episode"
        cut = micro_batches([batch.rows[i] for i in rows], settings.tokens_per_batch, whole_episodes=whole)
        for micro in cut:
            chosen = [rows[i] for i in micro]
            at = places_of(self._slices, chosen)
            scores = token_scores(self._lm, [batch.rows[i] for i in chosen], temperature=self._temperature)
            loss = self._value_term(scores, at, num_targets)
            if self._shared is None or self._shared.trains_policy:
                loss = loss + self._policy_term(scores, at, weights[at])
            if loss.requires_grad:
                loss.backward()

    def take(self, optimizer: OptimizerSet, done: int) -> bool:
        """One step with the gradients that lie ready; False where they are not finite, and no step was taken."""
        if self._shared is None or self._shared.trains_policy:
            norm = optimizer.step(done + self._taken)
            self._grad_norm = _larger(norm, self._grad_norm)
            if not math.isfinite(norm):
                return False
        if self._shared is not None:
            norm = self._shared.optimizer.step(done + self._taken)
            self._critic_grad_norm = _larger(norm, self._critic_grad_norm)
            if not math.isfinite(norm):
                return False
        self._taken += 1
        return True

    def _policy_term(self, scores: TokenScores, at: Tensor, weights: Tensor) -> Tensor:
        columns, settings, new = self._columns, self._settings, scores.log_probs
        # With one optimizer step this forward is the one before the first step, so old equals new.
        old = new.detach() if columns.old is None else columns.old[at].to(new.device)
        weights = weights.to(new.device)
        mismatch = 1.0 if columns.mismatch is None else columns.mismatch[at].to(weights)
        policy = clip_loss(
            new,
            old,
            columns.advantages[at].to(new.device),
            weights * mismatch,
            clip_low=settings.policy_loss.clip_low,
            clip_high=settings.policy_loss.clip_high,
            dual_clip=settings.policy_loss.dual_clip,
            unit=None if self._ratio_ids is None else self._ratio_ids[at].to(new.device),
        )
        loss = policy.loss
        if settings.entropy:
            loss = loss - settings.entropy * (weights * scores.entropy).sum()
        if settings.kl.name == "loss" and columns.reference is not None:
            reference = columns.reference[at].to(new.device)
            kl = (weights * kl_loss(new, reference, old, estimator=settings.kl.estimator)).sum()
            loss = loss + settings.kl.beta * kl
            self._kl += float(kl.detach())
        self._policy += float(policy.loss.detach())
        self._entropy += float(scores.entropy.detach().sum())
        self._clipped += float(policy.num_clipped)
        self._dual_clipped += float(policy.num_dual_clipped)
        self._approx_kl += float(policy.approx_kl_sum)
        self._tokens += len(at)
        if self._taken == 0:
            self._compare(new.detach().cpu().double(), at)
        return loss

    def _value_term(self, scores: TokenScores, at: Tensor, num_targets: int) -> Tensor:
        """The shared critic's loss; while it warms up, the trunk hears nothing of it."""
        if self._shared is None:
            return scores.log_probs.new_zeros(())
        columns, settings = self._shared.columns, self._settings
        wanted = columns.mask[at]
        hidden = scores.hidden[wanted.to(scores.hidden.device)]
        values = self._shared.critic.of_hidden(hidden if self._shared.trains_policy else hidden.detach())
        loss = value_loss(
            values,
            columns.targets[at[wanted]].to(values),
            count=num_targets,
            old=columns.old[at[wanted]].to(values),
            clip=settings.critic.value_clip,
        )
        self._value += float(loss.detach())
        return settings.value_weight * loss

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
        tokens, steps, gap_tokens = max(self._tokens, 1), max(self._taken, 1), max(self._gap_tokens, 1)
        has_reference = self._columns.reference is not None and self._gap_tokens > 0
        return PolicyReport(
            policy_loss=self._policy / steps,
            kl_loss=self._kl / steps,
            entropy=self._entropy / tokens,
            clip_share=self._clipped / tokens,
            dual_clip_share=self._dual_clipped / tokens,
            approx_kl=self._approx_kl / tokens,
            grad_norm=self._grad_norm,
            sampler_gap_mean=self._gap_sum / gap_tokens,
            sampler_gap_max=self._gap_max,
            kl_k1=self._k1 / gap_tokens if has_reference else None,
            kl_k3=self._k3 / gap_tokens if has_reference else None,
            value_loss=self._value / steps if self._shared is not None else None,
            critic_grad_norm=self._critic_grad_norm if self._shared is not None else None,
            steps=self._taken,
        )


def _larger(norm: float, largest: float) -> float:
    """The larger of two norms; NaN wins."""
    return norm if not norm <= largest else largest
