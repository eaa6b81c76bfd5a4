"""Many small jobs in worker processes, with a progress bar.

Workers are programs of their own and not multiprocessing's: that would run the caller's script again in each worker
("spawn"), or copy a process that may hold torch's threads ("fork"), and these jobs are started from inside
`env.reset` and `len`-like look-ups, where no caller expects either.

Ctrl-C reaches this process alone, which then stops its workers: each tidies up what it has begun.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from queue import SimpleQueue
from typing import IO

from rich.console import Console
from rich.progress import track

from turngym.errors import InfraError, TaskError, TurngymError
from turngym.types import JsonValue

_PROGRAM = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    from turngym.envs.textworld.parallel import serve
    serve()
except KeyboardInterrupt:
    pass
"""
_STOP_S = 5.0
"""Time that a worker has to tidy up."""


def run_parallel(
    job: Callable[[str], JsonValue], items: Sequence[str], *, processes: int | None = None, label: str = ""
) -> list[JsonValue]:
    """Results of a job for each item, in the items' order.

    Args:
        job: a function of an importable module, whose result is a JSON value.
        items: what it is called with, one line each.
        processes: workers; None takes one for each core. One worker runs in this process.
        label: text of the progress bar, on stderr; none is drawn for "".

    Raises:
        TaskError, InfraError: as the job raised them; InfraError also where a worker died or none could be started.
    """
    num_workers = min(processes or os.cpu_count() or 1, len(items))
    console = Console(stderr=True)
    if num_workers <= 1:
        return [job(item) for item in track(items, label, console=console, disable=not label)]
    idle: SimpleQueue[subprocess.Popen[str]] = SimpleQueue()

    def ask(item: str) -> JsonValue:
        worker = idle.get()
        try:
            return _ask(worker, item)
        finally:
            idle.put(worker)

    # The workers stop first, so that no thread waits for one.
    with ThreadPoolExecutor(num_workers) as threads, _workers(job, num_workers) as workers:
        for worker in workers:
            idle.put(worker)
        replies = threads.map(ask, items)
        return list(track(replies, label, total=len(items), console=console, disable=not label))


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
    except (OSError, ValueError):
        line = ""  # It is dead, or its pipes are closed already.
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
    workers: list[subprocess.Popen[str]] = []
    try:
        try:
            for _ in range(num):
                workers.append(_start(path))
        except OSError as error:
            raise InfraError(f"No worker process could be started: {error}. Is memory short?") from error
        for worker in workers:
            if worker.stdin is not None:
                worker.stdin.write(f"{job.__module__}:{job.__name__}\n")
        yield workers
    finally:
        _stop(workers)


def _start(path: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", _PROGRAM],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
        start_new_session=True,
    )


def _stop(workers: Sequence["subprocess.Popen[str]"]) -> None:
    for worker in workers:
        worker.send_signal(signal.SIGINT)
    for worker in workers:
        try:
            worker.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
        for pipe in (worker.stdin, worker.stdout):
            if pipe is not None:
                with suppress(OSError):
                    pipe.close()
