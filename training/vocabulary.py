"""The text from which a tiny model's tokenizer is made."""

from collections.abc import Sequence

from turngym import seeding
from turngym.agents.base import Agent, Job
from turngym.agents.rollout import play
from turngym.agents.scripted import NoisyExpertAgent, RandomAgent
from turngym.envs.pool import EnvPool
from turngym.training.collect import TaskSource
from turngym.types import Episode

SAMPLE_TASKS = 100
"""Training tasks that are played for their words where no demonstrations are at hand."""


def environment_words(sources: Sequence[TaskSource]) -> list[str]:
    """Words that the environments say they may ever use."""
    return [word for source in sources for word in source.env.make().words()]


def episode_texts(episodes: Sequence[Episode]) -> list[str]:
    """All text of some episodes."""
    texts = []
    for episode in episodes:
        texts += [episode.instructions, episode.observation]
        texts += [text for turn in episode.turns for text in (turn.command, turn.observation)]
    return texts


def sample_episodes(sources: Sequence[TaskSource], pool: EnvPool, *, seed: int, slots: int) -> list[Episode]:
    """Episodes of a noisy expert, or of random play where an environment has no expert."""
    episodes: list[Episode] = []
    for source in sources:
        env = source.env.make(list_commands=True)
        agent: Agent = NoisyExpertAgent(noise=(0.3,)) if env.can_plan else RandomAgent()
        tasks = source.tasks[:SAMPLE_TASKS]
        pool.prepare(source.env, tasks)
        jobs = [
            Job(number, number, source.env, task, seeding.integer(seed, "vocabulary", number))
            for number, task in enumerate(tasks)
        ]
        episodes += play(jobs, pool=pool, agent=agent, slots=slots)
    return episodes
