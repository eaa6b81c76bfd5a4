"""A worker's life: serves environments until it is told to leave, or the process that started it is gone."""

import contextlib
import faulthandler
import os
import pickle
import signal
import socket
import sys

from turngym.envs.pool.contract import CALLER_ERRORS, Call, Fault, Reply
from turngym.envs.pool.messages import Ask, FrameBuffer, Free, Know, Known, Leave, Raised, Ready, to_frame
from turngym.envs.pool.packing import import_ahead, unpack
from turngym.envs.pool.reference import EnvRef
from turngym.envs.pool.serving import EnvServer
from turngym.errors import ConfigError

_READ_BYTES = 1 << 16


def main() -> None:
    """The program; its arguments are the numbers of the connection and of the lifeline."""
    connection, lifeline = int(sys.argv[-2]), int(sys.argv[-1])
    _settle(connection, lifeline)
    with socket.socket(fileno=connection) as pool, contextlib.suppress(BrokenPipeError, ConnectionResetError):
        Worker(pool).serve()


def _settle(connection: int, lifeline: int) -> None:
    """Makes sure that nothing an environment does or starts reaches the pool, and that all of it ends with it."""
    for descriptor in (connection, lifeline):
        os.set_inheritable(descriptor, False)
    # What environments print goes where errors go: standard output is the caller's.
    os.dup2(2, 1)
    sys.stdout.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    faulthandler.enable()
    # Ctrl-C is the caller's to handle. A handler and not SIG_IGN, which programs started from here would inherit.
    signal.signal(signal.SIGINT, lambda number, frame: None)
    if sys.platform != "win32":
        import fcntl

        # When the pool's process ends, however it ends, the kernel closes the other end and sends a signal to this
        # process group: all of it ends, even in native code that holds the interpreter, and even when stopped.
        if sys.platform == "linux":
            fcntl.fcntl(lifeline, fcntl.F_SETSIG, signal.SIGKILL)
        else:  # It is SIGIO here, which the pool's process may ignore or block, and so would this one.
            signal.signal(signal.SIGIO, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGIO])
        fcntl.fcntl(lifeline, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(lifeline, fcntl.F_SETFL, os.O_ASYNC)


class Worker:
    """Answers the messages of one connection, in their order."""

    def __init__(self, pool: socket.socket) -> None:
        self._pool = pool
        self._server = EnvServer()
        self._envs: dict[int, EnvRef | ConfigError] = {}

    def serve(self) -> None:
        """Works until told to leave, or the connection ends."""
        self._send(Ready())
        buffer = FrameBuffer()
        while data := self._pool.recv(_READ_BYTES):
            buffer.feed(data)
            for pickled in buffer.messages():
                message = pickle.loads(pickled)
                if isinstance(message, Leave):
                    self._server.close()
                    return
                self._handle(message)

    def _handle(self, message: Know | Ask | Free) -> None:
        if isinstance(message, Ask):
            self._send(self._answer(message))
        elif isinstance(message, Free):
            self._server.release(message.episode)
        else:
            try:
                env = self._envs[message.number] = unpack(message.packed)
                import_ahead(env)
            except ConfigError as error:
                self._envs[message.number] = error
            self._send(Known(message.number))

    def _answer(self, ask: Ask) -> Reply | Raised:
        env = self._envs[ask.number]
        if isinstance(env, ConfigError):
            return Raised(ask.key, env)
        call = Call(ask.key, env, ask.task, ask.seed, ask.command, ask.wants, ask.options)
        try:
            return self._server.answer(call)
        except CALLER_ERRORS as error:
            return Raised(ask.key, _portable(error))

    def _send(self, message: Ready | Known | Reply | Raised) -> None:
        try:
            frame = to_frame(message)
        except pickle.PicklingError as error:
            if not isinstance(message, Reply):
                raise
            text = f"What the environment answered cannot leave its process: {error}"
            frame = to_frame(Reply(message.key, fault=Fault(infra=False, text=text)))
        self._pool.sendall(frame)


def _portable(error: Exception) -> Exception:
    """The error as another process can read it: itself, or of the nearest class of ours."""
    try:
        if type(pickle.loads(pickle.dumps(error))) is type(error):
            return error
    except Exception:  # noqa: BLE001 - an author's exception class may do anything
        pass
    return next(kind(str(error)) for kind in CALLER_ERRORS if isinstance(error, kind))
