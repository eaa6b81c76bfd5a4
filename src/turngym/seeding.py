"""Streams of chance, each derived from a root seed by a path of names (DEFINITIONS section 9).

No integers are ever added to a seed: neighbours would share streams. The path enters as the sha256 of
its canonical JSON, so [7, 0] and [7] differ, and the same path gives the same stream on every machine.
"""

import hashlib
import json

import numpy as np

PathPart = str | int


def digest(*path: PathPart) -> bytes:
    """32 bytes that stand for the path; equal paths give equal bytes in every process."""
    return hashlib.sha256(json.dumps(path, separators=(",", ":"), ensure_ascii=True).encode()).digest()


def sequence(*path: PathPart) -> np.random.SeedSequence:
    """SeedSequence of the path, for what wants to spawn further streams."""
    return np.random.SeedSequence(int.from_bytes(digest(*path), "big"))


def generator(*path: PathPart) -> np.random.Generator:
    """Generator of the path: `generator(run_seed, "tasks", update)`."""
    return np.random.default_rng(sequence(*path))


def integer(*path: PathPart) -> int:
    """Non-negative 63-bit integer of the path, for what takes a plain seed."""
    return int.from_bytes(digest(*path)[:8], "big") >> 1


def turn_uniforms(seed: int, episode: int, attempt: int, turn: int, count: int) -> np.ndarray:
    """(count,) float64 in [0, 1): the draws of one turn, token by token.

    The draw of token k is the first word of Philox block k under the counter (k, turn) and a key from
    (seed, episode, attempt), so it depends on nothing that other episodes do and can be drawn again.
    """
    key = np.frombuffer(digest(seed, "sampler", episode, attempt)[:16], dtype=np.uint64)
    blocks = np.random.Philox(counter=[0, turn, 0, 0], key=key).random_raw(4 * count)
    words = np.asarray(blocks, dtype=np.uint64)[0::4]
    return (words >> np.uint64(11)).astype(np.float64) * 2.0**-53
