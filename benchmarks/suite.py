"""Suites: which environments and tasks a benchmark plays, and the hash that names them."""

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


class SuitePart(Settings):
    """One environment of a suite that has several."""

    name: str
    """Name of its row in the report."""

    env: str
    """Environment id."""

    kwargs: dict[str, Any] = {}
    """Arguments of the environment."""

    tasks: TaskChoice
    """The tasks to play."""


class Suite(Settings):
    """One benchmark: one environment or several, a fixed list of tasks, and how often sampled play repeats each."""

    name: str
    """Name by which `turngym bench` finds it."""

    description: str = ""
    """One sentence on what it measures."""

    env: str = ""
    """Environment id; unset where there are parts."""

    kwargs: dict[str, Any] = {}
    """Arguments of the environment."""

    tasks: TaskChoice | None = None
    """The tasks to play; unset where there are parts."""

    parts: tuple[SuitePart, ...] = ()
    """Several environments, each with its tasks; they take the place of env, kwargs and tasks."""

    repeats: int = Field(default=4, ge=1)
    """Episodes per task in sampled play."""

    @model_validator(mode="after")
    def _one_form(self) -> "Suite":
        if self.parts and (self.env or self.kwargs or self.tasks is not None):
            raise ValueError("parts take the place of env, kwargs and tasks; give the one or the others.")
        if not self.parts and not (self.env and self.tasks is not None):
            raise ValueError("name env and tasks, or parts with an env and tasks each.")
        names = [part.name for part in self.parts]
        if len({*names}) < len(names):
            raise ValueError(f"the parts are named {', '.join(names)}: give each a name of its own.")
        return self

    @property
    def environments(self) -> tuple[SuitePart, ...]:
        """The parts; a suite of one environment is one part, named like the suite."""
        if self.parts or self.tasks is None:
            return self.parts
        return (SuitePart(name=self.name, env=self.env, kwargs=self.kwargs, tasks=self.tasks),)


@dataclass(frozen=True, slots=True)
class Panel:
    """A fixed list of tasks of one environment, and its hash."""

    suite: str
    env: EnvRef
    tasks: tuple[str, ...]
    repeats: int

    def __post_init__(self) -> None:
        _check_once(self.suite, (self,))

    @property
    def parts(self) -> "tuple[Panel, ...]":
        """The panel itself, as the one part that it has."""
        return (self,)

    @property
    def hash(self) -> str:
        """First 16 hex digits of the sha256 of environment id, arguments and task ids as canonical JSON."""
        return _hash(_content(self))


@dataclass(frozen=True, slots=True)
class MixedPanel:
    """A fixed list of tasks of several environments: panels one after another, each named as its part."""

    suite: str
    parts: tuple[Panel, ...]
    repeats: int

    def __post_init__(self) -> None:
        _check_once(self.suite, self.parts)

    @property
    def tasks(self) -> tuple[str, ...]:
        """The task ids of all parts."""
        return tuple(task for part in self.parts for task in part.tasks)

    @property
    def hash(self) -> str:
        """As of a panel, over the list of all parts; their names don't count."""
        return _hash({"parts": [_content(part) for part in self.parts]})


def _check_once(suite: str, parts: Sequence[Panel]) -> None:
    places: dict[str, str] = {}
    for part in parts:
        for task in part.tasks:
            if task in places:
                where = "" if places[task] == part.suite else f", in {places[task]!r} and in {part.suite!r}"
                raise ConfigError(f"Suite {suite!r}: task {task!r} stands twice{where}. List each task once.")
            places[task] = part.suite
    if not places:
        raise ConfigError(f"Suite {suite!r} has no task. List one at least.")


def _content(panel: Panel) -> dict[str, Any]:
    return {"env": panel.env.env_id, "kwargs": dict(panel.env.kwargs), "tasks": list(panel.tasks)}


def _hash(content: dict[str, Any]) -> str:
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


def panel_of(suite: Suite) -> Panel | MixedPanel:
    """The tasks of a suite, written out; makes an environment only to ask for a split.

    Raises:
        TaskError: a split has fewer tasks than the suite asks for.
        ConfigError: a task stands twice.
    """
    panels = []
    for part in suite.environments:
        env = EnvRef(part.env, part.kwargs)
        panels.append(Panel(part.name, env, tuple(_chosen(suite.name, part.tasks, env)), suite.repeats))
    return MixedPanel(suite.name, tuple(panels), suite.repeats) if suite.parts else panels[0]


def _chosen(suite: str, choice: TaskChoice, env: EnvRef) -> Sequence[str]:
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
            f"Suite {suite!r} asks for tasks {choice.start} to {end - 1} of {choice.split!r}, "
            f"which has {len(tasks)}. Lower start or count."
        )
    return tasks[choice.start : end]
