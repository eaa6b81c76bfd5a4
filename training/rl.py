"""The RL stage: collect, estimate, update, log, save."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import torch
from torch import Tensor

from turngym.agents.chat_template import PlainTemplate
from turngym.agents.language_model import LanguageModel
from turngym.agents.load import policy_agent
from turngym.agents.policy import task_key
from turngym.envs.pool import EnvRef
from turngym.episode_file import EpisodeWriter
from turngym.errors import InfraError
from turngym.training.batch import RolloutBatch, rollout_batch
from turngym.training.collect import Collected, TaskStream, collect, group_jobs, task_sources
from turngym.training.forward import score_rows
from turngym.training.guard import watch
from turngym.training.learner import Learner, canary, make_learner
from turngym.training.ledger import Ledger
from turngym.training.losses.ratio import mismatch_weights
from turngym.training.metrics import MetricValue
from turngym.training.rl_metrics import policy_metrics, rollout_metrics, shared_critic_metrics, signs_of
from turngym.training.session import CHECKPOINTS, Session
from turngym.training.settings import RlSettings
from turngym.training.stage_end import Keeper
from turngym.training.update.columns import TokenColumns, ValueColumns, unit_ids
from turngym.training.update.critic import update_critic
from turngym.training.update.estimate import Estimated, estimated
from turngym.training.update.policy import PolicyReport, SharedCritic, update_policy
from turngym.training.update.values import Bootstrap, bootstrap_values, critic_values, following_prompt
from turngym.types import Episode, Outcome

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
            if settings.kl.update_every and session.state.stage_updates % settings.kl.update_every == 0:
                learner.move_reference(settings.kl.update_share)
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

    def scores_of(lm: LanguageModel) -> Tensor:
        return score_rows(
            lm,
            batch.rows,
            temperature=session.recipe.agent.temperature,
            tokens_per_batch=settings.tokens_per_batch,
        )

    values, bootstrap = _values(session, learner, batch, settings)
    old = None
    if settings.old_log_probs == "sampler":
        old = batch.sampler_log_probs.float()
    elif _reads_old_log_probs(settings):
        old = scores_of(learner.policy)
    reference = scores_of(learner.reference) if learner.reference is not None else None
    told = estimated(settings, batch, values=values, bootstrap=bootstrap.values, old=old, reference=reference)
    _count_kept(told, batch, ledger)
    columns = TokenColumns(
        advantages=batch.per_token(told.advantages).float(),
        kept=told.kept[batch.token_episode],
        old=old,
        reference=reference,
        mismatch=_mismatch(settings, batch, old),
    )
    row: dict[str, MetricValue] = {}
    if bootstrap.num_clipped:
        row["episodes/bootstrap_clipped"] = bootstrap.num_clipped
    if told.values is not None:
        row |= _critic_metrics(told.values)
        if not settings.critic.shared:
            row |= _critic_update(session, settings, learner, batch, told.values)
    if bool(told.kept.any()):
        row |= _policy_update(session, settings, learner, batch, columns, told)
    return row, batch


def _policy_update(
    session: Session,
    settings: RlSettings,
    learner: Learner,
    batch: RolloutBatch,
    columns: TokenColumns,
    told: Estimated,
) -> dict[str, MetricValue]:
    """The policy's steps, unless its critic still warms up alone."""
    done, critic = session.state.stage_updates, learner.critic
    warms_up = critic is not None and done < settings.critic.warmup_updates
    shared, optimizer = None, learner.critic_optimizer
    if settings.critic.shared and critic is not None and optimizer is not None and told.values is not None:
        shared = SharedCritic(critic, optimizer, told.values, trains_policy=not warms_up)
    if warms_up and shared is None:
        return {}
    report = update_policy(
        learner.policy,
        batch,
        columns,
        settings,
        learner.optimizer,
        temperature=session.recipe.agent.temperature,
        seed=session.seed,
        update=done,
        shared=shared,
    )
    row = shared_critic_metrics(report)
    if warms_up:
        return row
    check_sampler(report, settings)
    steps = done * settings.epochs * settings.minibatches
    row |= policy_metrics(report) | {"optim/lr_share": learner.optimizer.lr_share(steps)}
    if columns.mismatch is not None:
        row["policy/mismatch_weight"] = float(columns.mismatch[columns.kept].mean())
    numbers = told.advantages[told.mask]
    return row | {"advantage/mean": float(numbers.mean()), "advantage/std": float(numbers.std(correction=0))}


def _reads_old_log_probs(settings: RlSettings) -> bool:
    """Whether a forward before the first step is needed; a single step's own forward is one."""
    several = settings.epochs * settings.minibatches > 1
    return several or settings.kl.name == "reward" or settings.mismatch.name != "none"


def _mismatch(settings: RlSettings, batch: RolloutBatch, old: Tensor | None) -> Tensor | None:
    if settings.mismatch.name == "none" or old is None:
        return None
    unit = unit_ids(batch, settings.mismatch.unit)
    return mismatch_weights(old, batch.sampler_log_probs.float(), unit, cap=settings.mismatch.cap)


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


def _values(
    session: Session, learner: Learner, batch: RolloutBatch, settings: RlSettings
) -> tuple[Tensor | None, Bootstrap]:
    """(M,) the critic's estimates, None without one, and those after the last turn."""
    terminal = Bootstrap(torch.zeros(len(batch.episodes), dtype=torch.float64), 0)
    if learner.critic is None:
        return None, terminal
    values = critic_values(learner.critic, batch, settings.tokens_per_batch)
    if settings.truncation == "terminal":
        return values, terminal
    outcomes: tuple[Outcome, ...] = ("token_limit", "time_limit")
    if settings.bootstrap_turn_limit:
        outcomes = (*outcomes, "turn_limit")
    return values, bootstrap_values(
        learner.critic,
        batch,
        settings.tokens_per_batch,
        outcomes=outcomes,
        following=following_prompt(PlainTemplate(session.tokenizer)),
    )


def _count_kept(told: Estimated, batch: RolloutBatch, ledger: Ledger) -> None:
    """The ledger's entries for all episodes of the batch."""
    tokens = torch.bincount(batch.token_episode, minlength=len(batch.episodes))
    kept, left = told.kept, ~told.kept
    ledger.add("trained", int(kept.sum()), int(tokens[kept].sum()))
    for reason, where in told.reasons.items():
        ledger.add(f"dropped_{reason}", int((where & left).sum()), int(tokens[where & left].sum()))
        left = left & ~where
    ledger.add("dropped_by_estimator", int(left.sum()), int(tokens[left].sum()))


def _critic_update(
    session: Session, settings: RlSettings, learner: Learner, batch: RolloutBatch, columns: ValueColumns
) -> dict[str, MetricValue]:
    critic, optimizer = learner.critic, learner.critic_optimizer
    if critic is None or optimizer is None:
        raise AssertionError("a critic has its optimizer")
    update = session.state.stage_updates
    report = update_critic(critic, batch, columns, settings, optimizer, seed=session.seed, update=update)
    return {"loss/value": report.value_loss, "critic/grad_norm": report.grad_norm}


def _critic_metrics(columns: ValueColumns) -> dict[str, MetricValue]:
    """How much of the targets the critic knew before the update."""
    targets, old = columns.targets[columns.mask], columns.old[columns.mask]
    spread, missed = float(targets.var(correction=0)), float((targets - old).var(correction=0))
    return {"critic/explained_variance": 1 - missed / spread if spread > 0 else 0.0}


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
