"""From episodes to a result: what counts, and as what (DEFINITIONS section 7)."""

import importlib.metadata
import logging
import platform
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from turngym.benchmarks.report import BenchResult, Figures, Mode, PartResult, TaskResult
from turngym.benchmarks.statistics import PassK, Wins, pass_over_tasks, success_interval
from turngym.benchmarks.suite import MixedPanel, Panel
from turngym.errors import BalanceError, InfraError
from turngym.types import Episode, Outcome

logger = logging.getLogger(__name__)

ENDINGS: tuple[Outcome, ...] = tuple(outcome for outcome in get_args(Outcome) if outcome != "running")
PACKAGES = ("numpy", "gymnasium", "torch", "transformers", "textworld")


@dataclass(frozen=True, slots=True)
class Played:
    """Who played a panel, and how: what stands beside the episodes in a result."""

    agent: str
    mode: Mode
    repeats: int
    seed: int = 0
    seconds: float = 0.0
    selected_on: str = "nothing"
    trained_tasks: frozenset[str] = frozenset()


def score(episodes: Sequence[Episode], *, panel: Panel | MixedPanel, played: Played) -> BenchResult:
    """The result of the episodes of one agent in one mode (DEFINITIONS section 7).

    Args:
        episodes: of tasks of the panel, in any order; each repeat is ordered by its number.

    Raises:
        InfraError: every episode failed by no fault of the agent, so there is nothing to state.
        BalanceError: an episode is of no task of the panel, has not ended, or stands twice.
    """
    tasks = _by_task(episodes, panel)
    outcomes = Counter(episode.outcome for episode in episodes)
    scored = [episode for episode in episodes if episode.outcome != "infra"]
    if not scored:
        raise InfraError(
            f"None of {len(episodes)} episodes could be scored. Last: {episodes[-1].error if episodes else ''}"
        )
    wins = {task.task: task.wins for task in tasks}
    interval = success_interval(wins, panel_hash=panel.hash)
    turns = [turn for episode in scored for turn in episode.turns]
    return BenchResult(
        suite=panel.suite,
        env_id=", ".join(dict.fromkeys(part.env.env_id for part in panel.parts)),
        env_kwargs=dict(panel.env.kwargs) if isinstance(panel, Panel) else {},
        panel_hash=panel.hash,
        agent=played.agent,
        weights_version=max(episode.weights_version for episode in episodes),
        mode=played.mode,
        seed=played.seed,
        repeats=played.repeats,
        num_panel=len(panel.tasks),
        num_tasks=interval.num_tasks,
        num_episodes=len(scored),
        incomplete=interval.num_tasks < len(panel.tasks),
        success=interval.value,
        low=interval.low,
        high=interval.high,
        interval=interval.kind,
        num_infra=outcomes["infra"],
        success_if_infra_fails=outcomes["won"] / len(episodes),
        pass_k=_pass_k(wins) if played.repeats > 1 else (),
        outcomes={ending: outcomes[ending] for ending in ENDINGS},
        mean_return=sum(episode.episode_return for episode in scored) / len(scored),
        mean_turns=len(turns) / len(scored),
        invalid_share=sum(not turn.valid for turn in turns) / max(1, len(turns)),
        action_tokens=sum(map(_action_tokens, episodes)),
        seconds=played.seconds,
        num_contaminated=_num_contaminated(panel, played),
        selected_on=played.selected_on,
        versions=_versions(),
        parts=_parts(episodes, panel, played) if isinstance(panel, MixedPanel) else (),
        tasks=tasks,
    )


def _parts(episodes: Sequence[Episode], panel: MixedPanel, played: Played) -> tuple[PartResult, ...]:
    """Each part scored for itself; those without a scored episode are left out."""
    results = []
    for part in panel.parts:
        tasks = {*part.tasks}
        mine = [episode for episode in episodes if episode.task in tasks]
        if any(episode.outcome != "infra" for episode in mine):
            result = score(mine, panel=part, played=replace(played, trained_tasks=frozenset()))
            shared = {name: getattr(result, name) for name in Figures.model_fields}
            results.append(PartResult(name=part.suite, **shared))
    return tuple(results)


def _by_task(episodes: Sequence[Episode], panel: Panel | MixedPanel) -> tuple[TaskResult, ...]:
    played: dict[str, list[Episode]] = {task: [] for task in panel.tasks}
    if len({episode.number for episode in episodes}) != len(episodes):
        raise BalanceError("An episode number stands twice, so an episode would be counted twice.")
    for episode in sorted(episodes, key=lambda episode: episode.number):
        if episode.task not in played or episode.outcome not in ENDINGS:
            raise BalanceError(
                f"Episode {episode.number} of task {episode.task!r} ({episode.outcome}) can't be counted."
            )
        played[episode.task].append(episode)
    return tuple(
        TaskResult(
            task=task,
            outcomes=tuple(episode.outcome for episode in repeats),
            returns=tuple(episode.episode_return for episode in repeats),
            turns=tuple(len(episode.turns) for episode in repeats),
        )
        for task, repeats in played.items()
        if repeats
    )


def _pass_k(wins: Wins) -> tuple[PassK, ...]:
    """For k = 1, 2, 4, ... and the largest number of scored repeats that a task has."""
    most = max(map(len, wins.values()))
    powers = {2**power for power in range(most.bit_length()) if 2**power <= most}
    return tuple(pass_over_tasks(wins, k) for k in sorted({*powers, most}))


def _num_contaminated(panel: Panel | MixedPanel, played: Played) -> int:
    """Tasks of the panel that stand among the agent's training tasks, by id or by key; warns of them."""
    if not played.trained_tasks:
        return 0
    from turngym.agents.policy import task_key  # loads torch, as whatever has trained tasks did already

    names = ((task, task_key(part.env.env_id, task)) for part in panel.parts for task in part.tasks)
    count = sum(not played.trained_tasks.isdisjoint(pair) for pair in names)
    if count:
        logger.warning(
            "%s was trained on %d of %d tasks of %s.", played.agent, count, len(panel.tasks), panel.suite
        )
    return count


def _action_tokens(episode: Episode) -> int:
    spans = (span for segment in episode.segments for span in segment.spans)
    return sum(span.end - span.start for span in spans if span.author == "policy")


def _versions() -> dict[str, str]:
    from turngym import __version__

    found = {"turngym": __version__, "python": platform.python_version()}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found
