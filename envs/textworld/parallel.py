"""Many small jobs in worker processes, with a progress bar.

Workers are programs of their own and not multiprocessing's: that would run the caller's script again in each worker
("spawn"), or copy a process that may hold torch's threads ("fork"), and these jobs are started from inside
`env.reset` and `len`-like look-ups, where no caller expects either.
"""

import importlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from queue import SimpleQueue
from typing import IO

from rich.progress import track

from turngym.errors import InfraError, TaskError, TurngymError
from turngym.types import JsonValue

_PROGRAM = "from turngym.envs.textworld.parallel import serve; serve()"


def run_parallel(
    job: Callable[[str], JsonValue], items: Sequence[str], *, processes: int | None = None, label: str = ""
) -> list[JsonValue]:
    """Results of a job for each item, in the items' order.

    Args:
        job: a function of an importable module, whose result is a JSON value.
        items: what it is called with, one line each.
        processes: workers; None takes one for each core. One worker runs in this process.
        label: text of the progress bar; none is drawn for "".

    Raises:
        TaskError, InfraError: as the job raised them; InfraError also where a worker died.
    """
    num_workers = min(processes or os.cpu_count() or 1, len(items))
    if num_workers <= 1:
        return [job(item) for item in track(items, label, disable=not label)]
    idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()

    def ask(item: str) -> JsonValue:
        worker = idle.get()
        try:
            return _ask(worker, item)
        finally:
            idle.put(worker)

    with _workers(job, num_workers) as workers, ThreadPoolExecutor(num_workers) as threads:
        for worker in workers:
            idle.put(worker)
        return list(track(threads.map(ask, items), label, total=len(items), disable=not label))


def serve() -> None:
    """A worker's life: the job's name in the first line, then an item a line; replies as JSON lines."""
    # What the libraries print must not mix with the replies.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as replies:
        os.dup2(2, 1)
        module, _, name = sys.stdin.readline().strip().partition(":")
        job = getattr(importlib.import_module(module), name)
        for line in sys.stdin:
            _reply(job, line.rstrip("\n"), replies)


def _reply(job: Callable[[str], JsonValue], item: str, replies: IO[str]) -> None:
    try:
        reply: dict[str, JsonValue] = {"result": job(item)}
    except TurngymError as error:
        reply = {"error": str(error), "task": isinstance(error, TaskError)}
    replies.write(json.dumps(reply) + "\n")
    replies.flush()


def _ask(worker: "subprocess.Popen[str]", item: str) -> JsonValue:
    if worker.stdin is None or worker.stdout is None:
        raise AssertionError("workers are started with pipes")
    try:
        worker.stdin.write(item + "\n")
        worker.stdin.flush()
        line = worker.stdout.readline()
    except OSError:
        line = ""
    if not line:
        raise InfraError(f"A worker process died at {item!r} (exit code {worker.poll()}). Is memory short?")
    reply = json.loads(line)
    if "error" in reply:
        raise (TaskError if reply["task"] else InfraError)(reply["error"])
    result: JsonValue = reply["result"]
    return result


@contextmanager
def _workers(job: Callable[[str], JsonValue], num: int) -> Iterator[list["subprocess.Popen[str]"]]:
    path = os.pathsep.join(entry for entry in sys.path if entry)
    workers = [
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        for _ in range(num)
    ]
    try:
        for worker in workers:
            if worker.stdin is not None:
                worker.stdin.write(f"{job.__module__}:{job.__name__}\n")
        yield workers
    finally:
        for worker in workers:
            worker.kill()
            worker.communicate()
