"""The SFT stage: imitate demonstrations, rendered exactly as a rollout renders them."""

import logging
import math
import time
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from turngym import seeding
from turngym.agents.action_formats import action_format
from turngym.agents.chat_template import PlainTemplate
from turngym.agents.language_model import LanguageModel
from turngym.agents.policy import task_key
from turngym.agents.rendering import demonstration_of, render_demonstration
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.errors import CollapseError, ConfigError
from turngym.training.batch import Row, micro_batches, row_of
from turngym.training.checkpoint import Tensors, load_tensors
from turngym.training.forward import token_scores
from turngym.training.metrics import MetricValue
from turngym.training.optimizers import OptimizerSet
from turngym.training.session import CHECKPOINTS, Session
from turngym.training.settings import EnvSettings, SftSettings
from turngym.training.stage_end import Keeper
from turngym.types import Author, Demonstration, Episode

logger = logging.getLogger(__name__)


def run_sft(session: Session, settings: SftSettings, episodes: Sequence[Episode]) -> None:
    """Runs the stage from where the session's state stands to its end."""
    lm = LanguageModel.of(session.model)
    optimizer = OptimizerSet(session.model, settings.optim, settings.steps)
    if session.state.stage_updates:
        newest = session.out / CHECKPOINTS / f"step-{session.state.step:08d}"
        optimizer.load_state_dict(load_tensors(newest)["optimizer"])
    feed = DemonstrationFeed(session, settings, episodes)
    keeper = Keeper(session, settings.name)
    keys = {task_key(episode.env_id, episode.task) for episode in episodes}
    session.state = session.state.model_copy(
        update={"trained_tasks": sorted(keys | set(session.state.trained_tasks))}
    )
    while session.state.stage_updates < settings.steps:
        started = time.perf_counter()
        done = session.state.stage_updates
        drawn = feed.rows(done)
        rows = rows_that_fit(drawn, session.recipe.agent.max_context, settings.name)
        report = sft_step(lm, rows, optimizer, done, settings.tokens_per_batch)
        if not math.isfinite(report.grad_norm):
            # No step was taken, so these weights are the last good ones.
            good = session.save(Tensors(optimizer.state_dict()))
            raise CollapseError(
                f"Training stopped: the gradient's norm is {report.grad_norm} at step {done + 1} of {settings.name}. "
                f"The last good checkpoint is {good}. Lower {settings.name}.optim.lr."
            )
        session.advance()
        session.engine.load(None, session.state.step)
        row: dict[str, MetricValue] = {
            "loss/sft": report.loss,
            "policy/grad_norm": report.grad_norm,
            "optim/lr_share": optimizer.lr_share(done),
            "tokens/trained": report.num_tokens,
            "episodes/dropped_too_long": len(drawn) - len(rows),
            "time/update_s": round(time.perf_counter() - started, 4),
        }
        if keeper.is_due(settings.steps):
            row |= keeper.measure()
        session.log(settings.name, row)
        if settings.checkpoint_every and session.state.stage_updates % settings.checkpoint_every == 0:
            session.save(Tensors(optimizer.state_dict()))
    keeper.finish()


def rows_that_fit(rows: Sequence[Row], max_context: int, stage: str) -> list[Row]:
    """The rows that an episode of the agent could hold; what is left out is counted in the metrics.

    Raises:
        ConfigError: none of them fits.
    """
    kept = [row for row in rows if len(row) <= max_context]
    if not kept:
        shortest = min(len(row) for row in rows)
        raise ConfigError(
            f"{stage}: every demonstration of a step is longer than agent.max_context={max_context} (the shortest has "
            f"{shortest} tokens). Raise agent.max_context and model.positions, or choose shorter tasks."
        )
    if len(kept) < len(rows):
        logger.warning("%d demonstrations exceed agent.max_context and were left out.", len(rows) - len(kept))
    return kept


@dataclass(frozen=True, slots=True)
class SftReport:
    """One optimizer step of SFT."""

    loss: float  # nats per trained action token
    num_tokens: int
    grad_norm: float


def sft_step(
    lm: LanguageModel, rows: Sequence[Row], optimizer: OptimizerSet, done: int, tokens_per_batch: int
) -> SftReport:
    """Mean of -log pi at temperature 1 over all trained action tokens of the step.

    Text tokens add their weighted loss to the numerator and nothing to the denominator, so that their
    weight is a plain trade against the action tokens' mean. Micro-batches change nothing.
    """
    lm.model.train()
    num_tokens = sum(int(row.action_mask.sum()) for row in rows)
    total = 0.0
    for batch in micro_batches(rows, tokens_per_batch):
        part = [rows[i] for i in batch]
        chosen = [row.loss_weight > 0 for row in part]
        if not any(mask.any() for mask in chosen):
            continue
        scores = token_scores(lm, part, temperature=1.0, chosen=chosen)
        weights = torch.cat(
            [torch.from_numpy(row.loss_weight[mask]) for row, mask in zip(part, chosen, strict=True)]
        )
        loss = -(weights.to(scores.log_probs) * scores.log_probs).sum() / max(num_tokens, 1)
        loss.backward()
        acted = torch.cat(
            [torch.from_numpy(row.action_mask[mask]) for row, mask in zip(part, chosen, strict=True)]
        )
        total -= float(scores.log_probs.detach().cpu()[acted].sum())
    return SftReport(total / max(num_tokens, 1), num_tokens, optimizer.step(done))


class DemonstrationFeed:
    """Rows of each optimizer step, the environments mixed by weight.

    Every demonstration of an environment comes once in a random order before any comes twice. A step's rows depend on (seed, stage, step) alone, so a resumed stage reads what it would have read.
    """

    def __init__(self, session: Session, settings: SftSettings, episodes: Sequence[Episode]) -> None:
        self._settings = settings
        self._path = (session.seed, settings.name)
        self._demos = [demonstration_of(episode) for episode in episodes]
        self._refs = [EnvRef.of(episode.env_id, **episode.env_kwargs) for episode in episodes]
        self._template = PlainTemplate(session.tokenizer)
        self._format = action_format(session.recipe.agent.action_format)
        # Episodes from a file may have been written by a policy or a person: those are imitated whole.
        self._trained: tuple[Author, ...] = ("expert", "policy", "human")
        if settings.train_on == "all":
            self._trained = (*self._trained, "noise")
        self._envs: dict[Hashable, TurnEnv] = {}
        self._block: tuple[int, list[list[int]]] = (-1, [])
        self._plan = self._planned(session.recipe.envs)

    def rows(self, step: int) -> list[Row]:
        """The rows of an optimizer step."""
        block, place = divmod(step, self._settings.bucket)
        if self._block[0] != block:
            self._block = (block, self._cut(block))
        progress = step / self._settings.steps
        rows = []
        for slot, index in enumerate(self._block[1][place]):
            demo = self._augmented(index, progress, seeding.integer(*self._path, "augment", step, slot))
            segments = render_demonstration(demo, self._template, self._format)
            rows += [
                row_of(segment, slot, trained=self._trained, text_weight=self._settings.text_weight)
                for segment in segments
            ]
        return rows

    def _cut(self, block: int) -> list[list[int]]:
        """Demonstrations of a block of steps: drawn, sorted by length, cut into steps, steps shuffled."""
        size = self._settings.episodes_per_step
        first = block * self._settings.bucket * size
        drawn = self._plan[first : first + self._settings.bucket * size]
        drawn.sort(key=lambda index: (_characters(self._demos[index]), index))
        steps = [drawn[i : i + size] for i in range(0, len(drawn), size)]
        order = seeding.generator(*self._path, "block", block).permutation(len(steps))
        return [steps[int(i)] for i in order]

    def _planned(self, envs: Sequence[EnvSettings]) -> list[int]:
        """The demonstration of every place of the stage; those from files may be of other environments."""
        weights = {EnvRef.of(env.id, **env.kwargs).key: env.weight for env in envs}
        owned: dict[Hashable, list[int]] = {}
        for index, ref in enumerate(self._refs):
            owned.setdefault(ref.key, []).append(index)
        blocks = -(-self._settings.steps // self._settings.bucket)
        places = blocks * self._settings.bucket * self._settings.episodes_per_step
        return mixed_by_weight(
            list(owned.values()), [weights.get(key, 1.0) for key in owned], places, self._path
        )

    def _augmented(self, index: int, progress: float, seed: int) -> Demonstration:
        demo = self._demos[index]
        for number, augment in enumerate(self._settings.augment):
            rng = seeding.generator(seed, augment.name, number)
            if augment.start <= progress <= augment.stop and rng.random() < augment.share:
                demo = self._env(index).augment(augment.name, demo, rng)
        return demo

    def _env(self, index: int) -> TurnEnv:
        ref = self._refs[index]
        if ref.key not in self._envs:
            self._envs[ref.key] = ref.make()
        return self._envs[ref.key]


def mixed_by_weight(
    groups: Sequence[Sequence[int]], weights: Sequence[float], places: int, path: Sequence[int | str]
) -> list[int]:
    """A member for each place: the group is drawn by weight, and a group's members come in random orders, each whole.

    A shorter plan is the beginning of a longer one.
    """
    shares = np.array(weights) / sum(weights)
    picks = seeding.generator(*path, "env").choice(len(groups), size=places, p=shares)
    taken = np.bincount(picks, minlength=len(groups))
    orders: list[list[np.ndarray]] = [[] for _ in groups]
    for epoch in range(max(-(-int(n) // len(group)) for n, group in zip(taken, groups, strict=True))):
        rng = seeding.generator(*path, "order", epoch)
        for order, group in zip(orders, groups, strict=True):
            order.append(rng.permutation(np.array(group)))
    plan = np.empty(places, dtype=np.int64)
    for which, order in enumerate(orders):
        plan[picks == which] = np.concatenate(order)[: taken[which]]
    return plan.tolist()


def _characters(demo: Demonstration) -> int:
    texts = (demo.instructions, *demo.observations[: len(demo.commands)], *demo.commands)
    return sum(len(text) for text in texts)
