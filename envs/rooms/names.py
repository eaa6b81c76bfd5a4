"""Names of rooms and things: drawn per task from pools of words."""

import random
from collections.abc import Sequence
from dataclasses import dataclass

from turngym.envs.rooms.world import World


@dataclass(frozen=True, slots=True)
class Pools:
    """Words for names, each a single lower-case word and in one pool only."""

    rooms: tuple[str, ...]
    colours: tuple[str, ...]
    things: tuple[str, ...]
    foods: tuple[str, ...]
    containers: tuple[str, ...]
    supporters: tuple[str, ...]

    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Words that may stand for each other."""
        return (self.rooms, self.colours, self.things, self.foods, self.containers, self.supporters)


@dataclass(frozen=True, slots=True)
class Names:
    """What a task calls its rooms and things; openables are the containers, then the doors."""

    rooms: tuple[str, ...]
    openables: tuple[str, ...]
    supporters: tuple[str, ...]
    items: tuple[str, ...]

    def __deepcopy__(self, memo: dict[int, object]) -> "Names":
        return self


def draw_names(world: World, pools: Pools, chance: random.Random) -> Names:
    """Names for a world, no two alike.

    A lock and its key share a colour that no other lock has: `red key` opens `red chest` or `red door`. So a
    careful reader knows which key to use. Things have a colour and a noun; what has no lock has a noun alone
    while there are nouns.
    """
    colours = chance.sample(pools.colours, len(pools.colours))
    num_containers = len(world.containers)
    locks = [o for o, key in enumerate(world.keys) if key >= 0 or o >= num_containers]
    colour_of = dict(zip(locks, colours, strict=False))
    nouns = chance.sample(pools.containers, len(pools.containers))
    openables: list[str] = []
    for openable in range(len(world.keys)):
        if openable >= num_containers:
            openables.append(f"{colour_of[openable]} door")
        elif openable in colour_of:
            openables.append(f"{colour_of[openable]} {nouns[openable % len(nouns)]}")
        else:
            openables.append(_noun(nouns, openables, colours, chance))
    supporters: list[str] = []
    shelves = chance.sample(pools.supporters, len(pools.supporters))
    for _ in world.supporters:
        supporters.append(_noun(shelves, supporters, colours, chance))
    return Names(
        rooms=tuple(chance.sample(pools.rooms, len(world.exits))),
        openables=tuple(openables),
        supporters=tuple(supporters),
        items=_item_names(world, pools, colour_of, chance),
    )


def _noun(nouns: Sequence[str], taken: Sequence[str], colours: Sequence[str], chance: random.Random) -> str:
    used = {name.split()[-1] for name in taken}
    for noun in nouns:
        if noun not in used:
            return noun
    names = [f"{colour} {noun}" for colour in reversed(colours) for noun in nouns]
    return next(name for name in names if name not in taken)


def _item_names(
    world: World, pools: Pools, colour_of: dict[int, str], chance: random.Random
) -> tuple[str, ...]:
    lock_of = {key: openable for openable, key in enumerate(world.keys) if key >= 0}
    names: list[str] = []
    for item, kind in enumerate(world.items):
        if kind == "key":
            names.append(f"{colour_of[lock_of[item]]} key")
            continue
        nouns = pools.foods if kind == "food" else pools.things
        while (name := f"{chance.choice(pools.colours)} {chance.choice(nouns)}") in names:
            pass
        names.append(name)
    return tuple(names)
