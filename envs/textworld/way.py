"""The way to a thing that must be examined, over TextWorld's facts."""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

from turngym.envs.textworld.language import DIRECTIONS


def way_to(facts: Iterable[Any], names: Mapping[str, str], thing: str) -> list[str] | None:
    """Commands after which a thing can be examined: doors opened, rooms walked, its container opened.

    Args:
        facts: TextWorld's facts of the present state.
        names: name of each entity by TextWorld's id.
        thing: name of the thing.

    Returns:
        The commands in lower case, with the fewest rooms; None where a lock or the thing's absence bars the way.
    """
    known = [(fact.name, *(argument.name for argument in fact.arguments)) for fact in facts]
    holders = {fact[1]: fact[2] for fact in known if fact[0] in ("at", "in", "on")}
    shut = {fact[1] for fact in known if fact[0] == "closed"}
    locked = {fact[1] for fact in known if fact[0] == "locked"}
    here = holders["P"]
    holder = next((holders.get(number) for number, name in names.items() if name == thing), None)
    if holder == "I":
        return []
    if holder is None or holder in locked:
        return None
    room = holders.get(holder, holder)
    walk = _walk(known, names, shut, locked, here, room)
    if walk is None:
        return None
    return walk + ([f"open {names[holder]}"] if holder in shut else [])


def _walk(
    known: list[tuple[str, ...]],
    names: Mapping[str, str],
    shut: set[str],
    locked: set[str],
    here: str,
    there: str,
) -> list[str] | None:
    doors = {(fact[1], fact[3]): fact[2] for fact in known if fact[0] == "link"}
    # north_of(a, b): a lies north of b.
    exits = [(fact[2], fact[0].removesuffix("_of"), fact[1]) for fact in known if fact[0].endswith("_of")]
    found: dict[str, list[str]] = {here: []}
    open_rooms = deque([here])
    while open_rooms:
        room = open_rooms.popleft()
        for start, direction, end in sorted(exits):
            door = doors.get((room, end))
            if start != room or end in found or direction not in DIRECTIONS or door in locked:
                continue
            opening = [f"open {names[door]}"] if door is not None and door in shut else []
            found[end] = [*found[room], *opening, f"go {direction}"]
            open_rooms.append(end)
    return found.get(there)
