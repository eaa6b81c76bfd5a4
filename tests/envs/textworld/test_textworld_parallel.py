"""Jobs in worker processes: results in order, errors by kind, and a quiet stop."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.envs.textworld.parallel import run_parallel
from turngym.errors import InfraError

pytestmark = pytest.mark.textworld

INTERRUPTED = """
import subprocess, sys
from turngym.envs.textworld.parallel import run_parallel
try:
    run_parallel(subprocess.getoutput, [f"echo here > {sys.argv[1]}; sleep 600"] * 3, processes=2, label="Working")
except KeyboardInterrupt:
    print("stopped")
"""


@pytest.mark.parametrize("processes", [1, 2])
def test_results_come_in_order(processes: int) -> None:
    assert run_parallel(json.dumps, ["b", "a", "c"], processes=processes) == ['"b"', '"a"', '"c"']


def test_an_error_of_ours_keeps_its_kind_and_a_dead_worker_is_told() -> None:
    assert run_parallel(json.loads, ["1", "2"], processes=2) == [1, 2]
    with pytest.raises(InfraError, match="A worker process died at '{'"):
        run_parallel(json.loads, ["1", "{", "3"], processes=2)


def test_no_room_for_workers_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    with pytest.raises(InfraError, match="No worker process could be started"):
        run_parallel(json.dumps, ["a", "b"], processes=2)


def test_ctrl_c_stops_the_workers_without_a_word_of_theirs(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    command = [sys.executable, "-c", INTERRUPTED, str(fifo)]
    with subprocess.Popen(
        command,
        env=environ,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            assert fifo.read_text().startswith("here")  # a worker is at work
            os.killpg(running.pid, signal.SIGINT)
            out, err = running.communicate(timeout=60)
        finally:
            running.kill()
    assert out == "stopped\n" and "Traceback" not in err, err
    assert "Working" in err
