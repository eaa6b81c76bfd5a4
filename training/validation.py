"""Success on validation tasks, on which every choice of a run is made."""

from collections.abc import Sequence
from dataclasses import dataclass

from transformers import PreTrainedTokenizerFast

from turngym import seeding
from turngym.agents.agent_config import AgentConfig
from turngym.agents.base import Job
from turngym.agents.engines.local import LocalEngine
from turngym.agents.load import policy_agent
from turngym.agents.rollout import play
from turngym.envs.pool import EnvPool
from turngym.training.collect import TaskSource
from turngym.types import Episode


@dataclass(frozen=True, slots=True)
class Validated:
    """Success of the same tasks played greedily and sampled, infra failures left out."""

    greedy: float
    sampled: float
    tasks: int

    def metrics(self) -> dict[str, float | int | str]:
        """The figures under their metric names."""
        return {
            "validation/greedy_success": self.greedy,
            "validation/sampled_success": self.sampled,
            "validation/tasks": self.tasks,
        }


def validate_policy(
    engine: LocalEngine,
    tokenizer: PreTrainedTokenizerFast,
    config: AgentConfig,
    sources: Sequence[TaskSource],
    pool: EnvPool,
    *,
    seed: int,
    slots: int,
) -> Validated:
    """Plays every task of the sources once greedily and once sampled."""
    for source in sources:
        pool.prepare(source.env, source.tasks)
    tasks = [(source.env, task) for source in sources for task in source.tasks]
    figures = []
    for temperature in (0.0, config.temperature):
        agent = policy_agent(engine, tokenizer, config, name="policy", temperature=temperature)
        jobs = [
            Job(number, number, env, task, seeding.integer(seed, "validation", env.env_id, task))
            for number, (env, task) in enumerate(tasks)
        ]
        figures.append(success_rate(play(jobs, pool=pool, agent=agent, slots=slots)))
    return Validated(figures[0], figures[1], len(tasks))


def success_rate(episodes: Sequence[Episode]) -> float:
    """Won / all but infra failures; 0 when nothing is left."""
    counted = [episode for episode in episodes if episode.outcome != "infra"]
    return sum(episode.success for episode in counted) / max(len(counted), 1)
