"""What is played: games of the training split, and for each the commands of its episodes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from turngym import seeding
from turngym.envs.base import TurnEnv
from turngym.envs.registration import make_turn_env
from turngym.envs.textworld.card import Card
from turngym.envs.textworld.games import load_card, load_game, prepare
from turngym.envs.textworld.levels import parse_task
from turngym.envs.textworld.nested import nested_names
from turngym.errors import ConfigError

# Each is refused by Inform's parser with the state untouched. A question ("take what?") would not do: turngym takes
# it back, while TextWorld reads the next command as its answer.
JUNK = ("dance wildly", "take the zeppelin", "go nowhere in particular", "xyzzy plugh", "open the qwerty")
JUNK_SHARE = 0.1
EXPERT_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class GameScript:
    """One game, and the commands of each of its episodes; the first episode is the warm-up.

    Attributes:
        task: task id of turngym.
        max_turns: the level's turn limit, at which an episode was ended.
    """

    task: str
    max_turns: int
    episodes: tuple[tuple[str, ...], ...]


def draw_scripts(level: str, *, games: int, episodes: int, seed: int) -> tuple[GameScript, ...]:
    """Games and commands, fixed by the arguments.

    Of ten commands one is junk, three are the next ones of TextWorld's plan and six are drawn from its admissible
    commands, so that some episodes are won and some end at the turn limit.

    Args:
        level: size of the games, of the family custom.
        games: number of games.
        episodes: number of episodes of each, the warm-up included.
        seed: where the commands come from.

    Raises:
        ConfigError: the level is none, or has too few fitting games.
    """
    env = make_turn_env("TextWorld-v0", family="custom", level=level)
    tasks = fitting_tasks(env.tasks("train"), games)
    scripts = []
    for task in tasks:
        rng = seeding.generator(seed, "speed", task)
        played = tuple(_episode(env, task, rng) for _ in range(episodes))
        scripts.append(GameScript(task, env.max_turns, played))
    return tuple(scripts)


def fitting_tasks(tasks: Sequence[str], count: int) -> list[str]:
    """The first tasks in whose games no name lies within another, as "safe" in "red safe".

    There Inform fails with commands that TextWorld lists. turngym mends that, so the two would not do the same.

    Raises:
        ConfigError: there are too few.
    """
    found: list[str] = []
    for start in range(0, len(tasks), count):
        some = tasks[start : start + count]
        prepare(some, progress=False)
        found.extend(task for task in some if not has_nested_names(load_card(*parse_task(task))))
        if len(found) >= count:
            return found[:count]
    raise ConfigError(f"games = {count}: the level has {len(found)} games that fit. Take fewer games.")


def has_nested_names(card: Card) -> bool:
    """Whether the name of a thing or room lies within another one's."""
    return bool(nested_names(card.names))


def write_game(task: str, folder: Path) -> Path:
    """Writes a game as TextWorld reads it, story and JSON side by side; returns the story's path."""
    stored = load_game(*parse_task(task))
    path = folder / f"{task.replace('/', '_')}.z8"
    path.write_bytes(stored.story)
    path.with_suffix(".json").write_text(json.dumps(stored.game), encoding="utf-8")
    return path


def _episode(env: TurnEnv, task: str, rng: np.random.Generator) -> tuple[str, ...]:
    _, info = env.reset(options={"task": task})
    commands: list[str] = []
    is_over = False
    while not is_over:
        draw = rng.random()
        if draw < JUNK_SHARE:
            command = JUNK[int(rng.integers(len(JUNK)))]
        elif draw < JUNK_SHARE + EXPERT_SHARE:
            command = env.plan()[0]
        else:
            command = info["admissible"][int(rng.integers(len(info["admissible"])))]
        commands.append(command)
        _, _, terminated, truncated, info = env.step(command)
        is_over = terminated or truncated
    return tuple(commands)
