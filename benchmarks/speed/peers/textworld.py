"""The peer: bare TextWorld plays the games of a job in one process, one command of each game after the other.

It runs in the peer's own environment, so it imports nothing but the standard library and textworld. What it prints,
and how it digests what it saw, must be the same as in `turngym.benchmarks.speed.textworld.play`.
"""

import hashlib
import json
import platform
import sys
import time
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path
from typing import Any

import textworld


class Game:
    """One game, in an environment of its own where each episode restarts it, or in one that all games share.

    Restarting, and loading another game into the same environment, are the cheapest that TextWorld offers.
    """

    def __init__(self, path: str, episodes: list[list[str]], env: Any, *, opens: bool) -> None:
        self.path, self.episodes, self.env, self.opens = path, episodes, env, opens
        self.forget()

    def forget(self) -> None:
        """Starts the notes anew."""
        self.starts: list[list[str] | None] = []
        self.turns: list[tuple[bool, bool, int, list[str] | None]] = []
        self.reset_s = 0.0

    def play(self, episodes: list[list[str]]) -> Iterator[None]:
        """Plays episodes, and stops after each command so that the games take turns."""
        for commands in episodes:
            started = time.perf_counter()
            if self.opens:
                self.env.load(self.path)
            state = self.env.reset()
            self.reset_s += time.perf_counter() - started
            self.starts.append(state.admissible_commands)
            for command in commands:
                state, _, _ = self.env.step(command)
                noted = (state.won, state.lost, state.intermediate_reward, state.admissible_commands)
                self.turns.append(noted)
                yield


def play_in_turns(runs: list[Iterator[None]]) -> None:
    """Goes round the games until all are played."""
    while runs:
        runs = [run for run in runs if next(run, run) is not run]


def play_games(games: list[Game], first: int, end: int) -> None:
    """Plays episodes `first` to `end`: game by game where each episode opens its game, else in turns."""
    if not games[0].opens:
        play_in_turns([game.play(game.episodes[first:end]) for game in games])
        return
    for number in range(first, end):
        for game in games:
            for _ in game.play(game.episodes[number : number + 1]):
                pass


def digest(value: Any) -> str:
    """Short hash of a JSON value."""
    text = json.dumps(value, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def work_of(games: list[Game]) -> dict[str, Any]:
    """What was done, in the terms that both sides have.

    The texts are left out: turngym cuts banner, prompt and status line. So is the list of commands after an ending,
    which turngym doesn't make.
    """
    turns = [turn for game in games for turn in game.turns]
    work = {
        "steps": len(turns),
        "episodes": sum(len(game.starts) for game in games),
        "won": sum(won for won, _, _, _ in turns),
        "lost": sum(lost for _, lost, _, _ in turns),
        "endings": digest([[won, lost] for won, lost, _, _ in turns]),
        # TextWorld pays -1 for a loss and turngym nothing; else this is the sign of turngym's dense reward.
        "progress": digest([0 if lost else reward for _, lost, reward, _ in turns]),
    }
    starts = [listed for game in games for listed in game.starts]
    lists = starts + [listed for won, lost, _, listed in turns if not (won or lost)]
    if all(listed is not None for listed in lists):
        # turngym writes them in lower case.
        lowered = [sorted({command.lower() for command in listed or ()}) for listed in lists]
        work |= {"listed": sum(len(listed) for listed in lowered), "commands": digest(lowered)}
    return work


def main() -> None:
    """The program; its arguments are the file of the job, and when it was started by the monotonic clock."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    wanted = textworld.EnvInfos(
        feedback=True, won=True, lost=True, intermediate_reward=True, admissible_commands=job["admissible"]
    )
    opens = job["opens"]
    started = job["games"][:1] if opens else job["games"]
    envs = [textworld.start(game["path"], request_infos=wanted) for game in started]
    games = [
        Game(game["path"], game["episodes"], envs[place % len(envs)], opens=opens)
        for place, game in enumerate(job["games"])
    ]
    # The first episode of each game is the warm-up: what is made when first asked for is made by then.
    play_games(games, 0, 1)
    for game in games:
        game.forget()
    startup_s = time.monotonic() - float(sys.argv[2])

    wall, cpu = time.perf_counter(), time.process_time()
    play_games(games, 1, max(len(game.episodes) for game in games))
    wall_s, cpu_s = time.perf_counter() - wall, time.process_time() - cpu

    work = work_of(games)
    measured = {
        "amount": work["steps"],
        "wall_s": wall_s,
        "cpu_s": cpu_s,
        "startup_s": startup_s,
        "details": {"ms per reset": 1000 * sum(game.reset_s for game in games) / work["episodes"]},
        "work": work,
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("textworld", "jericho", "numpy")},
        },
    }
    sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
