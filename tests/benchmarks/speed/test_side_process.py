"""One side's program: what it gets, and what becomes of one that fails."""

import json
import sys
from pathlib import Path

import pytest

from turngym.benchmarks.speed.entry import Side
from turngym.benchmarks.speed.measurement import Measurement
from turngym.benchmarks.speed.side_process import run_side
from turngym.errors import MeasurementError, TurngymError

TELL = """
import json, os, sys
from pathlib import Path
job = json.loads(Path(sys.argv[1]).read_text())
work = {
    "job": job["what"], "path": os.environ.get("PYTHONPATH", "none"), "isolated": int(sys.flags.isolated),
    "seed": os.environ.get("PYTHONHASHSEED", "none"), "here": os.getcwd(),
}
print(json.dumps({
    "amount": 10, "wall_s": 2.0, "cpu_s": 4.0, "startup_s": float(sys.argv[2]), "work": work, "versions": {},
}))
"""


def run(program: str | Path, folder: Path, *, limit_s: float = 60.0) -> Measurement:
    side = Side("it", "the side", program, {"what": "this"})
    return run_side(side, peer_python=sys.executable, folder=folder, limit_s=limit_s)


def script(folder: Path, text: str) -> Path:
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    return path


def test_a_peer_gets_its_job_and_nothing_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "ours"))
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    got = run(script(tmp_path, TELL), tmp_path)
    assert got.work == {
        "job": "this", "path": "none", "isolated": 1, "seed": "none", "here": str(tmp_path),
    }  # fmt: skip
    assert (got.per_s, got.per_cpu_s) == (5.0, 2.5)
    assert got.startup_s > 0


def test_a_side_of_ours_finds_the_modules_that_we_find(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "our_own_side.py").write_text(f"import turngym\n{TELL}", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path / "own"))
    got = run("our_own_side", tmp_path)
    assert got.work["job"] == "this"
    assert str(tmp_path / "own") in str(got.work["path"])


FAILURES = {
    "an exception": ("raise ValueError('no such game')", "exit code 1", "ValueError: no such game"),
    "an absent peer": ("import nowhere_to_be_found", "No module named 'nowhere_to_be_found'", "--peer-python"),
    "no word": ("import os; os._exit(3)", "exit code 3", "it said nothing"),
    "no measurement": ("print('hello')", "printed no measurement", "script.py"),
    "no output": ("", "printed no measurement", "script.py"),
    "half a measurement": (f"print({json.dumps(json.dumps({'amount': 1}))})", "printed no measurement", "missing"),
}  # fmt: skip


@pytest.mark.parametrize("case", FAILURES)
def test_a_failure_is_told_in_at_most_three_lines(case: str, tmp_path: Path) -> None:
    program, *needles = FAILURES[case]
    with pytest.raises(MeasurementError) as failure:
        run(script(tmp_path, program), tmp_path)
    assert isinstance(failure.value, TurngymError)
    assert len(str(failure.value).splitlines()) <= 3
    for needle in ["'it'", *needles]:
        assert needle in str(failure.value)


def test_a_side_that_never_ends_is_stopped(tmp_path: Path) -> None:
    endless = script(tmp_path, "import signal\nsignal.pause()\n")
    with pytest.raises(MeasurementError, match="took longer than 0.2 s"):
        run(endless, tmp_path, limit_s=0.2)


def test_an_absent_python_is_told(tmp_path: Path) -> None:
    side = Side("it", "the side", script(tmp_path, TELL), {})
    with pytest.raises(MeasurementError, match="cannot be started with .*--peer-python PATH"):
        run_side(side, peer_python=str(tmp_path / "python"), folder=tmp_path)
