"""The measuring itself: all sides in turn, one at a time, round after round, on the same work."""

import json
import logging
import os
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from turngym import __version__
from turngym.benchmarks.speed.entry import PEERS, Entry, Side, Workload
from turngym.benchmarks.speed.machine import this_machine
from turngym.benchmarks.speed.measurement import Measurement
from turngym.benchmarks.speed.peer_environment import peer_python as make_peer_python
from turngym.benchmarks.speed.ratio import MIN_ROUNDS, ratio_over_rounds
from turngym.benchmarks.speed.report import RatioResult, SideResult, SpeedReport, WorkloadResult
from turngym.benchmarks.speed.side_process import run_side
from turngym.config import Settings
from turngym.errors import ConfigError, MeasurementError

logger = logging.getLogger(__name__)

OnProgress = Callable[[str, int, int], None]
"""Is told what runs next, how many programs are done, and how many there are."""


@dataclass(slots=True)
class _Record:
    """What the sides of a workload have measured so far, by name."""

    workload: Workload
    found: dict[str, list[Measurement]] = field(default_factory=dict)

    def add(self, side: Side, measurement: Measurement) -> None:
        if self.found:
            first, (one, *_) = next(iter(self.found.items()))
            refuse_other_work(self.workload.name, (first, one.work), (side.name, measurement.work))
        self.found.setdefault(side.name, []).append(measurement)


def measure_speed(
    entry: Entry,
    settings: Settings,
    *,
    rounds: int = 5,
    peer_python: str = "",
    on_progress: OnProgress = lambda what, done, total: None,
) -> SpeedReport:
    """Ratios of turngym's speed to the peer's, all measured now.

    In each round each side of each workload runs once, as a program of its own, one at a time; the order of the sides
    is rotated from round to round.

    Args:
        entry: what is measured.
        settings: of the entry's model.
        rounds: number of rounds, 2 or more.
        peer_python: path of a Python that has the peer; "" makes the peer's environment, once.
        on_progress: see `OnProgress`.

    Raises:
        ConfigError: too few rounds, no such Python, or a setting is wrong.
        MeasurementError: the peer's environment cannot be made, a side fails, or sides did different work.
    """
    if rounds < MIN_ROUNDS:
        raise ConfigError(f"rounds = {rounds}: give {MIN_ROUNDS} or more, since an interval needs them.")
    if peer_python:
        peer_python = _found(peer_python)
    machine = this_machine()
    if machine.busy_warning:
        logger.warning("%s", machine.busy_warning)
    with TemporaryDirectory(prefix="turngym_speed_") as name:
        folder = Path(name)
        workloads = entry.plan(settings, folder)
        if entry.peer and not peer_python:
            peer_python = make_peer_python(entry.peer, PEERS / f"{entry.peer}.txt")
        records = {workload.name: _Record(workload) for workload in workloads}
        total, done = rounds * sum(len(workload.sides) for workload in workloads), 0
        for number in range(rounds):
            logger.info("Round %d of %d", number + 1, rounds)
            for workload, side in _in_order(workloads, number):
                on_progress(f"round {number + 1} of {rounds}: {workload.name}, {side.name}", done, total)
                records[workload.name].add(side, run_side(side, peer_python=peer_python, folder=folder))
                done += 1
    return SpeedReport(
        entry=entry.name,
        summary=entry.summary,
        unit=entry.unit,
        command=command_of(entry, settings, rounds),
        settings=settings.model_dump(mode="json"),
        num_rounds=rounds,
        turngym=__version__,
        machine=machine,
        workloads=tuple(_result(record) for record in records.values()),
    )


def refuse_other_work(
    workload: str, one: tuple[str, Mapping[str, int | str]], other: tuple[str, Mapping[str, int | str]]
) -> None:
    """Stops where two sides did different work: their speeds are no ratio.

    Args:
        workload: its name.
        one, other: name of a side, and what it did.

    Raises:
        MeasurementError: names the first thing that differs.
    """
    (first, work), (second, second_work) = one, other
    for key in dict.fromkeys([*work, *second_work]):
        values = work.get(key, "absent"), second_work.get(key, "absent")
        if values[0] != values[1]:
            raise MeasurementError(
                f"{workload}: the sides did different work, so no ratio is stated: {key} is {values[0]} for {first} "
                f"and {values[1]} for {second}.\n"
                "Measure against the version of the peer that turngym names (leave out --peer-python), or report this."
            )


def command_of(entry: Entry, settings: Settings, rounds: int) -> str:
    """The command that measures the same again."""
    changed = settings.model_dump(mode="json", exclude_defaults=True)
    pairs = [
        f"{key}={value if isinstance(value, str) else json.dumps(value)}" for key, value in changed.items()
    ]
    return shlex.join(["turngym", "speed", entry.name, *pairs, "--rounds", str(rounds)])


def _found(python: str) -> str:
    path = shutil.which(python)
    if path is None:
        raise ConfigError(
            f"--peer-python {python}: no such program. Give the path of a Python, as in venv/bin/python."
        )
    return os.path.abspath(path)  # Not resolved: an environment's Python is a link that must keep its place.


def _in_order(workloads: Sequence[Workload], number: int) -> Iterator[tuple[Workload, Side]]:
    for workload in workloads:
        shift = number % len(workload.sides)
        for side in workload.sides[shift:] + workload.sides[:shift]:
            yield workload, side


def _result(record: _Record) -> WorkloadResult:
    workload, found = record.workload, record.found
    return WorkloadResult(
        name=workload.name,
        summary=workload.summary,
        work=found[workload.sides[0].name][0].work,
        sides=tuple(
            SideResult.of(
                side.name,
                side.summary,
                found[side.name][0].versions,
                [one.timing for one in found[side.name]],
            )
            for side in workload.sides
        ),
        ratios=tuple(
            RatioResult(
                first=first,
                second=second,
                wall=ratio_over_rounds(
                    [one.per_s for one in found[first]], [one.per_s for one in found[second]]
                ),
                cpu=ratio_over_rounds(
                    [one.per_cpu_s for one in found[first]], [one.per_cpu_s for one in found[second]]
                ),
            )
            for first, second in workload.ratios
        ),
    )
