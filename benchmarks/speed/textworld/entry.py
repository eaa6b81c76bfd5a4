"""TextWorld's games in turngym against bare TextWorld."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from turngym.benchmarks.speed.entry import PEERS, Entry, Side, Workload
from turngym.config import Settings
from turngym.errors import ConfigError

_PLAY = "turngym.benchmarks.speed.textworld.play"
_PEER = "textworld"
_WORKLOADS = {
    "train": "text, won or lost, and the dense reward of each turn",
    "list": "text, won or lost, dense reward, and the list of admissible commands",
    "open": "as train, and each episode opens another game than the one before",
}


class TextWorldSettings(Settings):
    """What can be changed."""

    level: str = "w2-o3-q4"
    """Size of the games, of the family custom."""

    games: int = Field(default=16, ge=1)
    """Number of games, which are played side by side; in the pool all are in flight. The workload open needs two."""

    episodes: int = Field(default=10, ge=1)
    """Timed episodes of each game; one more is the warm-up."""

    workloads: tuple[Literal["train", "list", "open"], ...] = Field(
        default=("train", "list", "open"), min_length=1
    )
    """Which workloads are measured."""

    workers: tuple[Annotated[int, Field(ge=1)], ...] = (1, 2)
    """Pools with so many worker processes, beside the one inline."""

    seed: int = 1
    """Where the commands come from."""


def plan(settings: TextWorldSettings, folder: Path) -> Sequence[Workload]:
    """Steps of TextWorld games per second: turngym's environment and pool against bare TextWorld.

    All sides play the same compiled games with the same commands, which were drawn beforehand: of ten, three are the
    next ones of TextWorld's plan, six are drawn from its admissible commands, and one is junk. An episode ends when
    it is won or lost or at the level's turn limit, and its game is restarted; the time of that counts, too. The first
    episode of each game is the warm-up. Games in which a name lies within another one are left out: there TextWorld
    lists commands that Inform does not understand, which turngym mends.

    Workloads: train (text, won or lost, dense reward; of TextWorld its intermediate reward), list (the same, and the
    list of admissible commands) and open (as train, but one environment plays all games, an episode of each in turn,
    so that each episode opens a game: TextWorld loads a story and its JSON, turngym a file of its cache). It is
    checked that steps, episodes, endings, the sign of each reward and each list of commands are the same on all
    sides, or no ratio is stated. turngym's sides also do what the peer doesn't: they clean the text and hash the
    state after each turn.

    Sides: textworld (one process, all games open, one command of each after the other), bare (turngym's environment,
    likewise), inline (turngym's pool without workers), and the pool with worker processes. inline / bare is what the
    pool costs. In open there are textworld and bare alone, each with one environment.
    """
    from turngym.benchmarks.speed.textworld.script import draw_scripts, write_game

    if "open" in settings.workloads and settings.games < 2:
        raise ConfigError("games = 1: the workload open changes games. Take 2 or more, or other workloads.")
    scripts = draw_scripts(
        settings.level, games=settings.games, episodes=1 + settings.episodes, seed=settings.seed
    )
    games = [
        {"task": one.task, "path": str(write_game(one.task, folder)), "episodes": one.episodes}
        for one in scripts
    ]
    return [_workload(name, settings, games) for name in dict.fromkeys(settings.workloads)]


def _workload(name: str, settings: TextWorldSettings, games: Sequence[object]) -> Workload:
    opens = name == "open"
    job = {"games": games, "admissible": name == "list", "level": settings.level, "opens": opens}
    # A pool has an environment for each episode under way, so there it is up to chance which of them opens a game.
    pools = {} if opens else {_pool_name(workers): workers for workers in (0, *settings.workers)}
    sides = (
        Side("textworld", "bare TextWorld, one process", PEERS / "textworld.py", job),
        Side("bare", "turngym's environment without pool", _PLAY, {**job, "workers": None}),
        *(
            Side(
                pool,
                f"turngym's pool, {workers or 'no'} worker processes",
                _PLAY,
                {**job, "workers": workers},
            )
            for pool, workers in pools.items()
        ),
    )
    against_peer = tuple((side.name, "textworld") for side in sides[1:])
    return Workload(
        name, _WORKLOADS[name], sides, against_peer if opens else (*against_peer, ("inline", "bare"))
    )


def _pool_name(workers: int) -> str:
    return {0: "inline", 1: "1 worker"}.get(workers, f"{workers} workers")


ENTRY = Entry("textworld", "steps", TextWorldSettings, plan, peer=_PEER)
