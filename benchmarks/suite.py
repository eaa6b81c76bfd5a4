"""Suites: which environment and tasks a benchmark plays, and the hash that names them."""

import hashlib
import importlib.resources
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import Field, model_validator

from turngym.config import Settings, parse_yaml, read_yaml, validate
from turngym.envs.pool import EnvRef
from turngym.errors import ConfigError, TaskError, UnknownNameError, suggest
from turngym.types import Split, TaskRange

HASH_CHARS = 16


class TaskChoice(Settings):
    """Tasks of a suite: part of a split, or numbers after a prefix, or a list of ids."""

    split: Split | None = None
    """Split of the environment; `start` and `count` cut it."""

    prefix: str | None = None
    """Text before the number in each id; the numbers are start .. start + count - 1."""

    ids: tuple[str, ...] | None = None
    """The task ids themselves."""

    start: int = Field(default=0, ge=0)
    """First task: its place in the split, or its number after the prefix."""

    count: int | None = Field(default=None, ge=1)
    """How many tasks; unset takes the rest of the split."""

    @model_validator(mode="after")
    def _one_form(self) -> "TaskChoice":
        forms = [name for name in ("split", "prefix", "ids") if getattr(self, name) is not None]
        if len(forms) != 1:
            raise ValueError(
                f"name the tasks by exactly one of split, prefix or ids, not by {forms or 'none'}."
            )
        if self.prefix is not None and self.count is None:
            raise ValueError("a prefix has no end of its own; set count.")
        if self.ids is not None and (self.start or self.count is not None):
            raise ValueError("ids are played as listed; start and count belong to split or prefix.")
        return self


class Suite(Settings):
    """One benchmark: an environment, a fixed list of tasks, and how often sampled play repeats each."""

    name: str
    """Name by which `turngym bench` finds it."""

    description: str = ""
    """One sentence on what it measures."""

    env: str
    """Environment id."""

    kwargs: dict[str, Any] = {}
    """Arguments of the environment."""

    tasks: TaskChoice
    """The tasks to play."""

    repeats: int = Field(default=4, ge=1)
    """Episodes per task in sampled play."""


@dataclass(frozen=True, slots=True)
class Panel:
    """A fixed list of tasks of one environment, and its hash."""

    suite: str
    env: EnvRef
    tasks: tuple[str, ...]
    repeats: int

    def __post_init__(self) -> None:
        doubled = len(self.tasks) - len({*self.tasks})
        if doubled or not self.tasks:
            what = f"{doubled} tasks stand twice" if doubled else "there is no task"
            raise ConfigError(f"Suite {self.suite!r}: {what}. List each task once, and one at least.")

    @property
    def hash(self) -> str:
        """First 16 hex digits of the sha256 of environment id, arguments and task ids as canonical JSON."""
        content = {"env": self.env.env_id, "kwargs": dict(self.env.kwargs), "tasks": list(self.tasks)}
        text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:HASH_CHARS]


def suite_names() -> tuple[str, ...]:
    """Names of the suites that come with turngym, sorted."""
    folder = importlib.resources.files("turngym.benchmarks").joinpath("suites")
    return tuple(
        sorted(one.name.removesuffix(".yaml") for one in folder.iterdir() if one.name.endswith(".yaml"))
    )


def suite_text(name: str) -> str:
    """The YAML text of a bundled suite, to be copied and changed.

    Raises:
        UnknownNameError: no suite of that name; suggests the nearest.
    """
    if name not in suite_names():
        hint = suggest(name, suite_names(), listing="turngym list suites")
        raise UnknownNameError(f"No suite {name!r}. {hint}")
    return (
        importlib.resources.files("turngym.benchmarks").joinpath("suites", f"{name}.yaml").read_text("utf-8")
    )


def load_suite(suite: str | Path) -> Suite:
    """A suite by name, or by the path of a YAML file (a Path, or text with a slash or the ending .yaml).

    Raises:
        UnknownNameError: no suite of that name.
        ConfigError: the file cannot be read, or a setting in it is wrong.
    """
    if isinstance(suite, Path) or "/" in suite or suite.endswith((".yaml", ".yml")):
        return validate(Suite, read_yaml(Path(suite)), source=str(suite))
    source = f"{suite}.yaml"
    return validate(Suite, parse_yaml(suite_text(suite), source=source), source=source)


def panel_of(suite: Suite) -> Panel:
    """The tasks of a suite, written out; makes the environment only to ask for a split.

    Raises:
        TaskError: the split has fewer tasks than the suite asks for.
    """
    env = EnvRef(suite.env, suite.kwargs)
    return Panel(suite.name, env, tuple(_chosen(suite, env)), suite.repeats)


def _chosen(suite: Suite, env: EnvRef) -> Sequence[str]:
    choice = suite.tasks
    if choice.ids is not None:
        return choice.ids
    if choice.prefix is not None and choice.count is not None:
        return TaskRange(choice.prefix, range(choice.start, choice.start + choice.count))
    if choice.split is None:
        raise AssertionError("the validator lets no choice without a form pass")
    made = env.make()
    tasks = made.tasks(choice.split)
    made.close()
    end = len(tasks) if choice.count is None else choice.start + choice.count
    if not choice.start < end <= len(tasks):
        raise TaskError(
            f"Suite {suite.name!r} asks for tasks {choice.start} to {end - 1} of {choice.split!r}, "
            f"which has {len(tasks)}. Lower start or count."
        )
    return tasks[choice.start : end]
