"""What a benchmark found: its record, file and tables, and the comparison of two of them."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import BaseModel, Field, RootModel, ValidationError
from rich import box
from rich.table import Table

from turngym.benchmarks.statistics import Improvement, IntervalKind, PassK, paired_improvement
from turngym.config import Settings, explain
from turngym.errors import ConfigError, FileFormatError
from turngym.types import Outcome

Mode = Literal["greedy", "sampled", "scripted"]


ModelT = TypeVar("ModelT", bound=BaseModel)


class TaskResult(Settings):
    """What became of one task; the lists have one entry per repeat, in order."""

    task: str
    """Task id."""

    outcomes: tuple[Outcome, ...]
    """How each repeat ended; `infra` is outside every statistic."""

    returns: tuple[float, ...]
    """Undiscounted return of each repeat."""

    turns: tuple[int, ...]
    """Turns of each repeat."""

    @property
    def wins(self) -> tuple[bool, ...]:
        """Whether each scored repeat was won; repeats that ended in `infra` are left out."""
        return tuple(outcome == "won" for outcome in self.outcomes if outcome != "infra")


class Figures(Settings):
    """What a whole suite and each of its parts have: a panel, and how it was played."""

    env_id: str
    """Environment id; of a suite of several environments, the different ids."""

    env_kwargs: Mapping[str, Any]
    """Arguments of the environment; of a suite of several, none: they stand in its parts."""

    panel_hash: str
    """Hash of environment id, arguments and task ids."""

    num_panel: int
    """Tasks of the panel."""

    num_tasks: int
    """Tasks with at least one scored episode."""

    incomplete: bool
    """Fewer tasks were scored than the panel has."""

    success: float
    """Won / scored episodes."""

    low: float
    """Lower bound of the 95 % interval of success."""

    high: float
    """Upper bound of the 95 % interval of success."""

    interval: IntervalKind
    """How the bounds were found."""

    outcomes: Mapping[Outcome, int]
    """Number of episodes by how they ended; all ways are listed."""

    mean_return: float
    """Mean undiscounted return of scored episodes."""

    mean_turns: float
    """Mean number of turns of scored episodes."""

    invalid_share: float
    """Refused or impossible commands / all commands, over scored episodes."""


class PartResult(Figures):
    """One environment of a suite that has several: the figures of its tasks alone."""

    name: str
    """Name of the part."""


class BenchResult(Figures):
    """One agent on one panel in one mode (DEFINITIONS section 7)."""

    format: Literal[1] = 1
    """Version of this file's format."""

    suite: str
    """Name of the suite."""

    agent: str
    """Name of the agent."""

    weights_version: int = 0
    """Version of the agent's weights."""

    mode: Mode
    """Greedy or sampled play of a policy; scripted agents have one figure."""

    seed: int
    """Root seed of the benchmark."""

    repeats: int
    """Episodes asked per task."""

    num_episodes: int
    """Scored episodes: all but those that ended in `infra`."""

    num_infra: int
    """Episodes that failed by no fault of the agent, after all retries."""

    success_if_infra_fails: float
    """Won / all episodes, those that ended in `infra` counted as failures."""

    pass_k: tuple[PassK, ...] = ()
    """pass@k and pass^k, where tasks were repeated."""

    action_tokens: int
    """Tokens that the policy wrote, over all episodes."""

    seconds: float
    """Wall time of the play."""

    num_contaminated: int
    """Tasks of the panel that the agent was trained on."""

    selected_on: str
    """What the agent was chosen by."""

    versions: Mapping[str, str]
    """Versions of turngym and of what it stands on."""

    parts: tuple[PartResult, ...] = ()
    """The figures of each environment, where the suite has several."""

    tasks: tuple[TaskResult, ...] = Field(repr=False)
    """Every task that was played, in the panel's order."""

    @property
    def wins(self) -> dict[str, tuple[bool, ...]]:
        """Task id -> whether each scored repeat was won."""
        return {task.task: task.wins for task in self.tasks}

    def warnings(self) -> tuple[str, ...]:
        """What a reader of the figure must know."""
        lines = []
        if self.incomplete:
            lines.append(f"Incomplete: {self.num_tasks} of {self.num_panel} tasks were scored.")
        if self.num_infra:
            lines.append(
                f"{self.num_infra} episodes failed by no fault of the agent and count nowhere; "
                f"as failures they would make it {self.success_if_infra_fails:.1%}."
            )
        if self.num_contaminated:
            lines.append(f"{self.num_contaminated} of {self.num_panel} tasks of the panel were trained on.")
        return tuple(lines)


@dataclass(frozen=True, slots=True)
class ImprovementReport:
    """The second agent against the first, on the same tasks.

    Attributes:
        improvement: difference in percentage points, with its bounds.
        num_left_out: tasks without a scored episode in one of the two (all ended in `infra`).
    """

    suite: str
    panel_hash: str
    first: str
    second: str
    improvement: Improvement
    num_left_out: int


def write_whole(text: str, path: Path) -> None:
    """Writes a text and a line end, whole or not at all: beside the path first, then renamed."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with beside.open("w", encoding="utf-8") as file:
            file.write(text + "\n")
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)


def write_result(result: BenchResult, path: Path) -> None:
    """Writes the result as JSON, whole or not at all: beside the path first, then renamed."""
    write_whole(result.model_dump_json(indent=2), path)


def read_result(path: Path) -> BenchResult:
    """The result in a file that `write_result` wrote.

    Raises:
        FileFormatError: the file cannot be read, or is no result.
    """
    return _parsed(BenchResult, path)


class BenchResults(RootModel[dict[Mode, BenchResult]]):
    """All results of one `turngym bench`, by mode."""


def write_results(results: Sequence[BenchResult], path: Path) -> None:
    """Writes the results of one benchmark as one JSON object, mode -> result, whole or not at all."""
    write_whole(BenchResults({result.mode: result for result in results}).model_dump_json(indent=2), path)


def read_results(path: Path) -> dict[Mode, BenchResult]:
    """The results in a file that `write_results` wrote, by mode.

    Raises:
        FileFormatError: the file cannot be read, or holds no results.
    """
    return _parsed(BenchResults, path).root


def _parsed(model: type[ModelT], path: Path) -> ModelT:
    try:
        return model.model_validate_json(path.read_bytes())
    except OSError as error:
        raise FileFormatError(
            f"Cannot read {path}: {error}. Give a result that `turngym bench` wrote."
        ) from error
    except ValidationError as error:
        raise FileFormatError(f"No benchmark result: {explain(model, error, source=str(path))}") from error


def improvement(first: BenchResult, second: BenchResult) -> ImprovementReport:
    """How much better the second result is, by a paired bootstrap over the panel's tasks.

    Raises:
        ConfigError: the panels differ, or one played a task that the other did not.
    """
    if first.panel_hash != second.panel_hash:
        raise ConfigError(
            f"The panels differ: {first.suite} {first.panel_hash} and {second.suite} {second.panel_hash}. "
            "Compare results on the same suite, arguments and tasks."
        )
    one, two = first.wins, second.wins
    unscored = {task for wins in (one, two) for task, repeats in wins.items() if not repeats}
    gain = paired_improvement(
        {task: repeats for task, repeats in one.items() if task not in unscored},
        {task: repeats for task, repeats in two.items() if task not in unscored},
        panel_hash=first.panel_hash,
    )
    return ImprovementReport(
        suite=first.suite,
        panel_hash=first.panel_hash,
        first=f"{first.agent} ({first.mode})",
        second=f"{second.agent} ({second.mode})",
        improvement=gain,
        num_left_out=len(unscored),
    )


def result_table(results: Sequence[BenchResult]) -> Table:
    """One row per result, and below it one for each environment of a suite that has several.

    The caption says what each was selected on, with every warning. Suite and agent stand in the title where all
    results share them, so that rows fit a terminal.
    """
    suites, agents = {result.suite for result in results}, {result.agent for result in results}
    shared = [*(suites if len(suites) == 1 else ()), *(agents if len(agents) == 1 else ())]
    title = ": ".join([*([", ".join(shared)] if shared else []), "success with 95 % intervals"])
    table = Table(
        title=title.replace("[", r"\["),
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        padding=(0, 1, 0, 0),
    )
    for name, differing in (("suite", suites), ("agent", agents)):
        if len(differing) > 1:
            table.add_column(name)
    several = any(result.parts for result in results)
    if several:
        # In one column, and folded: names of parts are long, and a row must fit a terminal.
        table.add_column("mode: part", min_width=10, overflow="fold")
    else:
        table.add_column("mode", no_wrap=True)
    for name in ("success %", "tasks", "return", "turns", "invalid %"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("not won", min_width=10, overflow="fold")
    notes = []
    for result in results:
        first = [
            *([result.suite] if len(suites) > 1 else []),
            *([result.agent.replace("[", r"\[")] if len(agents) > 1 else []),
        ]
        table.add_row(*first, f"{result.mode}: all" if several else result.mode, *_figures(result))
        for part in result.parts:
            table.add_row(*("" for _ in first), part.name.replace("[", r"\["), *_figures(part))
        head = f"{result.agent} ({result.mode}, panel {result.panel_hash}, {result.interval})"
        notes.append(" ".join([f"{head}: selected on {result.selected_on}.", *result.warnings()]))
    table.caption = "\n".join(notes).replace("[", r"\[")
    return table


def improvement_table(reports: Sequence[ImprovementReport]) -> Table:
    """One row per comparison."""
    table = Table(title="Improvement on the same tasks, with 95 % intervals", title_justify="left")
    for name in ("suite", "from", "to"):
        table.add_column(name)
    for name in ("points", "interval", "tasks"):
        table.add_column(name, justify="right")
    table.add_column("verdict")
    for report in reports:
        gain = report.improvement
        left_out = f" ({report.num_left_out} left out)" if report.num_left_out else ""
        table.add_row(
            report.suite,
            report.first,
            report.second,
            f"{gain.points:+.1f}",
            rf"\[{gain.low:+.1f}, {gain.high:+.1f}]",
            f"{gain.num_tasks}{left_out}",
            _verdict(gain),
        )
    return table


def _figures(result: Figures) -> tuple[str, ...]:
    return (
        f"{100 * result.success:.1f} \\[{100 * result.low:.1f}, {100 * result.high:.1f}]",
        f"{result.num_tasks}" if not result.incomplete else f"{result.num_tasks} of {result.num_panel}",
        f"{result.mean_return:.2f}",
        f"{result.mean_turns:.1f}",
        f"{100 * result.invalid_share:.1f}",
        _failures(result),
    )


def _failures(result: Figures) -> str:
    counts = [(name, count) for name, count in result.outcomes.items() if count and name != "won"]
    return ", ".join(f"{name} {count}" for name, count in counts)


def _verdict(gain: Improvement) -> str:
    if gain.is_improvement:
        return "better"
    return "worse" if gain.high < 0 else "too few to tell"
