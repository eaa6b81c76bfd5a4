"""`tw-make tw-coin_collector`: a way through rooms to a coin."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from turngym.envs.textworld.families.base import Level, checked
from turngym.errors import ConfigError

_WRITTEN = re.compile(r"l([1-9][0-9]{0,2})")
_MAX_ROOMS = 100


@dataclass(frozen=True, slots=True)
class CoinLevel(Level):
    """Level of the coin collector: l1 to l100 a chain of so many rooms, l101 to l150 and l201 to l233 with dead ends."""

    family: ClassVar[str] = "coin"
    example: ClassVar[str] = "l5"
    form: ClassVar[str] = "l1 to l150 or l201 to l233, as in 'l5'"
    challenge: ClassVar[str] = "tw-coin_collector"

    number: int

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _WRITTEN.fullmatch(text)
        if match is None:
            return None
        level = cls(checked(1, int(match[1]), 300, f"level = {text!r}: the number"))
        if level.num_rooms > _MAX_ROOMS:
            raise ConfigError(
                f"level = {text!r} has {level.num_rooms} rooms, and TextWorld makes {_MAX_ROOMS} at most. "
                f"Choose {cls.form}."
            )
        return level

    @property
    def name(self) -> str:
        return f"l{self.number}"

    @property
    def quest_length(self) -> int:
        return (self.number - 1) % 100 + 1

    @property
    def num_rooms(self) -> int:
        """Rooms of the game, dead ends included."""
        return ((self.number - 1) // 100 + 1) * self.quest_length

    @property
    def max_turns(self) -> int:
        return 3 * self.quest_length

    @property
    def settings(self) -> Mapping[str, Any]:
        return {"level": self.number}
