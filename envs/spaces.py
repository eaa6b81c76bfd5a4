"""The space of all strings."""

from typing import Any

import numpy as np
from gymnasium import spaces

_SAMPLE_ALPHABET = "abcdefghijklmnopqrstuvwxyz ABC.,;:'\"\n\t<>[]{}|/\\0123456789éß漢🙂"


class Unicode(spaces.Space[str]):
    """Every str, the empty one and blanks included; membership is a type check.

    Gymnasium's `Text` refuses blanks and, in shared-memory vectors, replaces strings without a word.

    Example:
        >>> "go east" in Unicode(), "" in Unicode(), 3 in Unicode()
        (True, True, False)
    """

    def __init__(self, seed: int | np.random.Generator | None = None) -> None:
        super().__init__(shape=None, dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def contains(self, x: Any) -> bool:
        return isinstance(x, str)

    def sample(self, mask: Any = None, probability: Any = None) -> str:
        """A short string of odd characters, for fuzzing; masks do not apply."""
        if mask is not None or probability is not None:
            raise ValueError("Unicode takes no mask and no probability. Call sample() without them.")
        letters = self.np_random.integers(len(_SAMPLE_ALPHABET), size=int(self.np_random.integers(24)))
        return "".join(_SAMPLE_ALPHABET[i] for i in letters)

    def __repr__(self) -> str:
        return "Unicode()"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Unicode)

    def __hash__(self) -> int:
        return id(type(self))
