"""One side's program, run once: started, waited for, and what it printed read."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

from pydantic import ValidationError

from turngym.benchmarks.speed.entry import Side
from turngym.benchmarks.speed.measurement import Measurement
from turngym.config import explain
from turngym.errors import MeasurementError

LIMIT_S = 1800.0
"""How long a side may take."""

_TOLD_CHARS = 160


def run_side(side: Side, *, peer_python: str, folder: Path, limit_s: float = LIMIT_S) -> Measurement:
    """What a side measured in a process of its own.

    Args:
        side: what to run.
        peer_python: the Python that runs a peer's script.
        folder: where the job is written and the program runs, so that it finds no module in the folder of the moment.
        limit_s: after this time it is killed.

    Raises:
        MeasurementError: the program cannot be started, fails, takes too long or prints no measurement.
    """
    job = folder / "job.json"
    job.write_text(json.dumps(side.job), encoding="utf-8")
    if isinstance(side.program, Path):
        # Isolated: it sees neither the caller's variables for Python nor the folder that its script lies in.
        command = [peer_python, "-I", str(side.program)]
    else:
        command = [sys.executable, "-P", "-m", side.program]
    try:
        done = subprocess.run(
            [*command, str(job), str(time.monotonic())],
            cwd=folder,
            env=environment(is_peer=side.is_peer),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=limit_s,
        )
    except OSError as error:
        raise MeasurementError(
            f"The side {side.name!r} cannot be started with {command[0]}: {error.strerror}. "
            "Give another Python with --peer-python PATH."
        ) from error
    except subprocess.TimeoutExpired as error:
        raise MeasurementError(
            f"The side {side.name!r} took longer than {limit_s:g} s and was stopped. Ask for less work."
        ) from error
    if done.returncode:
        raise MeasurementError(_failure(side, peer_python, done.returncode, done.stderr))
    return _read(side, done.stdout)


def environment(*, is_peer: bool) -> dict[str, str]:
    """Environment variables of a side: the caller's, but for those that change what Python loads.

    turngym's own sides find the modules that this process finds.
    """
    ours = ("PYTHON", "VIRTUAL_ENV", "CONDA")
    variables = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    variables["OMP_WAIT_POLICY"] = "PASSIVE"
    if not is_peer:
        variables["PYTHONPATH"] = os.pathsep.join(entry or os.getcwd() for entry in sys.path)
    return variables


def _read(side: Side, output: str) -> Measurement:
    lines = output.strip().splitlines()
    try:
        return Measurement.model_validate_json(lines[-1] if lines else "")
    except ValidationError as error:
        reason = explain(Measurement, error, source=f"The side {side.name!r} printed no measurement")
        raise MeasurementError(f"{reason} Its program is {side.program}.") from error


def _failure(side: Side, peer_python: str, code: int, said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    last = lines[-1][:_TOLD_CHARS] if lines else "it said nothing"
    mend = (
        f"Run by {peer_python}; --peer-python PATH names another Python that has the peer."
        if side.is_peer
        else "`turngym check` looks at the environment."
    )
    return f"The side {side.name!r} failed (exit code {code}): {last}\n{mend}"
