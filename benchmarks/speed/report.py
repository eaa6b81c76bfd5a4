"""What `turngym speed` found: its record, file and tables."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from rich import box
from rich.console import Group
from rich.table import Table

from turngym.benchmarks.speed.machine import Machine
from turngym.benchmarks.speed.measurement import Timing
from turngym.benchmarks.speed.ratio import Ratio, geometric_mean
from turngym.config import Settings


class SideResult(Settings):
    """One side of a workload."""

    name: str
    """As it stands in tables."""

    summary: str
    """What it is."""

    versions: Mapping[str, str]
    """Versions of what it stands on."""

    rounds: tuple[Timing, ...]
    """Its figures in each round."""

    per_s: float
    """Amount per second of wall time, geometric mean over the rounds."""

    per_cpu_s: float
    """Amount per second of CPU time, likewise."""

    startup_s: float
    """Wall time before the clock, mean over the rounds."""

    details: Mapping[str, float]
    """Further figures, means over the rounds."""

    @classmethod
    def of(
        cls, name: str, summary: str, versions: Mapping[str, str], rounds: Sequence[Timing]
    ) -> "SideResult":
        """From the figures of all rounds."""
        return cls(
            name=name,
            summary=summary,
            versions=versions,
            rounds=tuple(rounds),
            per_s=geometric_mean([timing.per_s for timing in rounds]),
            per_cpu_s=geometric_mean([timing.per_cpu_s for timing in rounds]),
            startup_s=_mean([timing.startup_s for timing in rounds]),
            details={key: _mean([timing.details[key] for timing in rounds]) for key in rounds[0].details},
        )


class RatioResult(Settings):
    """How many times as fast one side is as another."""

    first: str
    """Name of the side that is compared."""

    second: str
    """Name of the side that it is compared with."""

    wall: Ratio
    """Of the amounts per second of wall time."""

    cpu: Ratio
    """Of the amounts per second of CPU time."""


class WorkloadResult(Settings):
    """All sides on the same work."""

    name: str
    """As it stands in tables."""

    summary: str
    """What is done."""

    work: Mapping[str, int | str]
    """What every side did in every round; digests stand for what is too long to print."""

    sides: tuple[SideResult, ...]
    """In the entry's order."""

    ratios: tuple[RatioResult, ...]
    """Likewise."""


class SpeedReport(Settings):
    """One run of `turngym speed`."""

    format: Literal[1] = 1
    """Version of this record."""

    entry: str
    """What was measured."""

    summary: str
    """The same, in a line."""

    unit: str
    """What is counted."""

    command: str
    """The command that measures it again."""

    settings: Mapping[str, Any]
    """All settings of the entry."""

    num_rounds: int
    """Rounds; each side ran once in each."""

    turngym: str
    """Version of turngym."""

    machine: Machine
    """What it was measured on."""

    workloads: tuple[WorkloadResult, ...]
    """In the entry's order."""


def report_tables(report: SpeedReport) -> Group:
    """For each workload the sides and the ratios, and below all what they were measured on."""
    machine = report.machine
    parts: list[Table | str] = []
    for workload in report.workloads:
        parts += [f"{workload.name}: {workload.summary}", _sides_table(workload, report.unit)]
        parts += [f"times as fast, with 95 % intervals over {report.num_rounds} rounds"]
        parts += [_ratios_table(workload)]
    parts += [
        f"{machine.processor or 'unknown processor'}, {machine.cores} cores, {machine.system}, "
        f"load {machine.load:.1f} before the first round",
        _versions_line(report),
        f"Again: {report.command}",
    ]
    return Group(*(part.replace("[", r"\[") if isinstance(part, str) else part for part in parts))


def _sides_table(workload: WorkloadResult, unit: str) -> Table:
    details = list(workload.sides[0].details)
    table = _table("side", f"{unit}/s", f"{unit}/CPU s", *details, "start-up s")
    for side in workload.sides:
        figures = [side.per_s, side.per_cpu_s, *(side.details[name] for name in details), side.startup_s]
        table.add_row(side.name, *(_rounded(figure) for figure in figures))
    return table


def _ratios_table(workload: WorkloadResult) -> Table:
    table = _table("ratio", "by wall time", "by CPU time")
    for ratio in workload.ratios:
        table.add_row(
            f"{ratio.first} / {ratio.second}", _with_interval(ratio.wall), _with_interval(ratio.cpu)
        )
    return table


def _table(name: str, *figures: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column(name, no_wrap=True)
    for figure in figures:
        table.add_column(figure, justify="right", no_wrap=True)
    return table


def _versions_line(report: SpeedReport) -> str:
    """Versions by side, where sides share them once."""
    found: dict[str, list[str]] = {}
    for side in report.workloads[0].sides:
        text = " ".join(f"{name} {version}" for name, version in side.versions.items())
        found.setdefault(text, []).append(side.name)
    sides = "; ".join(f"{', '.join(names)}: {text}" for text, names in found.items())
    return f"turngym {report.turngym}; {sides}"


def _with_interval(ratio: Ratio) -> str:
    return rf"{ratio.value:.2f} \[{ratio.low:.2f}, {ratio.high:.2f}]"


def _rounded(figure: float) -> str:
    return f"{figure:,.0f}" if figure >= 100 else f"{figure:.2f}"


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
