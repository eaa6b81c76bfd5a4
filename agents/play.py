"""Episodes of an agent, for looking at: no training, no score."""

from collections.abc import Callable, Sequence
from typing import cast

import gymnasium

from turngym import seeding
from turngym.agents.base import Agent, Job
from turngym.agents.load import load_agent
from turngym.agents.rollout import play as play_jobs
from turngym.agents.scripted import require_expert
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, make_pool
from turngym.errors import ConfigError
from turngym.types import Episode, Split


def play(
    env: str | gymnasium.Env[str, str] | Callable[..., TurnEnv] | EnvRef,
    *,
    agent: str | Agent = "expert",
    tasks: Split | Sequence[str] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    greedy: bool = False,
    workers: int = 0,
) -> list[Episode]:
    """Episodes that an agent plays, in the order of the tasks.

    Args:
        env: id, made environment (its spec is copied) or factory.
        agent: what `load_agent` takes (a checkpoint folder, `expert`, `random`), or an agent in hand.
        tasks: task ids, or a split, whose first tasks are played; None is "train".
        episodes: how many; past the last task the first comes again, with another seed. None plays listed
            tasks once each, and one task of a split.
        greedy: a model plays its most likely tokens; otherwise it samples.
        workers: worker processes of the environment; 0 runs it inline.

    Raises:
        UnknownEnvError, TaskError: no environment or task of that name.
        ConfigError: no such split or agent, `episodes` below 1, or an expert where the environment has none.
    """
    ref = EnvRef.of(env)
    chosen, count = _chosen(ref, "train" if tasks is None else tasks, episodes)
    jobs = []
    for number in range(count):
        task = chosen[number % len(chosen)]
        own_seed = seeding.integer(seed, "play", task, number)
        jobs.append(Job(number=number, group=number % len(chosen), env=ref, task=task, seed=own_seed))
    pool = make_pool(workers=workers, envs=[ref])  # Workers start while the agent is loaded.
    try:
        player = load_agent(agent, greedy=greedy) if isinstance(agent, str) else agent
        require_expert(player, ref)
        return play_jobs(jobs, pool=pool, agent=player)
    finally:
        pool.close()


def _chosen(ref: EnvRef, tasks: str | Sequence[str], episodes: int | None) -> tuple[Sequence[str], int]:
    if isinstance(tasks, str):
        made = ref.make()
        chosen, count = made.tasks(cast(Split, tasks)), 1 if episodes is None else episodes
        made.close()
    else:
        chosen, count = list(tasks), len(tasks) if episodes is None else episodes
    if not chosen or count < 1:
        raise ConfigError(f"{len(chosen)} tasks, {count} episodes: there must be one of each at least.")
    return chosen, count
