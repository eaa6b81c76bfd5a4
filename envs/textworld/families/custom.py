"""`tw-make custom`: rooms, objects, and a quest of so many actions."""

import re
from dataclasses import dataclass
from typing import ClassVar, Self

from turngym.envs.textworld.families.base import Level

_WRITTEN = re.compile(r"w([1-9][0-9]*)-o([1-9][0-9]*)-q([1-9][0-9]*)(-last)?")


@dataclass(frozen=True, slots=True)
class CustomLevel(Level):
    """Size of a game of `tw-make custom`: rooms, at least this many objects, actions of the quest.

    Attributes:
        length: actions of the quest.
        last: the objective tells the quest's last action only (`--only-last-action`).
    """

    family: ClassVar[str] = "custom"
    example: ClassVar[str] = "w2-o3-q4"
    form: ClassVar[str] = "rooms, objects and quest length as in 'w2-o3-q4' or 'w2-o3-q4-last'"
    challenge: ClassVar[str] = ""
    filtered: ClassVar[bool] = True

    rooms: int
    objects: int
    length: int
    last: bool = False

    @classmethod
    def parse(cls, text: str) -> Self | None:
        match = _WRITTEN.fullmatch(text)
        if match is None:
            return None
        rooms, objects, length = (int(number) for number in match.groups()[:3])
        return cls(rooms, objects, length, last=match[4] is not None)

    @property
    def name(self) -> str:
        return f"w{self.rooms}-o{self.objects}-q{self.length}{'-last' if self.last else ''}"

    @property
    def quest_length(self) -> int:
        return self.length

    @property
    def max_turns(self) -> int:
        return 3 * self.length
