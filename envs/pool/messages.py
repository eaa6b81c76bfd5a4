"""What a pool and its worker processes send each other: pickled records, each behind its length."""

import pickle
import struct
from typing import Any, NamedTuple

from turngym.envs.pool.contract import Key, Reply, Wants

_LENGTH = struct.Struct("!Q")


class Know(NamedTuple):
    """To a worker: calls will name this environment by the number. Answered by `Known`."""

    number: int
    packed: bytes


class Ask(NamedTuple):
    """To a worker: a call. Answered by a `Reply`, or by `Raised`."""

    key: Key
    number: int
    task: str
    seed: int | None
    command: str
    wants: Wants
    options: Any


class Free(NamedTuple):
    """To a worker: the episode is over."""

    episode: int


class Leave(NamedTuple):
    """To a worker: close all environments and end."""


class Ready(NamedTuple):
    """From a worker: it has started."""


class Known(NamedTuple):
    """From a worker: the environment's module is imported, or will fail when the environment is made."""

    number: int


class Raised(NamedTuple):
    """From a worker: an error that the caller can mend."""

    key: Key
    error: Exception


class Answer(NamedTuple):
    """A call of the pool's, and what its worker said to it."""

    ask: Ask
    said: Reply | Raised


def to_frame(message: object) -> bytes:
    """A message as bytes, its length first.

    Raises:
        PicklingError: something in it cannot leave its process.
    """
    try:
        data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    except Exception as error:  # An author's or a caller's class may do anything.
        raise pickle.PicklingError(f"{type(error).__name__}: {error}") from error
    return _LENGTH.pack(len(data)) + data


class FrameBuffer:
    """Collects bytes as they arrive and hands out whole messages, still pickled."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Takes bytes, of any part of any number of messages."""
        self._bytes += data

    def messages(self) -> list[bytes]:
        """The messages that are whole by now, each once."""
        found, start = list[bytes](), 0
        while len(self._bytes) - start >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._bytes, start)
            end = start + _LENGTH.size + length
            if len(self._bytes) < end:
                break
            found.append(bytes(memoryview(self._bytes)[start + _LENGTH.size : end]))
            start = end
        del self._bytes[:start]
        return found
