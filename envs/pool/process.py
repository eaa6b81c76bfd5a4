"""One worker process, seen from the pool."""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable
from pathlib import Path

from turngym.envs.pool.contract import Key, Reply
from turngym.envs.pool.messages import Ask, FrameBuffer, Free, Know, Known, Leave, Raised, Ready, to_frame

# Programs of their own and not multiprocessing's: that would run the caller's script again in each worker ("spawn"),
# or copy a process that may hold torch's threads ("fork"). -P keeps the folder of the moment out of the first imports.
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from turngym.envs.pool.worker import main; main()"
)
START_LIMIT_S = 300.0
"""How long a worker may take to start, or to import the modules of an environment."""

_READ_BYTES = 1 << 18
_REAP_S = 5.0
_NOTICE_S = 1.0


class WorkerProcess:
    """Starts at once and takes messages from the first moment; answers come in the order of the messages.

    Attributes:
        name: number, for the log.
        ready: whether it has started.
        gone: whether its end of the connection is closed.
        sent: what it has to answer, oldest first: the key of a call, or None for another message.
        since: when it began what it is at now, by the clock of `time.monotonic`.
        known: numbers of the environments that it was told of.
        episodes: those that it serves now; `served` counts all that it ever began.
    """

    def __init__(self, name: int) -> None:
        self.name = name
        self.ready = self.gone = False
        self.sent: deque[Key | None] = deque()
        self.since = time.monotonic()
        self.known: set[int] = set()
        self.episodes: set[int] = set()
        self.served = 0
        self._outbox = bytearray()
        self._inbox = FrameBuffer()
        self._socket, theirs = socket.socketpair()
        self._socket.setblocking(False)
        lifeline, ours = os.pipe()
        self._lifeline = os.fdopen(ours, "wb", buffering=0)
        path = json.dumps([os.fspath(entry) or os.getcwd() for entry in sys.path])
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, path, str(theirs.fileno()), str(lifeline)],
                stdin=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), lifeline),
                start_new_session=True,
            )
        finally:
            theirs.close()
            os.close(lifeline)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def wants_to_write(self) -> bool:
        """Whether messages wait for the worker to read."""
        return bool(self._outbox)

    def fileno(self) -> int:
        """The connection's descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, message: Know | Ask | Free | Leave) -> None:
        """Takes a message, and sends as much as goes without waiting."""
        if isinstance(message, Know | Ask):
            if self.ready and not self.sent:
                self.since = time.monotonic()
            self.sent.append(message.key if isinstance(message, Ask) else None)
        self._outbox += to_frame(message)
        self.flush()

    def flush(self) -> None:
        """Sends what waits, as far as the worker reads."""
        while self._outbox and not self.gone:
            try:
                del self._outbox[: self._socket.send(self._outbox)]
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._outbox.clear()  # That the worker is gone is found by reading.

    def receive(self) -> list[Reply | Raised]:
        """Answers to calls that have arrived; sets `gone` at the end of the connection."""
        while not self.gone:
            try:
                data = self._socket.recv(_READ_BYTES)
            except BlockingIOError:
                break
            except ConnectionResetError:
                data = b""
            self._inbox.feed(data)
            self.gone = not data
        answers = []
        for message in self._inbox.messages():
            self.since = time.monotonic()
            if isinstance(message, Ready):
                self.ready = True
                continue
            self.sent.popleft()
            if not isinstance(message, Known):
                answers.append(message)
        return answers

    def limit_s(self, deadline_s: float) -> float:
        """How long it may take for what it is at: a call, or its start and the imports of environments."""
        calling = self.ready and self.sent and self.sent[0] is not None
        return deadline_s if calling else START_LIMIT_S

    def remaining_s(self, deadline_s: float, now: float) -> float:
        """Time left for what it is at; without end where it is at nothing."""
        if self.ready and not self.sent:
            return math.inf
        return self.since + self.limit_s(deadline_s) - now

    def has_ended(self) -> bool:
        """Whether the process is over; it stays unreaped, so that its number cannot name another."""
        if self._process.returncode is not None:
            return True
        try:
            return os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
        except ChildProcessError:  # Reaped by someone who waits for any child.
            return True

    def memory_mb(self) -> float:
        """Resident memory; 0 where the system does not tell."""
        try:
            pages = int(Path(f"/proc/{self.pid}/statm").read_text(encoding="ascii").split()[1])
        except (OSError, IndexError):
            return 0.0
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def kill(self) -> str:
        """Kills the process, unless it is over, and all that it started; says how it ended."""
        if self._process.returncode is None:
            if self.gone:
                self._notice_end()
            started = _descendants(self.pid)
            _signal(os.killpg, self.pid)
            for pid in started:  # Those that have left the group.
                _signal(os.kill, pid)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_REAP_S)
        return _how(self._process.returncode)

    def close(self) -> None:
        """Closes the connection of a process that is over."""
        self.gone = True
        self._socket.close()
        self._lifeline.close()

    def _notice_end(self) -> None:
        """Lets a process that is ending end, so that it is known how."""
        until = time.monotonic() + _NOTICE_S
        while not self.has_ended() and time.monotonic() < until:
            time.sleep(0.005)


def _descendants(pid: int) -> list[int]:
    """Processes that a process has started, and those that these have started; [] where `/proc` is absent."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            # The name stands in brackets and may hold anything.
            parent = int(entry.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
            children.setdefault(parent, []).append(int(entry.parent.name))
    found = list(children.get(pid, ()))
    for child in found:
        found.extend(children.get(child, ()))
    return found


def _signal(send: Callable[[int, int], None], number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        send(number, signal.SIGKILL)


def _how(code: int | None) -> str:
    if code is None:
        return "cannot be ended"
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
