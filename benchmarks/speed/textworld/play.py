"""turngym's sides: the program that plays the games of a job, in bare environments or through the pool.

What it prints, and how it digests what it saw, must be the same as in `peers/textworld.py`.
"""

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from turngym.benchmarks.speed.measurement import Measurement, versions
from turngym.benchmarks.speed.stopwatch import Stopwatch, wait_until_quiet
from turngym.envs.pool import Call, EnvPool, EnvRef, Key, PoolLimits, Reply, Wants, make_pool
from turngym.errors import InfraError, MeasurementError
from turngym.types import TurnInfo

Script = Sequence[Sequence[str]]
"""The commands of each episode of a game."""


@dataclass(slots=True)
class Notes:
    """What was seen of one game."""

    starts: list[TurnInfo] = field(default_factory=list)
    turns: list[tuple[float, TurnInfo]] = field(default_factory=list)
    reset_s: float = 0.0

    def note_start(self, info: TurnInfo, reset_s: float) -> None:
        """Takes the start of an episode."""
        self.starts.append(info)
        self.reset_s += reset_s

    def note_turn(self, reward: float, info: TurnInfo) -> None:
        """Takes a turn."""
        self.turns.append((reward, info))


class Player(Protocol):
    """A way to play games."""

    def play(self, scripts: Sequence[Script]) -> list[Notes]:
        """Plays the episodes of all games, and tells what was seen of each."""

    def close(self) -> None:
        """Ends all environments."""


class BarePlayer:
    """Environments without a pool: one for each game, one command of each after the other.

    Args:
        opens: one environment plays all games in turn, one episode of each, so that each episode opens a game.
    """

    def __init__(self, env: EnvRef, tasks: Sequence[str], *, admissible: bool, opens: bool = False) -> None:
        self._tasks, self._opens = tasks, opens
        self._envs = [env.make(list_commands=admissible) for _ in (tasks[:1] if opens else tasks)]

    def play(self, scripts: Sequence[Script]) -> list[Notes]:
        notes = [Notes() for _ in scripts]
        if self._opens:
            for episode in range(max(map(len, scripts))):
                for place, script in enumerate(scripts):
                    for _ in self._run(place, script[episode : episode + 1], notes[place]):
                        pass
            return notes
        runs = [self._run(place, script, notes[place]) for place, script in enumerate(scripts)]
        while runs:
            runs = [run for run in runs if next(run, run) is not run]
        return notes

    def close(self) -> None:
        for env in self._envs:
            env.close()

    def _run(self, place: int, script: Script, notes: Notes) -> Iterator[None]:
        env = self._envs[place % len(self._envs)]
        for commands in script:
            started = time.perf_counter()
            _, info = env.reset(options={"task": self._tasks[place]})
            notes.note_start(TurnInfo.read(info), time.perf_counter() - started)
            for command in commands:
                _, reward, _, _, info = env.step(command)
                notes.note_turn(reward, TurnInfo.read(info))
                yield


class PoolPlayer:
    """A pool with one episode of each game in flight, as rollouts use it; a game stays open and is restarted."""

    def __init__(self, env: EnvRef, tasks: Sequence[str], *, admissible: bool, workers: int) -> None:
        self._env, self._tasks, self._wants = env, tasks, Wants(admissible=admissible)
        # Recycled for its age, a worker would have to open its games again, which the peer never does.
        self._pool: EnvPool = make_pool(workers=workers, limits=PoolLimits(episodes=10**9), envs=[env])
        self._attempts = [0 for _ in tasks]

    def play(self, scripts: Sequence[Script]) -> list[Notes]:
        notes = [Notes() for _ in scripts]
        first = list(self._attempts)
        for place, script in enumerate(scripts):
            if script:
                self._begin(place)
        while replies := self._pool.poll():
            for reply in replies:
                self._go_on(reply, scripts, notes, first)
        return notes

    def close(self) -> None:
        self._pool.close()

    def _begin(self, place: int) -> None:
        # The same episode once more, and not a new one: so it stays with the environment that has its game open.
        attempt = self._attempts[place]
        seed = 0 if attempt == 0 else None
        key = Key(place, attempt, 0)
        self._pool.submit(Call(key, self._env, self._tasks[place], seed, wants=self._wants))

    def _go_on(
        self, reply: Reply, scripts: Sequence[Script], notes: Sequence[Notes], first: Sequence[int]
    ) -> None:
        place, attempt, turn = reply.key
        if reply.fault is not None or reply.info is None:
            raise InfraError(f"{self._tasks[place]}: {reply.fault.text if reply.fault else 'no info'}")
        if turn == 0:
            notes[place].note_start(reply.info, reply.latency_s)
        else:
            notes[place].note_turn(reply.reward, reply.info)
        commands = scripts[place][attempt - first[place]]
        if turn < len(commands):
            key = Key(place, attempt, turn + 1)
            self._pool.submit(Call(key, self._env, command=commands[turn], wants=self._wants))
            return
        self._attempts[place] += 1
        if self._attempts[place] - first[place] < len(scripts[place]):
            self._begin(place)


def digest(value: Any) -> str:
    """Short hash of a JSON value."""
    text = json.dumps(value, separators=(",", ":"))
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def work_of(games: Sequence[Notes]) -> dict[str, int | str]:
    """What was done, in the terms that both sides have; `peers/textworld.py` says what is left out, and why."""
    turns = [turn for game in games for turn in game.turns]
    endings = [[info.outcome == "won", info.outcome == "lost"] for _, info in turns]
    work: dict[str, int | str] = {
        "steps": len(turns),
        "episodes": sum(len(game.starts) for game in games),
        "won": sum(won for won, _ in endings),
        "lost": sum(lost for _, lost in endings),
        "endings": digest(endings),
        "progress": digest([(reward > 0) - (reward < 0) for reward, _ in turns]),
    }
    infos = [info for game in games for info in game.starts]
    infos += [info for _, info in turns if info.outcome not in ("won", "lost")]
    if all(info.admissible is not None for info in infos):
        lists = [list(info.admissible or ()) for info in infos]
        work |= {"listed": sum(len(listed) for listed in lists), "commands": digest(lists)}
    return work


def measure(player: Player, scripts: Sequence[Script], *, started: float) -> Measurement:
    """Time and work of the episodes after the first of each game, which is the warm-up.

    Args:
        player: how to play; it is closed.
        scripts: the episodes of each game.
        started: when the program was started, by the monotonic clock.
    """
    player.play([script[:1] for script in scripts])
    # The pool's spare worker starts while the others work.
    if not wait_until_quiet():
        raise MeasurementError("The worker processes did not come to rest after the warm-up. Run it again.")
    startup_s = time.monotonic() - started

    watch = Stopwatch()
    notes = player.play([script[1:] for script in scripts])
    elapsed = watch.read()

    player.close()
    work = work_of(notes)
    num_episodes = sum(len(game.starts) for game in notes)
    return Measurement(
        amount=sum(len(game.turns) for game in notes),
        wall_s=elapsed.wall_s,
        cpu_s=elapsed.cpu_s,
        startup_s=startup_s,
        details={"ms per reset": 1000 * sum(game.reset_s for game in notes) / num_episodes},
        work=work,
        versions=versions("textworld", "jericho", "numpy"),
    )


def make_player(job: Mapping[str, Any]) -> Player:
    """The way of playing that a job asks for: `workers` of a pool, or None for no pool, which may be to open games."""
    # One turn more than is played, so that the last one, too, lists its commands as the peer's does.
    max_turns = 1 + max(len(commands) for game in job["games"] for commands in game["episodes"])
    env = EnvRef("TextWorld-v0", {"family": "custom", "level": job["level"], "max_turns": max_turns})
    tasks = [game["task"] for game in job["games"]]
    if job["workers"] is None:
        return BarePlayer(env, tasks, admissible=job["admissible"], opens=job["opens"])
    return PoolPlayer(env, tasks, admissible=job["admissible"], workers=job["workers"])


def main() -> None:
    """The program; its arguments are the file of the job, and when it was started by the monotonic clock."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    scripts = [game["episodes"] for game in job["games"]]
    measured = measure(make_player(job), scripts, started=float(sys.argv[2]))
    sys.stdout.write(measured.model_dump_json() + "\n")


if __name__ == "__main__":
    main()
