"""Demonstrations: the environment's expert plays, slips now and then, and plans again."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from turngym import seeding
from turngym.agents.base import Job
from turngym.agents.rollout import play
from turngym.agents.scripted import NoisyExpertAgent
from turngym.envs.pool import EnvPool, EnvRef
from turngym.episode_file import read_episodes, write_episodes
from turngym.errors import ConfigError
from turngym.training.collect import TaskSource
from turngym.training.settings import DemoSettings
from turngym.types import Episode

logger = logging.getLogger(__name__)


def demonstrations(
    sources: Sequence[TaskSource],
    settings: DemoSettings,
    pool: EnvPool,
    *,
    seed: int,
    stage: str,
    saved: Path,
    slots: int,
    on_progress: Callable[[int, int], None] | None = None,
) -> list[Episode]:
    """Episodes to imitate: from files, from this run's folder, or played now and saved there.

    Every task is played once per entry of `settings.noise`, by an honest expert.

    Raises:
        ConfigError: an environment has no expert, or nothing is left after `keep`.
    """
    if settings.files:
        episodes = [episode for file in settings.files for episode in read_episodes(file)]
    elif saved.is_file():
        episodes = read_episodes(saved)
    else:
        episodes = _play(sources, settings, pool, seed, stage, slots, on_progress)
        write_episodes(saved, episodes)
    kept = [episode for episode in episodes if episode.turns and (settings.keep == "all" or episode.success)]
    if not kept:
        raise ConfigError(
            f"No demonstration is left of {len(episodes)} with keep: {settings.keep}. Use keep: all."
        )
    if len(kept) < len(episodes):
        logger.info("Demonstrations: %d kept of %d (keep: %s).", len(kept), len(episodes), settings.keep)
    return kept


def _play(
    sources: Sequence[TaskSource],
    settings: DemoSettings,
    pool: EnvPool,
    seed: int,
    stage: str,
    slots: int,
    on_progress: Callable[[int, int], None] | None,
) -> list[Episode]:
    for source in sources:
        if not source.env.make().can_plan:
            raise ConfigError(
                f"{source.env.env_id} has no expert (no `plan()`), so SFT has nothing to imitate. "
                "Write plan(), or give demos.files."
            )
        pool.prepare(source.env, source.tasks)
    tasks = [(source.env, task) for source in sources for task in source.tasks]
    total, done = len(tasks) * len(settings.noise), 0
    episodes: list[Episode] = []

    def count(_: Episode) -> None:
        nonlocal done
        done += 1
        if on_progress is not None:
            on_progress(done, total)

    for level, noise in enumerate(settings.noise):
        jobs = [
            _job(place + level * len(tasks), env, task, seed, stage)
            for place, (env, task) in enumerate(tasks)
        ]
        agent = NoisyExpertAgent(noise=(noise,))
        episodes += play(jobs, pool=pool, agent=agent, slots=slots, on_episode=count)
    return episodes


def _job(number: int, env: EnvRef, task: str, seed: int, stage: str) -> Job:
    return Job(number, number, env, task, seeding.integer(seed, stage, "demo", number))
