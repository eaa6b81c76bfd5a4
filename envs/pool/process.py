"""One worker process, seen from the pool."""

import contextlib
import json
import math
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from pathlib import Path

from turngym.envs.pool.contract import Fault, Key, Reply
from turngym.envs.pool.messages import Answer, Ask, FrameBuffer, Free, Know, Leave, Raised, to_frame
from turngym.envs.pool.offspring import end_all, new_mark

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
# A worker that is gone must not end the caller, even where that has given SIGPIPE its old meaning.
_SEND_FLAGS = getattr(socket, "MSG_NOSIGNAL", 0)


class WorkerProcess:
    """Starts at once and takes messages from the first moment; answers come in the order of the messages.

    Attributes:
        name: number, for the log.
        ready: whether it has started.
        gone: whether its end of the connection is closed.
        sent: what it has to answer, oldest first.
        since: when it began what it is at now, by the clock of `time.monotonic`.
        episodes: those that it serves now; `served` counts all that it ever began.
    """

    def __init__(self, name: int) -> None:
        self.name = name
        self.ready = self.gone = self._killed = False
        self.sent: deque[Ask | Know] = deque()
        self.since = time.monotonic()
        self.episodes: set[int] = set()
        self.served = 0
        self._outbox = bytearray()
        self._inbox = FrameBuffer()
        self._mark = new_mark()
        path = json.dumps([os.fspath(entry) or os.getcwd() for entry in sys.path])
        with contextlib.ExitStack() as ours, contextlib.ExitStack() as theirs:
            self._socket, connection = socket.socketpair()
            ours.enter_context(self._socket)
            theirs.enter_context(connection)
            self._socket.setblocking(False)
            read, write = os.pipe()
            theirs.callback(os.close, read)
            self._lifeline = ours.enter_context(os.fdopen(write, "wb", buffering=0))
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, path, str(connection.fileno()), str(read)],
                stdin=subprocess.DEVNULL,
                pass_fds=(connection.fileno(), read),
                start_new_session=True,
                env={**os.environ, **self._mark},
            )
            ours.pop_all()

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def has_begun(self) -> bool:
        """Whether it has started, and imported what it was told of."""
        return self.ready and not any(isinstance(message, Know) for message in self.sent)

    @property
    def running(self) -> Ask | None:
        """The call that it is at; None where it is at none."""
        first = self.sent[0] if self.ready and self.sent else None
        return first if isinstance(first, Ask) else None

    @property
    def wants_to_write(self) -> bool:
        """Whether messages wait for the worker to read."""
        return bool(self._outbox)

    def fileno(self) -> int:
        """The connection's descriptor, for selectors."""
        return self._socket.fileno()

    def send(self, message: Know | Ask | Free | Leave) -> None:
        """Takes a message, and sends as much as goes without waiting.

        Raises:
            PicklingError: a call holds what cannot leave this process; nothing was sent.
        """
        frame = to_frame(message)
        if isinstance(message, Know | Ask):
            if self.ready and not self.sent:
                self.since = time.monotonic()
            self.sent.append(message)
        self._outbox += frame
        self.flush()

    def flush(self) -> None:
        """Sends what waits, as far as the worker reads."""
        while self._outbox and not self.gone:
            try:
                del self._outbox[: self._socket.send(self._outbox, _SEND_FLAGS)]
            except BlockingIOError:
                return
            except (BrokenPipeError, ConnectionResetError):
                self._outbox.clear()  # That the worker is gone is found by reading.

    def receive(self) -> list[Answer]:
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
        for pickled in self._inbox.messages():
            self.since = time.monotonic()
            if not self.ready:
                self.ready = True  # The first is always `Ready`, and each later one answers the oldest sent.
                continue
            answered = self.sent.popleft()
            if isinstance(answered, Ask):
                answers.append(Answer(answered, _said(pickled, answered.key)))
        return answers

    def limit_s(self, deadline_s: float) -> float:
        """How long it may take for what it is at: a call, or its start and the imports of environments."""
        return deadline_s if self.running is not None else START_LIMIT_S

    def remaining_s(self, deadline_s: float, now: float) -> float:
        """Time left for what it is at; without end where it is at nothing."""
        if self.ready and not self.sent:
            return math.inf
        return self.since + self.limit_s(deadline_s) - now

    def has_ended(self) -> bool:
        """Whether the process is over; it stays unreaped, so that its number cannot name another."""
        if self._process.returncode is not None:
            return True
        if not hasattr(os, "waitid"):  # On macOS it came with Python 3.13; reaping it is the next best.
            return self._process.poll() is not None
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
        if not self._killed:
            self._killed = True
            if self.gone:
                self._notice_end()
            end_all(self.pid, self._mark)
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


def _said(pickled: bytes, key: Key) -> Reply | Raised:
    """An answer as it was sent; a fault where this process cannot read what the environment put into it."""
    try:
        said = pickle.loads(pickled)
    except Exception as error:  # noqa: BLE001 - an author's class may do anything
        text = f"What the environment answered cannot be read: {type(error).__name__}: {error}"
        return Reply(key, fault=Fault(infra=False, text=text))
    if not isinstance(said, Reply | Raised):
        raise AssertionError("a call is answered by a Reply or by Raised")
    return said


def _how(code: int | None) -> str:
    if code is None:
        return "cannot be ended"
    if code >= 0:
        return f"exit code {code}"
    return signal.Signals(-code).name if -code in set(signal.Signals) else f"signal {-code}"
