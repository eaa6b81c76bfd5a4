"""turngym: environments of many turns for language-model agents, and the trainers that improve them."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import gymnasium

import turngym.envs as _envs  # importing registers the environment ids
from turngym.envs.base import TurnEnv
from turngym.envs.registration import make
from turngym.envs.spaces import Unicode
from turngym.envs.vector import make_vec
from turngym.errors import TurngymError
from turngym.types import Demonstration, Episode, Split, TaskRange, Turn, TurnInfo

if TYPE_CHECKING:
    from turngym.agents.base import Agent
    from turngym.benchmarks.report import BenchResult, Mode
    from turngym.benchmarks.suite import MixedPanel, Panel, Suite
    from turngym.training.run import Run
    from turngym.training.settings import Recipe
    from turngym.viewer.sources import Keep

__version__ = "0.1.0"

__all__ = [
    "Demonstration",
    "Episode",
    "TaskRange",
    "Turn",
    "TurnEnv",
    "TurnInfo",
    "TurngymError",
    "Unicode",
    "__version__",
    "bench",
    "make",
    "make_vec",
    "play",
    "sft",
    "train",
    "view",
]

del _envs

# What these functions need takes seconds to import (torch), so each imports it when it is called.


def play(
    env: str | gymnasium.Env[str, str] | Callable[..., TurnEnv],
    *,
    agent: "str | Agent" = "expert",
    tasks: Split | Sequence[str] | None = None,
    episodes: int | None = None,
    seed: int = 0,
    greedy: bool = False,
    workers: int = 0,
) -> list[Episode]:
    """Episodes that an agent plays, in the order of the tasks. (A person plays by `turngym play` in a terminal.)

    Args:
        env: id, made environment (its spec is copied) or factory.
        agent: a checkpoint folder, `expert`, `noisy-expert` or `random`.
        tasks: task ids, or a split, whose first tasks are played; None is "train".
        episodes: how many; past the last task the first comes again, with another seed. None plays listed
            tasks once each, and one task of a split.
        greedy: a model plays its most likely tokens; otherwise it samples.
        workers: worker processes of the environment; 0 runs it in this one.

    Raises:
        UnknownEnvError, TaskError: no environment or task of that name.
        ConfigError: no such split or agent, or `episodes` below 1.

    Example:
        >>> import turngym
        >>> episodes = turngym.play("Rooms-v0", agent="expert", episodes=2)
        >>> [episode.outcome for episode in episodes]
        ['won', 'won']
    """
    from turngym.agents.play import play as play_episodes

    return play_episodes(
        env, agent=agent, tasks=tasks, episodes=episodes, seed=seed, greedy=greedy, workers=workers
    )


def train(
    recipe: "str | Mapping[str, Any] | Recipe",
    *,
    env: str | gymnasium.Env[str, str] | Callable[..., TurnEnv] | None = None,
    workers: int | None = None,
    **changes: Any,
) -> "Run":
    """Runs a recipe, or goes on with it where its folder holds an unfinished run.

    Args:
        recipe: bundled name (`turngym list recipes`), path, mapping or recipe.
        env: plays this environment instead of the recipe's: an id, a made environment or a factory.
        workers: worker processes of the environments; None leaves it to the recipe. The result is the same.
        changes: settings by name, dots written as double underscores.

    Returns:
        The finished run: `out` is its folder, `final` its weights, `metrics()` its rows.

    Raises:
        ConfigError: a wrong setting, or the folder holds another run.
        CollapseError: training stopped itself; its last good checkpoint is named.

    Example:
        >>> import turngym
        >>> run = turngym.train("rooms-grpo", advantage="rloo", run__seed=2)  # doctest: +SKIP
        >>> [row["rollout/success"] for row in run.metrics() if row["stage"] == "rl"]  # doctest: +SKIP
    """
    from turngym.training.run import train as run_train

    return run_train(recipe, env=env, workers=workers, **changes)


def sft(
    recipe: "str | Mapping[str, Any] | Recipe",
    *,
    env: str | gymnasium.Env[str, str] | Callable[..., TurnEnv] | None = None,
    workers: int | None = None,
    **changes: Any,
) -> "Run":
    """Runs only the SFT stages of a recipe; arguments, result and errors as of `train`.

    Example:
        >>> import turngym
        >>> run = turngym.sft("rooms-grpo", sft__steps=200)  # doctest: +SKIP
    """
    from turngym.training.run import train as run_train

    return run_train(recipe, env=env, only="sft", workers=workers, **changes)


def bench(
    suite: "str | Path | Suite | Panel | MixedPanel",
    *,
    agent: "str | Agent",
    modes: "Sequence[Mode]" = ("greedy", "sampled"),
    seed: int = 0,
    repeats: int | None = None,
    max_tasks: int | None = None,
    episodes: Path | None = None,
    workers: int = 0,
) -> "tuple[BenchResult, ...]":
    """Plays a suite and returns one result per mode; a scripted agent has one for all.

    Args:
        suite: bundled name (`turngym list suites`), path, settings, or a panel of your own.
        agent: a checkpoint folder, `expert`, `noisy-expert` or `random`; or an agent in hand, for which
            `modes` names the one way that it plays.
        modes: greedy plays each task once, sampled as often as the suite repeats it.
        repeats: sampled episodes per task; None takes the suite's.
        max_tasks: plays the first tasks only; the result is marked incomplete.
        episodes: writes the episodes to this new file.
        workers: worker processes of the environment; 0 runs it in this one.

    Raises:
        ConfigError: unknown suite, agent or mode.
        InfraError: too many episodes failed by no fault of the agent.

    Example:
        >>> import turngym
        >>> (result,) = turngym.bench("rooms-easy", agent="expert", max_tasks=3)
        >>> result.success
        1.0
    """
    from turngym.benchmarks.run import BenchOptions
    from turngym.benchmarks.run import bench as run_bench

    options = BenchOptions(
        seed=seed, repeats=repeats, max_tasks=max_tasks, episodes_path=episodes, workers=workers
    )
    return run_bench(suite, agent=agent, modes=modes, options=options)


def view(
    episodes: "str | Path | Sequence[str | Path] | Sequence[Episode]",
    *,
    out: str | Path | None = None,
    tokenizer: str | Path | None = None,
    limit: int = 5000,
    keep: "Keep" = "newest",
    show: bool = False,
) -> Path:
    """Writes a page to look at episodes, one HTML file that opens without a server, and returns its path.

    Args:
        episodes: an episode file, several, or episodes in hand.
        out: the page; None puts it beside the first file, with the ending .html. A page of ours is replaced.
        tokenizer: checkpoint folder whose tokenizer tells what token ids say; None looks for the one that the
            episodes name, and in their run's folders.
        limit: most episodes of each file; the page says what it leaves out.
        keep: which ones those are: `newest`, `first`, or `even`, spread over the file.
        show: also opens the page in the browser.

    Raises:
        FileFormatError: a file is missing, empty or holds something else.
        ConfigError: nothing to show, a page too large, a wrong tokenizer, or `out` is another file.

    Example:
        >>> import tempfile, turngym
        >>> episodes = turngym.play("Rooms-v0", agent="expert", episodes=2)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     turngym.view(episodes, out=f"{folder}/episodes.html").name
        'episodes.html'
    """
    from turngym.viewer.view import view as write_view

    return write_view(episodes, out=out, tokenizer=tokenizer, limit=limit, keep=keep, show=show)
