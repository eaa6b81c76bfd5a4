"""The tables of a speed report."""

from io import StringIO

from rich.console import Console

from turngym.benchmarks.speed.machine import Machine
from turngym.benchmarks.speed.measurement import Timing
from turngym.benchmarks.speed.ratio import ratio_over_rounds
from turngym.benchmarks.speed.report import (
    RatioResult,
    SideResult,
    SpeedReport,
    WorkloadResult,
    report_tables,
)


def side(name: str, *speeds: float) -> SideResult:
    timings = [
        Timing(
            amount=1000, wall_s=1000 / speed, cpu_s=500 / speed, startup_s=1.5, details={"ms per reset": 2.25}
        )
        for speed in speeds
    ]
    return SideResult.of(name, f"the {name}", {"python": "3.11"}, timings)


def shown(report: SpeedReport) -> str:
    console = Console(file=StringIO(), width=100)
    console.print(report_tables(report))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def test_tables_show_speeds_ratios_and_how_to_repeat_them() -> None:
    ratio = ratio_over_rounds([1500.0, 3000.0], [1000.0, 1000.0])
    report = SpeedReport(
        entry="toy", summary="Toys.", unit="steps", command="turngym speed toy 'names=[a]' --rounds 2", settings={},
        num_rounds=2, turngym="1.2.3", machine=Machine(cores=4, processor="Some CPU", system="Some system", load=0.1),
        workloads=(
            WorkloadResult(
                name="play", summary="nothing [at all]", work={"steps": 1000},
                sides=(side("peer", 1000.0, 1000.0), side("ours", 1500.0, 3000.0)),
                ratios=(RatioResult(first="ours", second="peer", wall=ratio, cpu=ratio),),
            ),
        ),
    )  # fmt: skip
    lines = [" ".join(line.split()) for line in shown(report).splitlines()]
    assert "play: nothing [at all]" in lines
    assert "side steps/s steps/CPU s ms per reset start-up s" in lines
    assert "peer 1,000 2,000 2.25 1.50" in lines
    assert "ours 2,121 4,243 2.25 1.50" in lines
    # sqrt(2) * 1.5; half the interval of the logarithm is 12.7062 * ln(2) / 2.
    assert "ours / peer 2.12 [0.03, 173.41] 2.12 [0.03, 173.41]" in lines
    assert "times as fast, with 95 % intervals over 2 rounds" in lines
    assert "Some CPU, 4 cores, Some system, load 0.1 before the first round" in lines
    assert "turngym 1.2.3; peer, ours: python 3.11" in lines
    assert "Again: turngym speed toy 'names=[a]' --rounds 2" in lines
