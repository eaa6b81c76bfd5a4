"""`tw-make tw-treasure_hunter`: take the right one of two objects in a maze."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from turngym.envs.textworld.families.base import Level, checked

_WRITTEN = re.compile(r"l([1-9][0-9]{0,2})")
# As the challenge rounds them: numpy's linspace and round, half to even.
_LENGTHS = (
    *(1, 1, 2, 2, 3, 3, 4, 4, 5, 5),
    *(2, 3, 4, 5, 6, 6, 7, 8, 9, 10),
    *(3, 5, 7, 9, 11, 12, 14, 16, 18, 20),
)


@dataclass(frozen=True, slots=True)
class TreasureLevel(Level):
    """Level of the treasure hunter: l1 to l10 open rooms, l11 to l20 with doors, l21 to l30 with locks.

    Taking the other object loses. About one seed in three gives no game at l10.
    """

    family: ClassVar[str] = "treasure"
    example: ClassVar[str] = "l10"
    form: ClassVar[str] = "l1 to l30, as in 'l10'"
    challenge: ClassVar[str] = "tw-treasure_hunter"
    filtered: ClassVar[bool] = True
    sparse_seeds: ClassVar[bool] = True

    number: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _WRITTEN.fullmatch(text)
        return None if match is None else cls(checked(1, int(match[1]), 30, f"level = {text!r}: the number"))

    @property
    def name(self) -> str:
        return f"l{self.number}"

    @property
    def quest_length(self) -> int:
        return _LENGTHS[self.number - 1]

    @property
    def max_turns(self) -> int:
        return 3 * self.quest_length

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"level": self.number}
