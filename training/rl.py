"""The RL stage: collect, estimate, update, log, save."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from turngym.agents.language_model import LanguageModel
from turngym.agents.load import policy_agent
from turngym.agents.policy import task_key
from turngym.envs.pool import EnvRef
from turngym.episode_file import EpisodeWriter
from turngym.errors import InfraError
from turngym.training.advantages.base import Advantages, estimate
from turngym.training.batch import RolloutBatch, rollout_batch
from turngym.training.collect import Collected, TaskStream, collect, group_jobs, task_sources
from turngym.training.forward import score_rows
from turngym.training.guard import watch
from turngym.training.learner import Learner, canary, make_learner
from turngym.training.ledger import Ledger
from turngym.training.metrics import MetricValue
from turngym.training.rl_metrics import policy_metrics, rollout_metrics, signs_of
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

SAMPLER_TOLERANCE = 1e-4
"""Largest difference at which the sampler's log-probs may stand for the trainer's (DEFINITIONS section 3)."""


def run_rl(session: Session, settings: RlSettings) -> None:
    """Runs the stage from where the session's state stands to its end."""
    learner = make_learner(session, settings)
    sources = task_sources(session.recipe.envs, "train", settings.tasks)
    if settings.tasks.count is not None:
        for source in sources:
            session.pool.prepare(source.env, source.tasks)
    stream = TaskStream(sources, session.seed, settings.name, session.state.cursors)
    keeper = Keeper(session, settings.name)
    last_good = _last_good(session, settings)
    saved_at = session.state.stage_updates
    with _saved_episodes(session, settings) as save:
        while session.state.stage_updates < settings.updates:
            started, ledger = time.perf_counter(), Ledger()
            tasks = stream.draw(session.state.stage_updates, settings.groups)
            collected = _collect(session, settings, tasks, ledger)
            rollout_s = time.perf_counter() - started
            save(collected.played)
            row, trained = train_on(session, settings, learner, collected.usable, ledger)
            ledger.check()
            keys = {task_key(env.env_id, task) for env, task in tasks} | set(session.state.trained_tasks)
            session.advance(
                cursors=stream.cursors,
                trained_tasks=sorted(keys),
                totals=_added(session.state.totals, ledger),
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
            guard = watch(signs_of(row, ledger), settings.guard, session.state.guard, str(last_good))
            session.state = session.state.model_copy(update={"guard": guard})
            # While an alarm is on nothing is saved, so that the newest checkpoint stays the last good one.
            if (
                not any(guard.values())
                and session.state.stage_updates - saved_at >= settings.checkpoint_every
            ):
                last_good, saved_at = session.save(learner.tensors()), session.state.stage_updates
    keeper.finish()


def _collect(
    session: Session, settings: RlSettings, tasks: Sequence[tuple[EnvRef, str]], ledger: Ledger
) -> Collected:
    update = session.state.stage_updates
    jobs = group_jobs(
        tasks, group_size=settings.group_size, update=update, seed=session.seed, stage=settings.name
    )
    config = session.agent_config()
    agent = policy_agent(
        session.engine, session.tokenizer, config, name="policy", temperature=config.temperature
    )
    return collect(jobs, session.pool, agent, session.recipe.run, session.ceiling, ledger)


def train_on(
    session: Session, settings: RlSettings, learner: Learner, usable: Sequence[Episode], ledger: Ledger
) -> tuple[dict[str, MetricValue], RolloutBatch | None]:
    """Estimates advantages and takes the update's steps; with nothing to train on, no step is taken."""
    if not usable:
        return {}, None
    batch = rollout_batch(usable)
    temperature = session.recipe.agent.temperature

    def scores_of(lm: LanguageModel) -> Tensor:
        return score_rows(lm, batch.rows, temperature=temperature, tokens_per_batch=settings.tokens_per_batch)

    values, bootstrap = _values(learner, batch, settings)
    old = None
    if settings.old_log_probs == "sampler":
        old = batch.sampler_log_probs.float()
    elif settings.epochs * settings.minibatches > 1 or settings.kl.name == "reward":
        old = scores_of(learner.policy)
    reference = scores_of(learner.reference) if learner.reference is not None else None
    estimated = estimate_advantages(settings, batch, values, bootstrap.values, old, reference)
    kept = _count_kept(estimated, batch, ledger)
    advantages = whiten(settings, estimated.advantages, batch.mask & kept.unsqueeze(1))
    row: dict[str, MetricValue] = {}
    if bootstrap.num_clipped:
        row["episodes/bootstrap_clipped"] = bootstrap.num_clipped
    if learner.critic is not None and estimated.value_targets is not None:
        row |= _critic_update(session, settings, learner, batch, estimated, values)
    warms_up = learner.critic is not None and session.state.stage_updates < settings.critic.warmup_updates
    if warms_up or not bool(kept.any()):
        return row, batch
    columns = TokenColumns(
        advantages=advantages[batch.token_episode, batch.token_turn].float(),
        kept=kept[batch.token_episode],
        old=old,
        reference=reference,
    )
    report = update_policy(
        learner.policy,
        batch,
        columns,
        settings,
        learner.optimizer,
        temperature=temperature,
        seed=session.seed,
        update=session.state.stage_updates,
    )
    check_sampler(report, settings)
    done = session.state.stage_updates * settings.epochs * settings.minibatches
    row |= policy_metrics(report) | {"optim/lr_share": learner.optimizer.lr_share(done)}
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


def _last_good(session: Session, settings: RlSettings) -> Path:
    """The newest weights on disk when the stage begins or goes on."""
    if session.state.stage_updates == 0:
        return session.out / settings.name / "start"
    return session.out / CHECKPOINTS / f"step-{session.state.step:08d}"


@contextmanager
def _saved_episodes(session: Session, settings: RlSettings) -> Iterator[Callable[[Iterable[Episode]], None]]:
    """Appends to the stage's episode file, cut back to the updates that the checkpoint knows."""
    if not settings.save_episodes:
        yield lambda episodes: None
        return
    path = session.out / settings.name / "episodes.jsonl"
    if path.exists():
        known = session.state.stage_updates * settings.groups * settings.group_size
        lines = path.read_bytes().splitlines(keepends=True)[:known]
        path.write_bytes(b"".join(lines))
    with EpisodeWriter(path) as writer:

        def save(episodes: Iterable[Episode]) -> None:
            for episode in episodes:
                writer.write(episode)

        yield save


def _added(totals: dict[str, dict[str, int]], ledger: Ledger) -> dict[str, dict[str, int]]:
    out = {}
    for what, counts in ledger.totals().items():
        out[what] = dict(Counter(totals.get(what, {})) + Counter(counts))
    return out
