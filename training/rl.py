"""The RL stage: collect, estimate, update, log, save."""

import copy
import logging
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from turngym.agents.language_model import LanguageModel
from turngym.agents.load import load_model, policy_agent
from turngym.agents.policy import task_key
from turngym.episode_file import EpisodeWriter
from turngym.errors import InfraError
from turngym.training.advantages.base import ADVANTAGES, Advantages, estimate, needs_critic
from turngym.training.batch import RolloutBatch, rollout_batch
from turngym.training.checkpoint import Tensors, load_tensors
from turngym.training.collect import TaskStream, collect, group_jobs, task_sources
from turngym.training.forward import Critic, score_rows
from turngym.training.guard import Signs, watch
from turngym.training.ledger import Ledger
from turngym.training.metrics import MetricValue
from turngym.training.optimizers import OptimizerSet
from turngym.training.session import CHECKPOINTS, Session
from turngym.training.settings import RlSettings
from turngym.training.stage_end import Keeper
from turngym.training.update import (
    Bootstrap,
    PolicyReport,
    TokenColumns,
    bootstrap_values,
    critic_values,
    update_critic,
    update_policy,
)
from turngym.types import Episode

logger = logging.getLogger(__name__)

CANARY_TOLERANCE = 1e-3
CANARY_TOKENS = 64
SAMPLER_TOLERANCE = 1e-4
"""Largest difference at which the sampler's log-probs may stand for the trainer's (DEFINITIONS section 3)."""


@dataclass(slots=True)
class Learner:
    """What learns in the stage, and what it is held against."""

    policy: LanguageModel
    optimizer: OptimizerSet
    critic: Critic | None
    critic_optimizer: OptimizerSet | None
    reference: LanguageModel | None

    def tensors(self) -> Tensors:
        """What a checkpoint keeps of it."""
        critic_states = self.critic_optimizer.state_dict() if self.critic_optimizer else []
        return Tensors(self.optimizer.state_dict(), self.critic, critic_states)


def run_rl(session: Session, settings: RlSettings) -> None:
    """Runs the stage from where the session's state stands to its end."""
    learner = make_learner(session, settings)
    sources = task_sources(session.recipe.envs, "train", settings.tasks)
    if settings.tasks.count is not None:
        for source in sources:
            source.env.prepare(source.tasks)
    stream = TaskStream(sources, session.seed, settings.name, session.state.cursors)
    keeper = Keeper(session, settings.name)
    last_good = _last_good(session, settings)
    saved_at = session.state.stage_updates
    writer = _episode_writer(session, settings)
    while session.state.stage_updates < settings.updates:
        update, started = session.state.stage_updates, time.perf_counter()
        ledger = Ledger()
        tasks = stream.draw(update, settings.groups)
        jobs = group_jobs(
            tasks, group_size=settings.group_size, update=update, seed=session.seed, stage=settings.name
        )
        agent = policy_agent(
            session.engine,
            session.tokenizer,
            session.agent_config(),
            name="policy",
            temperature=session.recipe.agent.temperature,
        )
        collected = collect(jobs, session.pool, agent, session.recipe.run, session.ceiling, ledger)
        rollout_s = time.perf_counter() - started
        if writer is not None:
            for episode in collected.played:
                writer.write(episode)
        row, trained = train_on(session, settings, learner, collected.usable, ledger)
        ledger.check()
        keys = {task_key(env.env_id, task) for env, task in tasks} | set(session.state.trained_tasks)
        session.advance(
            cursors=stream.cursors, trained_tasks=sorted(keys), totals=_added(session.state.totals, ledger)
        )
        session.engine.load(None, session.state.step)
        row |= canary(session, learner, trained)
        row |= rollout_metrics(collected.played) | ledger.metrics()
        row |= {
            "time/rollout_s": round(rollout_s, 4),
            "time/update_s": round(time.perf_counter() - started - rollout_s, 4),
        }
        if keeper.is_due(settings.updates):
            row |= keeper.measure()
        session.log(settings.name, row)
        guard = watch(_signs(row, ledger), settings.guard, session.state.guard, str(last_good))
        session.state = session.state.model_copy(update={"guard": guard})
        # While an alarm is on nothing is saved, so that the newest checkpoint stays the last good one.
        if not any(guard.values()) and session.state.stage_updates - saved_at >= settings.checkpoint_every:
            last_good, saved_at = session.save(learner.tensors()), session.state.stage_updates
    if writer is not None:
        writer.close()
    keeper.finish()


def make_learner(session: Session, settings: RlSettings) -> Learner:
    """Policy, and critic and reference where the settings need them, as the state says or fresh."""
    resumed: dict[str, Any] = {}
    if session.state.stage_updates:
        resumed = load_tensors(session.out / CHECKPOINTS / f"step-{session.state.step:08d}")
    steps = settings.updates * settings.epochs * settings.minibatches
    policy = LanguageModel.of(session.model)
    optimizer = OptimizerSet(session.model, settings.optim, steps)
    start = _start_model(session, settings)
    critic, critic_optimizer = None, None
    if needs_critic(ADVANTAGES[settings.advantage.name].function):
        critic = Critic(cast(PreTrainedModel, copy.deepcopy(start.base_model)))
        critic_optimizer = OptimizerSet(critic, settings.critic.optim, steps)
        if resumed:
            critic.load_state_dict(resumed["critic"])
            critic_optimizer.load_state_dict(resumed["critic_optimizer"])
    if resumed:
        optimizer.load_state_dict(resumed["optimizer"])
    reference = None
    if settings.kl.name != "none":
        reference = LanguageModel.of(copy.deepcopy(start).requires_grad_(False))
    return Learner(policy, optimizer, critic, critic_optimizer, reference)


def train_on(
    session: Session, settings: RlSettings, learner: Learner, usable: Sequence[Episode], ledger: Ledger
) -> tuple[dict[str, MetricValue], RolloutBatch | None]:
    """Estimates advantages and takes the update's steps; with nothing to train on, no step is taken."""
    if not usable:
        return {}, None
    batch = rollout_batch(usable)
    temperature = session.recipe.agent.temperature
    values, bootstrap = _values(learner, batch, settings)
    old = reference = None
    if settings.old_log_probs == "sampler":
        old = batch.sampler_log_probs.float()
    elif settings.epochs * settings.minibatches > 1 or settings.kl.name == "reward":
        old = score_rows(
            learner.policy, batch.rows, temperature=temperature, tokens_per_batch=settings.tokens_per_batch
        )
    if learner.reference is not None:
        reference = score_rows(
            learner.reference, batch.rows, temperature=temperature, tokens_per_batch=settings.tokens_per_batch
        )
    estimated = estimate_advantages(settings, batch, values, bootstrap.values, old, reference)
    kept = _count_kept(estimated, batch, ledger)
    advantages = whiten(settings, estimated.advantages, batch.mask & kept.unsqueeze(1))
    row: dict[str, MetricValue] = {}
    if bootstrap.num_clipped:
        row["episodes/bootstrap_clipped"] = bootstrap.num_clipped
    if learner.critic is not None and estimated.value_targets is not None:
        row |= _critic_update(session, settings, learner, batch, estimated, values)
    if not bool(kept.any()) or session.state.stage_updates < settings.critic.warmup_updates * (
        learner.critic is not None
    ):
        return row, batch
    columns = TokenColumns(
        advantages=advantages[batch.token_episode, batch.token_turn].float(),
        kept=kept[batch.token_episode],
        old=old,
        reference=reference,
    )
    per_update = settings.epochs * settings.minibatches
    report = update_policy(
        learner.policy,
        batch,
        columns,
        settings,
        learner.optimizer,
        temperature=temperature,
        done=session.state.stage_updates * per_update,
        seed=session.seed,
        update=session.state.stage_updates,
    )
    check_sampler(report, settings)
    row |= _policy_metrics(report, learner, session.state.stage_updates * per_update)
    played = advantages[batch.mask & kept.unsqueeze(1)]
    row |= {"advantage/mean": float(played.mean()), "advantage/std": float(played.std(correction=0))}
    return row, batch


def estimate_advantages(
    settings: RlSettings,
    batch: RolloutBatch,
    values: Tensor,
    bootstrap: Tensor,
    old: Tensor | None,
    reference: Tensor | None,
) -> Advantages:
    """Advantages of a batch; with KL in the reward, which episodes are kept is judged without it."""
    columns = {
        "rewards": batch.rewards,
        "mask": batch.mask,
        "group": batch.group,
        "values": values,
        "bootstrap": bootstrap,
    }
    plain = estimate(settings.advantage, columns)
    if settings.kl.name != "reward" or old is None or reference is None:
        return plain
    penalty = torch.zeros_like(batch.rewards)
    penalty.index_put_((batch.token_episode, batch.token_turn), (old - reference).double(), accumulate=True)
    held = estimate(settings.advantage, columns | {"rewards": batch.rewards - settings.kl.beta * penalty})
    return Advantages(held.advantages, held.value_targets, held.target_mask, plain.kept, plain.reasons)


def check_sampler(report: PolicyReport, settings: RlSettings) -> None:
    """Holds the sampler's log-probs against the trainer's, where they stood for those before the update.

    Raises:
        InfraError: they differ by more than the tolerance.
    """
    if settings.old_log_probs == "sampler" and not report.sampler_gap_max <= SAMPLER_TOLERANCE:
        raise InfraError(
            f"The sampler's log-probs differ from the trainer's by up to {report.sampler_gap_max:.2g} (tolerance "
            f"{SAMPLER_TOLERANCE:g}). Set rl.old_log_probs=trainer; the newest checkpoint is older than this update."
        )


def whiten(settings: RlSettings, advantages: Tensor, mask: Tensor) -> Tensor:
    """Advantages shifted and scaled over the kept turns (or episodes), where the settings ask for it."""
    if settings.advantage.whiten == "none" or not bool(mask.any()):
        return advantages
    per_episode = getattr(settings.advantage, "credit", "turn") == "episode"
    over = advantages[mask.any(dim=1), 0] if per_episode else advantages[mask]
    scaled = (advantages - over.mean()) / (over.std(correction=0) + 1e-8)
    return torch.where(mask, scaled, 0.0)


def canary(session: Session, learner: Learner, batch: RolloutBatch | None) -> dict[str, MetricValue]:
    """Scores some tokens in trainer and engine after the weights changed.

    Raises:
        InfraError: they differ by more than the tolerance, so the engine plays with other weights.
    """
    if batch is None:
        return {}
    ids = [int(i) for i in batch.rows[0].token_ids[:CANARY_TOKENS]]
    learner.policy.model.eval()
    with torch.no_grad():
        device = learner.policy.model.device
        logits = learner.policy.model(input_ids=torch.tensor([ids], device=device), use_cache=False).logits[0]
        wanted = torch.log_softmax(logits[:-1].float(), dim=-1)
        wanted = wanted.gather(1, torch.tensor(ids[1:], device=device).unsqueeze(1)).squeeze(1)
    gap = float((session.engine.score(ids) - wanted).abs().max())
    if not gap <= CANARY_TOLERANCE:
        raise InfraError(
            f"After the weights changed, engine and trainer differ by {gap:.2g} in log-prob (tolerance "
            f"{CANARY_TOLERANCE:g}): the engine plays with other weights. The run stopped; nothing was saved since."
        )
    return {"policy/canary_gap": gap}


def rollout_metrics(episodes: Sequence[Episode]) -> dict[str, MetricValue]:
    """How the episodes of an update went; infra failures are outside."""
    counted = [episode for episode in episodes if episode.outcome != "infra"]
    turns = [turn for episode in counted for turn in episode.turns]
    tokens = sum(
        int(np.sum([s.end - s.start for s in seg.spans if s.author == "policy"]))
        for e in counted
        for seg in e.segments
    )
    row: dict[str, MetricValue] = {
        "rollout/success": sum(e.success for e in counted) / max(len(counted), 1),
        "rollout/return_mean": sum(e.episode_return for e in counted) / max(len(counted), 1),
        "rollout/turns_per_episode": len(turns) / max(len(counted), 1),
        "rollout/tokens_per_turn": tokens / max(len(turns), 1),
        "rollout/valid_share": sum(turn.valid for turn in turns) / max(len(turns), 1),
        "rollout/repetition": _repetition(counted),
    }
    outcomes = Counter(episode.outcome for episode in episodes)
    return row | {f"outcome/{outcome}": count for outcome, count in sorted(outcomes.items())}


def _repetition(episodes: Sequence[Episode]) -> float:
    """Share of action tokens equal to the token before them."""
    same = total = 0
    for segment in (segment for episode in episodes for segment in episode.segments):
        ids = np.array(segment.token_ids)
        for span in segment.spans:
            if span.author == "policy" and span.start > 0:
                same += int((ids[span.start : span.end] == ids[span.start - 1 : span.end - 1]).sum())
                total += span.end - span.start
    return same / max(total, 1)


def _values(learner: Learner, batch: RolloutBatch, settings: RlSettings) -> tuple[Tensor, Bootstrap]:
    terminal = Bootstrap(torch.zeros(len(batch.episodes), dtype=torch.float64), 0)
    if learner.critic is None:
        return torch.zeros_like(batch.rewards), terminal
    values = critic_values(learner.critic, batch, settings.tokens_per_batch)
    if settings.truncation == "terminal":
        return values, terminal
    return values, bootstrap_values(learner.critic, batch, settings.tokens_per_batch)


def _count_kept(estimated: Advantages, batch: RolloutBatch, ledger: Ledger) -> Tensor:
    """(N,) kept episodes, and the ledger's entries for all of them."""
    count = len(batch.episodes)
    kept = estimated.kept if estimated.kept is not None else torch.ones(count, dtype=torch.bool)
    tokens = torch.bincount(batch.token_episode, minlength=count)
    ledger.add("trained", int(kept.sum()), int(tokens[kept].sum()))
    left = ~kept
    for reason, where in (estimated.reasons or {}).items():
        ledger.add(f"dropped_{reason}", int((where & left).sum()), int(tokens[where & left].sum()))
        left = left & ~where
    ledger.add("dropped_by_estimator", int(left.sum()), int(tokens[left].sum()))
    return kept


def _critic_update(
    session: Session,
    settings: RlSettings,
    learner: Learner,
    batch: RolloutBatch,
    estimated: Advantages,
    values: Tensor,
) -> dict[str, MetricValue]:
    critic, optimizer, targets = learner.critic, learner.critic_optimizer, estimated.value_targets
    if critic is None or optimizer is None or targets is None:
        raise AssertionError("a critic has its optimizer and targets")
    mask = estimated.target_mask if estimated.target_mask is not None else batch.mask
    report = update_critic(
        critic,
        batch,
        targets,
        mask,
        settings,
        optimizer,
        done=session.state.stage_updates * settings.epochs * settings.minibatches,
        seed=session.seed,
        update=session.state.stage_updates,
    )
    spread = float(targets[mask].var(correction=0))
    missed = float((targets - values)[mask].var(correction=0))
    return {
        "loss/value": report.value_loss,
        "critic/grad_norm": report.grad_norm,
        "critic/explained_variance": 1 - missed / spread if spread > 0 else 0.0,
    }


def _policy_metrics(report: PolicyReport, learner: Learner, done: int) -> dict[str, MetricValue]:
    kl = {"kl/k1": report.kl_k1, "kl/k3": report.kl_k3}
    return {name: value for name, value in kl.items() if value is not None} | {
        "loss/policy": report.policy_loss,
        "loss/kl": report.kl_loss,
        "policy/entropy": report.entropy,
        "policy/clip_share": report.clip_share,
        "policy/approx_kl": report.approx_kl,
        "policy/grad_norm": report.grad_norm,
        "policy/sampler_gap_mean": report.sampler_gap_mean,
        "policy/sampler_gap_max": report.sampler_gap_max,
        "policy/steps": report.steps,
        "optim/lr_share": learner.optimizer.lr_share(done),
    }


def _signs(row: dict[str, MetricValue], ledger: Ledger) -> Signs:
    entropy, norm = row.get("policy/entropy"), row.get("policy/grad_norm")
    return Signs(
        trained_episodes=ledger.episodes["trained"],
        success=float(row["rollout/success"]),
        repetition=float(row["rollout/repetition"]),
        entropy=None if entropy is None else float(entropy),
        grad_norm=None if norm is None else float(norm),
    )


def _start_model(session: Session, settings: RlSettings) -> PreTrainedModel:
    """The policy as the stage began, from its folder where the run was resumed inside the stage."""
    start = session.out / settings.name / "start"
    if session.state.stage_updates == 0:
        session.save_weights(start, "the start of the stage")
        return session.model
    model, _ = load_model(start, device=session.recipe.run.device)
    return model


def _last_good(session: Session, settings: RlSettings) -> Path:
    """The newest weights on disk when the stage begins or goes on."""
    if session.state.stage_updates == 0:
        return session.out / settings.name / "start"
    return session.out / CHECKPOINTS / f"step-{session.state.step:08d}"


def _episode_writer(session: Session, settings: RlSettings) -> EpisodeWriter | None:
    """The stage's episode file, cut back to the updates that the checkpoint knows."""
    if not settings.save_episodes:
        return None
    path = session.out / settings.name / "episodes.jsonl"
    if path.exists():
        known = session.state.stage_updates * settings.groups * settings.group_size
        lines = path.read_bytes().splitlines(keepends=True)[:known]
        path.write_bytes(b"".join(lines))
    return EpisodeWriter(path)


def _added(totals: dict[str, dict[str, int]], ledger: Ledger) -> dict[str, dict[str, int]]:
    out = {}
    for what, counts in ledger.totals().items():
        out[what] = dict(Counter(totals.get(what, {})) + Counter(counts))
    return out
