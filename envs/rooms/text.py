"""What a vocabulary is: pools of names, and one or more wordings for each message."""

import random
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from turngym.envs.rooms.names import Pools

_WORD = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\{[a-z]+\}")


@dataclass(frozen=True, slots=True)
class Text:
    """All wordings of one vocabulary.

    Attributes:
        thing: how a name stands in a list.
        comma, last_comma: what joins a list.
        frames: sentences of the goals "brief" and "none".
        orders: words before the first, the middle and the last step of the goal "detailed"; no step begins with them.
        step_comma, full_stop: what joins and ends the steps; no step contains them.
        steps: wordings of commands inside instructions, by verb; each can be read back.
        messages: wordings of observations.
    """

    pools: Pools
    thing: str
    comma: str
    last_comma: str
    frames: Mapping[str, tuple[str, ...]]
    orders: tuple[tuple[str, str, str], ...]
    step_comma: str
    full_stop: str
    steps: Mapping[str, tuple[str, ...]]
    messages: Mapping[str, tuple[str, ...]]

    def __deepcopy__(self, memo: dict[int, object]) -> "Text":
        return self

    def words(self) -> Iterator[str]:
        """Every word in pools and wordings, some more than once."""
        for group in self.pools.groups():
            yield from group
        wordings = (*self.frames.values(), *self.steps.values(), *self.messages.values(), *self.orders)
        for choices in (*wordings, (self.thing, self.comma, self.last_comma, self.step_comma)):
            for wording in choices:
                yield from (word for word in _WORD.findall(wording) if word[0] != "{")

    def listed(self, names: list[str]) -> str:
        """Names of things as a list."""
        return self.join([self.thing.format(x=name) for name in names])

    def join(self, parts: list[str]) -> str:
        if len(parts) < 2:
            return "".join(parts)
        return f"{self.comma.join(parts[:-1])}{self.last_comma}{parts[-1]}"

    def draw_style(self, chance: random.Random) -> dict[str, str]:
        """One wording for each message, for a whole task."""
        return {
            name: wordings[int(chance.random() * len(wordings))] for name, wordings in self.messages.items()
        }

    def draw_steps(self, steps: list[tuple[str, dict[str, str]]], chance: random.Random) -> str:
        """Steps, each a name of `self.steps` and its arguments, as one sentence in order."""
        first, middle, last = chance.choice(self.orders)
        parts: list[str] = []
        for number, (name, arguments) in enumerate(steps):
            word = first if number == 0 else last if number == len(steps) - 1 else middle
            parts.append(f"{word} {self.draw_step(name, arguments, chance)}".strip())
        return _sentence(self.step_comma.join(parts) + self.full_stop, self)

    def draw_step(self, name: str, arguments: dict[str, str], chance: random.Random) -> str:
        return chance.choice(self.steps[name]).format(**arguments)

    def draw_frame(self, goal: str, step: str, chance: random.Random) -> str:
        return chance.choice(self.frames[goal]).format(goal=step)


def _sentence(text: str, vocabulary: Text) -> str:
    """With a capital at the start, where the vocabulary has capitals."""
    return text[0].upper() + text[1:] if vocabulary.full_stop == "." else text
