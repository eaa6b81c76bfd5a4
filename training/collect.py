"""Chooses tasks, plays the episodes of an update, and keeps what can be trained on."""

from collections.abc import Sequence
from dataclasses import dataclass

from turngym import seeding
from turngym.agents.base import Agent, Job
from turngym.agents.rollout import FaultCeiling, play
from turngym.envs.pool import EnvPool, EnvRef
from turngym.errors import ConfigError
from turngym.training.ledger import Ledger
from turngym.training.settings import EnvSettings, Recipe, RunSettings, TaskSlice
from turngym.types import Episode, Split


@dataclass(frozen=True, slots=True)
class TaskSource:
    """The tasks of one environment that a stage may use."""

    env: EnvRef
    tasks: Sequence[str]
    weight: float


def task_sources(
    envs: Sequence[EnvSettings], split: Split, part: TaskSlice, *, setting: str = "tasks"
) -> list[TaskSource]:
    """The tasks of each environment's split, cut to a slice.

    Raises:
        ConfigError: a split is shorter than the slice; names `setting`.
    """
    sources = []
    for settings in envs:
        env = EnvRef.of(settings.id, **settings.kwargs)
        made = env.make()
        tasks = made.tasks(split)
        made.close()
        stop = len(tasks) if part.count is None else part.start + part.count
        if stop > len(tasks) or part.start >= len(tasks):
            raise ConfigError(
                f"{settings.id} has {len(tasks)} {split} tasks, and {setting} asks for "
                f"{'all' if part.count is None else part.count} from number {part.start} on. Lower {setting}."
            )
        sources.append(TaskSource(env, tasks[part.start : stop], settings.weight))
    return sources


def validation_sources(recipe: Recipe) -> list[TaskSource]:
    """The validation tasks of each environment."""
    count = recipe.validation.tasks
    return task_sources(recipe.envs, "validation", TaskSlice(count=count), setting="validation.tasks")


class TaskStream:
    """Draws training tasks without end: each once in a random order before any comes twice.

    Args:
        cursors: tasks drawn so far per environment; with them the stream goes on where it stood.
    """

    def __init__(self, sources: Sequence[TaskSource], seed: int, stage: str, cursors: dict[str, int]) -> None:
        self._sources = list(sources)
        self._path = (seed, stage)
        self.cursors = dict(cursors)
        self._orders: dict[tuple[int, int], list[int]] = {}

    def draw(self, update: int, count: int) -> list[tuple[EnvRef, str]]:
        """The tasks of an update; the environment of each is drawn by weight."""
        weights = [source.weight for source in self._sources]
        rng = seeding.generator(*self._path, "env", update)
        picks = rng.choice(len(weights), size=count, p=[w / sum(weights) for w in weights])
        return [self._next(int(pick)) for pick in picks]

    def _next(self, which: int) -> tuple[EnvRef, str]:
        source = self._sources[which]
        cursor = self.cursors.get(str(which), 0)
        self.cursors[str(which)] = cursor + 1
        epoch, place = divmod(cursor, len(source.tasks))
        return source.env, source.tasks[self._order(which, epoch)[place]]

    def _order(self, which: int, epoch: int) -> list[int]:
        key = (which, epoch)
        if key not in self._orders:
            rng = seeding.generator(*self._path, "order", which, epoch)
            self._orders = {key: [int(i) for i in rng.permutation(len(self._sources[which].tasks))]}
        return self._orders[key]


def group_jobs(
    tasks: Sequence[tuple[EnvRef, str]], *, group_size: int, update: int, seed: int, stage: str
) -> list[Job]:
    """Jobs of an update: `group_size` episodes of each task, numbered over the whole stage."""
    first = update * len(tasks) * group_size
    jobs = []
    for place, (env, task) in enumerate(tasks):
        for member in range(group_size):
            number = first + place * group_size + member
            episode_seed = seeding.integer(seed, stage, "episode", number)
            jobs.append(Job(number, update * len(tasks) + place, env, task, episode_seed))
    return jobs


@dataclass(frozen=True, slots=True)
class Collected:
    """The episodes of an update, and those of them that hold something to train on."""

    played: tuple[Episode, ...]
    usable: tuple[Episode, ...]


def collect(
    jobs: Sequence[Job], pool: EnvPool, agent: Agent, run: RunSettings, ceiling: FaultCeiling, ledger: Ledger
) -> Collected:
    """Plays jobs; episodes that failed by no fault of the agent, or hold no action token, are dropped."""
    played = play(jobs, pool=pool, agent=agent, slots=run.slots, ceiling=ceiling)
    usable = []
    ledger.add("asked", len(jobs), 0)
    for episode in played:
        tokens = action_tokens(episode)
        ledger.add("played", 1, tokens)
        if episode.outcome in ("infra", "env_fault"):
            ledger.add(f"dropped_{episode.outcome}", 1, tokens)
        elif not episode.turns or tokens == 0:
            ledger.add("dropped_no_action_tokens", 1, tokens)
        else:
            usable.append(episode)
    return Collected(tuple(played), tuple(usable))


def action_tokens(episode: Episode) -> int:
    """Number of tokens that the policy wrote."""
    return sum(
        span.end - span.start
        for segment in episode.segments
        for span in segment.spans
        if span.author not in ("env", "template")
    )
