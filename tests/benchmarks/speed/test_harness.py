"""The rounds, the comparison, and the refusal of it."""

import json
import logging
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from turngym.benchmarks.speed.entry import Entry, Side, Workload
from turngym.benchmarks.speed.harness import command_of, measure_speed, refuse_other_work
from turngym.benchmarks.speed.report import SpeedReport
from turngym.config import Settings
from turngym.errors import ConfigError, MeasurementError

PROGRAM = """
import json, sys
from pathlib import Path
job = json.loads(Path(sys.argv[1]).read_text())
log = Path(job["log"])
number = log.read_text().split().count(job["name"]) if log.exists() else 0
with log.open("a") as file:
    file.write(job["name"] + "\\n")
print("what a library says on the way")
print(json.dumps({
    "amount": 100, "wall_s": 100 / job["speeds"][number], "cpu_s": 50 / job["speeds"][number], "startup_s": 0.5,
    "details": {"ms per reset": 2.0}, "work": job["work"][number], "versions": {"python": "3"},
}))
"""


class ToySettings(Settings):
    """Settings of the toy."""

    size: int = 3
    """How much."""

    names: tuple[str, ...] = ()
    """What for."""


@dataclass
class Toy:
    """An entry without any work, whose sides tell figures that the test chose, by name and round.

    Attributes:
        speeds: amount per second of each side in each round.
        work: work that a side tells instead of the common one, by round.
    """

    folder: Path
    speeds: Mapping[str, Sequence[float]]
    work: Mapping[str, Sequence[Mapping[str, int | str]]] = field(default_factory=dict)

    @property
    def log(self) -> list[str]:
        """The sides in the order in which they ran."""
        return (self.folder / "log").read_text(encoding="utf-8").split()

    @property
    def entry(self) -> Entry:
        """The entry."""
        return Entry("toy", "steps", ToySettings, self.plan)

    def plan(self, settings: Settings, folder: Path) -> list[Workload]:
        """Toys per second."""
        program = folder / "program.py"
        program.write_text(PROGRAM, encoding="utf-8")
        sides = tuple(Side(name, f"the {name}", program, self._job(name)) for name in self.speeds)
        first, *others = self.speeds
        return [Workload("play", "nothing at all", sides, tuple((name, first) for name in others))]

    def _job(self, name: str) -> dict[str, object]:
        common: list[Mapping[str, int | str]] = [{"steps": 100, "digest": "abc"}] * len(self.speeds[name])
        log = str(self.folder / "log")
        values = {
            "name": name,
            "speeds": list(self.speeds[name]),
            "work": self.work.get(name, common),
            "log": log,
        }
        return json.loads(json.dumps(values))  # type: ignore[no-any-return]


@pytest.fixture
def toy(tmp_path: Path) -> Toy:
    """A peer and two sides of ours, for two rounds."""
    return Toy(tmp_path, {"peer": [10.0, 20.0], "slow": [5.0, 10.0], "fast": [20.0, 160.0]})


def measure(toy: Toy, *, rounds: int = 2) -> SpeedReport:
    return measure_speed(toy.entry, ToySettings(), rounds=rounds, peer_python=sys.executable)


def test_ratios_are_of_the_rounds(toy: Toy) -> None:
    report = measure(toy)
    (workload,) = report.workloads
    slow, fast = workload.ratios
    assert (slow.first, slow.second, slow.wall.rounds) == ("slow", "peer", (0.5, 0.5))
    assert (slow.wall.low, slow.wall.value, slow.wall.high) == pytest.approx((0.5, 0.5, 0.5))
    assert fast.wall.rounds == (2.0, 8.0)
    assert fast.wall.value == pytest.approx(4.0)
    assert fast.cpu.rounds == pytest.approx((2.0, 8.0))


def test_sides_are_summed_up(toy: Toy) -> None:
    peer, _, fast = measure(toy).workloads[0].sides
    assert fast.per_s == pytest.approx((20 * 160) ** 0.5)
    assert fast.per_cpu_s == pytest.approx(2 * fast.per_s)  # The toy's CPU time is half its wall time.
    assert [timing.per_s for timing in peer.rounds] == pytest.approx([10.0, 20.0])
    assert (peer.startup_s, peer.details, peer.versions) == (0.5, {"ms per reset": 2.0}, {"python": "3"})


def test_each_round_begins_with_another_side(toy: Toy) -> None:
    measure(toy)
    assert toy.log == ["peer", "slow", "fast", "slow", "fast", "peer"]


def test_progress_tells_round_and_side(toy: Toy) -> None:
    told = []
    measure_speed(
        toy.entry, ToySettings(), rounds=2, peer_python=sys.executable,
        on_progress=lambda what, done, total: told.append((what, done, total)),
    )  # fmt: skip
    assert told[0] == ("round 1 of 2: play, peer", 0, 6)
    assert told[-1] == ("round 2 of 2: play, peer", 5, 6)


@pytest.mark.parametrize("number", [0, 1])
def test_other_work_gives_no_ratio(number: int, toy: Toy) -> None:
    same: dict[str, int | str] = {"steps": 100, "digest": "abc"}
    other = same | {"digest": "xyz"}
    toy.work = {"fast": [other if number == at else same for at in range(2)]}
    with pytest.raises(MeasurementError) as failure:
        measure(toy)
    assert "play: the sides did different work" in str(failure.value)
    assert "digest is abc for peer and xyz for fast" in str(failure.value)
    assert len(toy.log) <= 3 * (number + 1)  # It stops at once.


def test_work_that_one_side_does_not_tell_is_other_work() -> None:
    with pytest.raises(MeasurementError, match="won is absent for one and 3 for other"):
        refuse_other_work("play", ("one", {"steps": 1}), ("other", {"steps": 1, "won": 3}))
    refuse_other_work("play", ("one", {"steps": 1, "won": 3}), ("other", {"won": 3, "steps": 1}))


@pytest.mark.parametrize("rounds", [-1, 0, 1])
def test_too_few_rounds_are_refused_before_anything_runs(rounds: int, toy: Toy) -> None:
    with pytest.raises(ConfigError, match=f"rounds = {rounds}: give 2 or more"):
        measure(toy, rounds=rounds)
    assert not (toy.folder / "log").exists()


def test_the_record_can_be_read_again_and_names_no_place(toy: Toy) -> None:
    report = measure(toy)
    text = report.model_dump_json()
    assert SpeedReport.model_validate_json(text) == report
    assert report.workloads[0].work == {"steps": 100, "digest": "abc"}
    assert str(toy.folder) not in text and sys.executable not in text


def test_the_command_repeats_what_was_changed() -> None:
    entry = Entry("toy", "steps", ToySettings, lambda settings, folder: [])
    assert command_of(entry, ToySettings(), 5) == "turngym speed toy --rounds 5"
    changed = ToySettings(size=4, names=("a b", "c"))
    assert command_of(entry, changed, 2) == """turngym speed toy size=4 'names=["a b", "c"]' --rounds 2"""


def test_a_busy_machine_is_warned_of(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("os.getloadavg", lambda: (99.0, 0.0, 0.0))
    with caplog.at_level(logging.WARNING):
        assert measure(toy).machine.load == 99.0
    assert "This machine is busy: load 99.0" in caplog.text
