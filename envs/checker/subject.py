"""The environment under check, and the ways in which the checks play it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from turngym import seeding
from turngym.envs.base import TurnEnv
from turngym.envs.honesty import Seen
from turngym.envs.pool import EnvRef
from turngym.types import Split, TurnInfo

WANDER_TURNS = 30
"""Length of a mixed play: long enough to reach most rules, short enough for slow engines."""

JUNK_WORDS = ("xyzzy", "", "?", "look at nothing", "take", "go go go")


@dataclass(frozen=True, slots=True)
class Subject:
    """An environment under check.

    Attributes:
        tasks: the tasks of each split that are looked at; a split without tasks is absent.
        seed: seeds the episodes of the check and its own choices.
        junk_actions: number of junk actions.
        strict: whether a fault is shown with its traceback.
    """

    ref: EnvRef
    tasks: Mapping[Split, tuple[str, ...]]
    seed: int = 0
    junk_actions: int = 1000
    strict: bool = False

    def make(self) -> TurnEnv:
        """A new environment that lists its commands."""
        return self.ref.make(list_commands=True)

    @property
    def few_tasks(self) -> tuple[str, ...]:
        """One task of each split, for checks that play each task many times."""
        return tuple(tasks[0] for tasks in self.tasks.values())


def sample_tasks(tasks: Sequence[str], count: int) -> tuple[str, ...]:
    """At most `count` tasks at even distances, the first and the last included."""
    if len(tasks) <= count:
        return tuple(tasks)
    return tuple(tasks[i * (len(tasks) - 1) // max(count - 1, 1)] for i in range(count))


def start(env: TurnEnv, task: str, seed: int) -> TurnInfo:
    """Resets to a task; the typed info."""
    return TurnInfo.read(env.reset(seed=seed, options={"task": task})[1])


def choose(env: TurnEnv, rng: np.random.Generator) -> str:
    """A command of a mixed play: the plan's next, an admissible one, or junk."""
    kind = rng.random()
    plan = env.plan() if kind < 0.5 else []
    if plan:
        return plan[0]
    commands = env.commands() if kind < 0.9 else None
    words: Sequence[str] = commands or JUNK_WORDS
    return words[int(rng.integers(len(words)))]


@dataclass(frozen=True, slots=True)
class Walk:
    """A mixed play: its commands, and whether the episode still runs."""

    commands: tuple[str, ...]
    running: bool


def wander(env: TurnEnv, task: str, seed: int, *, turns: int = WANDER_TURNS) -> Walk:
    """Plays at most `turns` turns of a mixed play of a task."""
    start(env, task, seed)
    rng = seeding.generator(seed, "check", task)
    commands: list[str] = []
    while len(commands) < turns:
        commands.append(choose(env, rng))
        _, _, terminated, truncated, _ = env.step(commands[-1])
        if terminated or truncated:
            return Walk(tuple(commands), running=False)
    return Walk(tuple(commands), running=True)


def line_of(answer: object) -> str:
    """One answer of reset or step as canonical JSON; what JSON cannot hold stands by the name of its type."""
    return json.dumps(answer, sort_keys=True, ensure_ascii=True, default=lambda value: type(value).__name__)


def play(env: TurnEnv, task: str, seed: int, commands: Sequence[str]) -> list[str]:
    """All that an episode answers, line by line: first the reset, then each step."""
    return [line_of(env.reset(seed=seed, options={"task": task})), *go_on(env, commands)]


def go_on(env: TurnEnv, commands: Sequence[str]) -> list[str]:
    """What the running episode answers to further commands, up to its end."""
    lines = []
    for command in commands:
        answer = env.step(command)
        lines.append(line_of(answer))
        if answer[2] or answer[3]:
            break
    return lines


def difference(one: Sequence[str], other: Sequence[str]) -> str:
    """Where two plays part, with both lines cut short; "" where they are equal."""
    for turn, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            at = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), min(len(a), len(b)))
            cut = slice(max(at - 40, 0), at + 60)
            return f"turn {turn}: ...{a[cut]}... against ...{b[cut]}..."
    return "" if len(one) == len(other) else f"{len(one)} answers against {len(other)}"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A task played by the honest demonstrator.

    Attributes:
        unseen: (command, word) of each word used that nothing had shown.
    """

    task: str
    commands: tuple[str, ...]
    outcome: str
    unseen: tuple[tuple[str, str], ...]


def demonstrate(env: TurnEnv, task: str, seed: int) -> Attempt:
    """The environment's own plan, played by the honest rule to the end of the episode."""
    observation, raw = env.reset(seed=seed, options={"task": task})
    seen = Seen()
    seen.add(str(raw["instructions"]))
    commands: list[str] = []
    unseen: list[tuple[str, str]] = []
    while raw["outcome"] == "running":
        seen.add(observation)
        plan = env.plan()
        command = seen.honest_command(plan, env.inquire(), env.command_words)
        if plan:
            unseen.extend((command, word) for word in seen.unseen(command, env.command_words))
        commands.append(command)
        observation, _, _, _, raw = env.step(command)
    return Attempt(task, tuple(commands), str(raw["outcome"]), tuple(unseen))
