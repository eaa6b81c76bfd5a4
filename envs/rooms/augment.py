"""The same demonstration under other names, or with its goal in other words."""

import random
import re
from collections.abc import Sequence

import numpy as np

from turngym.envs.rooms.names import Pools
from turngym.envs.rooms.text import Text
from turngym.types import Demonstration

_WORD = re.compile(r"[A-Za-z]+")
_PLACEHOLDER = re.compile(r"\\\{([a-z]+)\\\}")
# What the base, or a format, adds to an environment's own instructions.
_TAIL = re.compile(r" You have \d+ turns?\.", re.DOTALL)

Step = tuple[str, dict[str, str]]


def rename(demo: Demonstration, pools: Pools, rng: np.random.Generator) -> Demonstration:
    """Every name replaced, word by word and everywhere alike, by another of its pool; no two become one."""
    new: dict[str, str] = {}
    for group in pools.groups():
        order = rng.permutation(len(group))
        new.update({word: group[int(at)] for word, at in zip(group, order, strict=True)})

    def renamed(text: str) -> str:
        return _WORD.sub(lambda match: _like(match.group(), new), text)

    return Demonstration(
        task=demo.task,
        instructions=renamed(demo.instructions),
        observations=tuple(map(renamed, demo.observations)),
        commands=tuple(map(renamed, demo.commands)),
        authors=demo.authors,
    )


def reword(demo: Demonstration, text: Text, rng: np.random.Generator) -> Demonstration:
    """The goal in other words that tell the same steps and names; unchanged where it tells none or is not ours."""
    tail = _TAIL.search(demo.instructions)
    end = tail.start() if tail else len(demo.instructions)
    chance = random.Random(int(rng.integers(2**63)))
    words = _brief(demo.instructions[:end], text, chance) or _detailed(demo.instructions[:end], text, chance)
    if not words:
        return demo
    return Demonstration(
        task=demo.task,
        instructions=words + demo.instructions[end:],
        observations=demo.observations,
        commands=demo.commands,
        authors=demo.authors,
    )


def _brief(told: str, text: Text, chance: random.Random) -> str:
    for frame in text.frames["brief"]:
        before, _, after = frame.partition("{goal}")
        if told.startswith(before) and told.endswith(after):
            goal = _read_step(told[len(before) : len(told) - len(after)], text)
            return text.draw_frame("brief", text.draw_step(*goal, chance), chance) if goal else ""
    return ""


def _detailed(told: str, text: Text, chance: random.Random) -> str:
    if not told.endswith(text.full_stop):
        return ""
    told = told[0].lower() + told[1 : len(told) - len(text.full_stop)]
    read = [_read_step(_bare(part, text.orders), text) for part in told.split(text.step_comma)]
    steps = [step for step in read if step]
    return text.draw_steps(steps, chance) if len(steps) == len(read) else ""


def _bare(part: str, orders: Sequence[tuple[str, str, str]]) -> str:
    for word in sorted(
        {word for order in orders for word in order if word}, key=lambda word: (-len(word), word)
    ):
        if part.startswith(f"{word} "):
            return part[len(word) + 1 :]
    return part


def _read_step(words: str, text: Text) -> Step | None:
    """The step that some wording says, with names of one or two words."""
    for name, wordings in text.steps.items():
        for wording in wordings:
            pattern = _PLACEHOLDER.sub(r"(?P<\1>[a-z]+(?: [a-z]+)?)", re.escape(wording))
            if (match := re.fullmatch(pattern, words)) and _are_names(match.groupdict(), text):
                return name, match.groupdict()
    return None


def _are_names(arguments: dict[str, str], text: Text) -> bool:
    known = {word for group in text.pools.groups() for word in group}
    known |= {"door", "key", "north", "south", "east", "west"}
    return all(word in known for name in arguments.values() for word in name.split())


def _like(word: str, new: dict[str, str]) -> str:
    other = new.get(word.lower())
    if other is None:
        return word
    return other.capitalize() if word[0].isupper() else other
