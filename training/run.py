"""A run: its folder, its stages one after the other, and how it goes on after a stop."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerFast

from turngym.agents.engines.local import LocalEngine
from turngym.agents.load import checkpoint_folder, load_model
from turngym.agents.tiny import build_model, build_tokenizer
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvPool, EnvRef, PoolLimits, make_pool
from turngym.envs.registration import register_factory
from turngym.errors import CheckpointError, ConfigError
from turngym.training.checkpoint import (
    Tensors,
    TrainerState,
    clean_half_written,
    load_state,
    newest_checkpoint,
)
from turngym.training.collect import task_sources, validation_sources
from turngym.training.demos import demonstrations
from turngym.training.metrics import MetricsLog, MetricValue, read_metrics
from turngym.training.recipe import load_recipe
from turngym.training.rl import run_rl
from turngym.training.run_folder import FINISHED_FILE, claim_folder, copy_folder, hold_folder
from turngym.training.session import CHECKPOINTS, Session
from turngym.training.settings import (
    FolderModel,
    Recipe,
    RunSettings,
    SftSettings,
    Stage,
    TaskSlice,
    TinyModel,
)
from turngym.training.sft import run_sft
from turngym.training.vocabulary import environment_words, episode_texts, sample_episodes
from turngym.types import Episode

logger = logging.getLogger(__name__)

OnRow = Callable[[Mapping[str, MetricValue]], None]
OnProgress = Callable[[str, int, int], None]


@dataclass(frozen=True, slots=True)
class Run:
    """A finished run.

    Attributes:
        out: its folder.
        final: checkpoint folder with the weights of its last stage, for `bench` and `play`.
    """

    out: Path
    final: Path

    def metrics(self) -> list[dict[str, MetricValue]]:
        """Rows of metrics.jsonl."""
        return read_metrics(self.out / "metrics.jsonl")


def train(
    recipe: str | Mapping[str, Any] | Recipe,
    *,
    env: "str | gymnasium.Env[str, str] | Callable[..., TurnEnv] | EnvRef | None" = None,
    overrides: Sequence[str] = (),
    only: str | None = None,
    workers: int | None = None,
    on_row: OnRow | None = None,
    on_progress: OnProgress | None = None,
    **changes: Any,
) -> Run:
    """Runs a recipe, or goes on with it where its folder holds an unfinished run.

    Args:
        recipe: bundled name, path, mapping or recipe.
        env: plays this environment instead of the recipe's: an id, a made environment or a factory.
        overrides: `dotted.key=value` texts, as on the command line.
        only: "sft" runs only the SFT stages.
        workers: worker processes of the environments, as `run__workers`; None leaves it to the recipe.
        on_row, on_progress: called with each row of metrics, and with (what, done, total) of long work.
        changes: settings by name, dots written as double underscores: `advantage="rloo"`, `run__seed=2`.

    Returns:
        The finished run.

    Raises:
        ConfigError: a wrong setting, the folder holds another run, or another process trains in it.
        CollapseError: training stopped itself; its last good checkpoint is named.
    """
    if workers is not None:
        changes["run__workers"] = workers
    resolved = _prepare_recipe(recipe, env, overrides, only, changes)
    name = recipe if isinstance(recipe, str) else "run"
    part = f"-{only}" if only is not None else ""
    out = Path(resolved.run.out or f"runs/{Path(name).stem}{part}-seed{resolved.run.seed}")
    with hold_folder(out):
        if claim_folder(out, resolved):
            logger.info("%s is finished already; nothing was done.", out)
        else:
            _run(resolved, out, on_row, on_progress)
    return Run(out, out / "final")


def sft(recipe: str | Mapping[str, Any] | Recipe, **arguments: Any) -> Run:
    """Runs only the SFT stages of a recipe; arguments as of `train`."""
    return train(recipe, only="sft", **arguments)


def _prepare_recipe(
    recipe: str | Mapping[str, Any] | Recipe,
    env: Any,
    overrides: Sequence[str],
    only: str | None,
    changes: Mapping[str, Any],
) -> Recipe:
    if env is not None:
        ref = EnvRef.of(env)
        env_id = register_factory(ref.factory) if ref.factory is not None else ref.env_id
        changes = {**changes, "envs": [{"id": env_id, "kwargs": dict(ref.kwargs)}]}
    resolved = load_recipe(recipe, overrides, **changes)
    if only is None:
        return resolved
    stages = tuple(stage for stage in resolved.stages if getattr(stage, only) is not None)
    if not stages:
        raise ConfigError(f"This recipe has no {only} stage. `turngym train` runs all its stages.")
    return resolved.model_copy(update={"stages": stages})


def _run(recipe: Recipe, out: Path, on_row: OnRow | None, on_progress: OnProgress | None) -> None:
    _set_threads(recipe.run)
    pool = _make_pool(recipe)
    try:
        session, demos = _open(recipe, out, pool, on_row, on_progress)
        _run_stages(session, demos)
    finally:
        pool.close()


def _make_pool(recipe: Recipe) -> EnvPool:
    run = recipe.run
    return make_pool(
        workers=run.workers,
        limits=PoolLimits(deadline_s=run.deadline_s, memory_mb=run.worker_memory_mb),
        envs=[EnvRef.of(env.id, **env.kwargs) for env in recipe.envs],
    )


def _set_threads(run: RunSettings) -> None:
    if torch.get_num_threads() != run.threads:
        torch.set_num_threads(run.threads)


def _open(
    recipe: Recipe, out: Path, pool: EnvPool, on_row: OnRow | None, on_progress: OnProgress | None
) -> tuple[Session, dict[str, list[Episode]]]:
    """A session at the newest checkpoint, or at the beginning, and the demonstrations at hand."""
    _check_tasks(recipe)
    clean_half_written(out / CHECKPOINTS)
    newest, skipped = newest_checkpoint(out / CHECKPOINTS)
    if skipped:
        logger.warning("Passed over incomplete checkpoints: %s.", ", ".join(skipped))
    demos: dict[str, list[Episode]] = {}
    state = TrainerState(threads=recipe.run.threads)
    if newest is not None:
        state = load_state(newest)
        if state.threads != recipe.run.threads:
            raise CheckpointError(
                f"{newest} was written with run.threads={state.threads}, now {recipe.run.threads}: the last bits would "
                f"differ. Resume with run.threads={state.threads}."
            )
        logger.info("Going on from %s.", newest)
        model, tokenizer = load_model(newest, device=recipe.run.device)
    else:
        model, tokenizer = _first_model(recipe, out, pool, demos, on_progress)
    metrics = MetricsLog(out / "metrics.jsonl", on_row=on_row)
    metrics.keep_until(state.step)
    engine = LocalEngine(model, version=state.step)
    session = Session(recipe, out, model, tokenizer, engine, pool, metrics, state, on_progress=on_progress)
    return session, demos


def _check_tasks(recipe: Recipe) -> None:
    """Finds out before hours of work that a stage or the validation asks for tasks that are not there."""
    for stage in recipe.stages:
        task_sources(recipe.envs, "train", stage.settings.tasks, setting=f"{stage.settings.name}.tasks")
    validation_sources(recipe)


def _first_model(
    recipe: Recipe, out: Path, pool: EnvPool, demos: dict[str, list[Episode]], on_progress: OnProgress | None
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    if isinstance(recipe.model, FolderModel):
        return load_model(checkpoint_folder(recipe.model.path), device=recipe.run.device)
    return _tiny_model(recipe, recipe.model, out, pool, demos, on_progress)


def _tiny_model(
    recipe: Recipe,
    model: TinyModel,
    out: Path,
    pool: EnvPool,
    demos: dict[str, list[Episode]],
    on_progress: OnProgress | None,
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """A new tokenizer from the environments' own text, and a model with random weights."""
    sources = task_sources(recipe.envs, "train", TaskSlice())
    first = next((stage.sft for stage in recipe.stages if stage.sft is not None), None)
    if first is not None:
        episodes = demos[first.name] = _demos_of(first, recipe, out, pool, on_progress)
    else:
        episodes = sample_episodes(sources, pool, seed=recipe.run.seed, slots=recipe.run.slots)
    tokenizer = build_tokenizer(episode_texts(episodes), environment_words(sources))
    made = build_model(
        tokenizer,
        hidden=model.hidden,
        layers=model.layers,
        heads=model.heads,
        ff=model.ff,
        positions=model.positions,
        seed=recipe.run.seed,
    )
    logger.info(
        "Made a model of %.2f M parameters and %d words.",
        sum(p.numel() for p in made.parameters()) / 1e6,
        len(tokenizer),
    )
    made.to(recipe.run.device)  # type: ignore[arg-type]  # transformers wraps `to` without its types
    return made, tokenizer


def _demos_of(
    stage: SftSettings, recipe: Recipe, out: Path, pool: EnvPool, on_progress: OnProgress | None
) -> list[Episode]:
    sources = [] if stage.demos.files else task_sources(recipe.envs, "train", stage.tasks)
    progress = None
    if on_progress is not None:

        def progress(done: int, total: int) -> None:
            on_progress("demonstrations", done, total)

    return demonstrations(
        sources,
        stage.demos,
        pool,
        seed=recipe.run.seed,
        stage=stage.name,
        saved=out / stage.name / "demos.jsonl",
        slots=recipe.run.slots,
        on_progress=progress,
    )


def _run_stages(session: Session, demos: dict[str, list[Episode]]) -> None:
    recipe = session.recipe
    for number, stage in enumerate(recipe.stages):
        if number < session.state.stage:
            continue
        _run_stage(session, stage, demos)
        session.state = session.state.model_copy(
            update={"stage": number + 1, "stage_updates": 0, "best": -1.0, "guard": {}, "cursors": {}}
        )
        session.save(Tensors())
    last = recipe.stages[-1].settings.name
    copy_folder(session.out / last / "final", session.out / "final")
    (session.out / FINISHED_FILE).write_text("{}", encoding="utf-8")


def _run_stage(session: Session, stage: Stage, demos: dict[str, list[Episode]]) -> None:
    if stage.sft is not None:
        episodes = demos.get(stage.sft.name)
        if episodes is None:
            recipe = session.recipe
            episodes = _demos_of(stage.sft, recipe, session.out, session.pool, session.on_progress)
        run_sft(session, stage.sft, episodes)
    elif stage.rl is not None:
        run_rl(session, stage.rl)
