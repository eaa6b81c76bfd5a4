"""Plays a suite."""

import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import Progress

from turngym import seeding
from turngym.agents.base import Agent, Job
from turngym.agents.rollout import play
from turngym.agents.scripted import ScriptedAgent, require_expert
from turngym.benchmarks.report import BenchResult, Mode
from turngym.benchmarks.score import Played, score
from turngym.benchmarks.suite import MixedPanel, Panel, Suite, load_suite, panel_of
from turngym.envs.pool import EnvPool, make_pool
from turngym.errors import ConfigError
from turngym.types import Episode

logger = logging.getLogger(__name__)

MODES: tuple[Mode, ...] = ("greedy", "sampled")
OnEpisode = Callable[[Episode], None]


@dataclass(frozen=True, slots=True)
class BenchOptions:
    """What a benchmark may be asked beside suite and agent.

    Attributes:
        seed: root of all chance in it.
        slots: most episodes under way at one time.
        max_tasks: play the panel's first tasks only; the result is marked incomplete.
        repeats: episodes per task in sampled play; None takes the suite's.
        episodes_path: where to save the episodes as JSON lines; None saves none.
        selected_on: what the agent was chosen by; "" takes what the agent says of itself.
        workers: worker processes of the environments; 0 runs them inline.
    """

    seed: int = 0
    slots: int = 64
    max_tasks: int | None = None
    repeats: int | None = None
    episodes_path: Path | None = None
    selected_on: str = ""
    workers: int = 0


def bench(
    suite: str | Path | Suite | Panel | MixedPanel,
    *,
    agent: str | Agent,
    modes: Sequence[Mode] = MODES,
    pool: EnvPool | None = None,
    console: Console | None = None,
    options: BenchOptions | None = None,
) -> tuple[BenchResult, ...]:
    """Plays a suite and returns one result per mode; a scripted agent has one for all.

    The same suite, agent, mode and seed give the same episodes, whichever other modes are played.

    Args:
        suite: name, path, settings, or a panel of your own.
        agent: what `load_agent` takes (a checkpoint folder, `expert`, `random`), loaded once per mode, or
            an agent in hand, for which `modes` names the one way that it plays.
        modes: greedy plays each task once, sampled as often as the suite repeats it.
        pool: serves the environments and stays open; None makes one.
        console: where to show progress; None shows none.

    Raises:
        ConfigError: unknown suite, agent or mode, or an expert where an environment has none.
        InfraError: too many episodes failed by no fault of the agent.
    """
    options = options or BenchOptions()
    panel = _panel(suite)
    with ExitStack() as stack:
        if pool is None:
            pool = make_pool(workers=options.workers, envs=[part.env for part in panel.parts])
            stack.callback(pool.close)
        observers = [stack.enter_context(_saving(options.episodes_path))] if options.episodes_path else []
        results: list[BenchResult] = []
        for mode, player in _players(agent, modes):
            if not results:
                _prepare(panel, panel.tasks[: options.max_tasks], player, pool)
            repeats = panel.repeats if options.repeats is None else options.repeats
            played = Played(player.name, mode, repeats if mode == "sampled" else 1, seed=options.seed)
            jobs = bench_jobs(panel, played, max_tasks=options.max_tasks)
            with _showing(console, f"{panel.suite} {player.name} {mode}", len(jobs)) as show:
                started = time.perf_counter()
                watch = _to_all([*observers, show])
                episodes = play(jobs, pool=pool, agent=player, slots=options.slots, on_episode=watch)
                played = _described(played, player, time.perf_counter() - started, options.selected_on)
            results.append(score(episodes, panel=panel, played=played))
    return tuple(results)


def bench_jobs(panel: Panel | MixedPanel, played: Played, *, max_tasks: int | None = None) -> list[Job]:
    """The episodes to play, task by task.

    Episode numbers name the sampler's streams and must differ within one file, so greedy and scripted play
    take 0 .. tasks - 1 and the sampled repeats follow; no number depends on what else is played.

    Args:
        played: mode, repeats and seed count.
        max_tasks: take the panel's first tasks only.

    Raises:
        ConfigError: repeats or max_tasks below 1, or repeats of a greedy or scripted play.
    """
    if played.repeats < 1 or (max_tasks is not None and max_tasks < 1):
        raise ConfigError(f"repeats = {played.repeats}, max_tasks = {max_tasks}: both must be 1 or more.")
    if played.repeats > 1 and played.mode != "sampled":
        raise ConfigError(f"repeats = {played.repeats} in {played.mode} play: only sampled play is repeated.")
    size, panel_hash = len(panel.tasks), panel.hash
    places = [(part.env, task) for part in panel.parts for task in part.tasks]
    first = size if played.mode == "sampled" else 0
    return [
        Job(
            number=first + repeat * size + index,
            group=index,
            env=env,
            task=task,
            seed=seeding.integer(played.seed, "bench", panel_hash, task, repeat),
        )
        for index, (env, task) in enumerate(places[:max_tasks])
        for repeat in range(played.repeats)
    ]


def _prepare(panel: Panel | MixedPanel, tasks: Sequence[str], player: Agent, pool: EnvPool) -> None:
    played = {*tasks}
    for part in panel.parts:
        require_expert(player, part.env)
    for part in panel.parts:
        mine = [task for task in part.tasks if task in played]
        if mine:
            pool.prepare(part.env, mine)


def _panel(suite: str | Path | Suite | Panel | MixedPanel) -> Panel | MixedPanel:
    if isinstance(suite, Panel | MixedPanel):
        return suite
    return panel_of(suite if isinstance(suite, Suite) else load_suite(suite))


def _players(agent: str | Agent, modes: Sequence[Mode]) -> Iterator[tuple[Mode, Agent]]:
    """Each mode with its agent, loaded when its turn comes."""
    wrong = [mode for mode in modes if mode not in MODES]
    if wrong or not modes:
        raise ConfigError(f"modes = {list(modes)}: name greedy, sampled or both.")
    if isinstance(agent, ScriptedAgent):
        yield "scripted", agent
        return
    if not isinstance(agent, str):
        if len(modes) != 1:
            raise ConfigError(
                f"Agent {agent.name!r} is made already and plays one way. Say which: modes=('greedy',)."
            )
        yield modes[0], agent
        return
    from turngym.agents.load import load_agent

    for mode in dict.fromkeys(modes):
        loaded = load_agent(agent, greedy=mode == "greedy")
        if isinstance(loaded, ScriptedAgent):
            yield "scripted", loaded
            return
        yield mode, loaded


def _described(played: Played, agent: Agent, seconds: float, selected_on: str) -> Played:
    unknown = "nothing" if played.mode == "scripted" else "what its maker did not say"
    return replace(
        played,
        seconds=seconds,
        selected_on=selected_on or getattr(agent, "selected_on", "") or unknown,
        trained_tasks=frozenset(getattr(agent, "trained_tasks", ())),
    )


@contextmanager
def _saving(path: Path) -> Iterator[OnEpisode]:
    from turngym.episode_file import EpisodeWriter

    if path.exists() and path.stat().st_size:
        raise ConfigError(f"{path} has episodes already. Name a new file, or remove that one.")
    with EpisodeWriter(path) as writer:
        yield writer.write


@contextmanager
def _showing(console: Console | None, what: str, total: int) -> Iterator[OnEpisode]:
    """A progress bar with the share won so far, or nothing without a console; logs each episode."""
    done = won = 0
    with ExitStack() as stack:
        bar = stack.enter_context(Progress(console=console)) if console is not None else None
        row = bar.add_task(escape(what), total=total) if bar is not None else None

        def show(episode: Episode) -> None:
            nonlocal done, won
            done, won = done + (episode.outcome != "infra"), won + episode.success
            logger.info("%s: task %s %s in %d turns", what, episode.task, episode.outcome, len(episode.turns))
            if bar is not None and row is not None:
                bar.update(row, advance=1, description=escape(f"{what}: won {won} of {done}"))

        yield show


def _to_all(observers: Sequence[OnEpisode]) -> OnEpisode:
    def tell(episode: Episode) -> None:
        for observer in observers:
            observer(episode)

    return tell
