"""Goals: facts that must hold together."""

from typing import NamedTuple

from turngym.envs.rooms.world import CLOSED, LOCKED, OPEN, State


class Fact(NamedTuple):
    """One condition on a state.

    kinds: in_room(room), at(item, place), read(), and open / closed / unlocked / locked(openable), where a locked
    thing is also closed and an open one also unlocked.
    """

    kind: str
    thing: int = -1
    place: int = -1


Goal = tuple[Fact, ...]


def holds(fact: Fact, state: State) -> bool:
    """Whether a fact is true in a state."""
    if fact.kind == "in_room":
        return state.room == fact.thing
    if fact.kind == "at":
        return state.places[fact.thing] == fact.place
    if fact.kind == "read":
        return state.read
    latch = state.latches[fact.thing]
    if fact.kind == "open":
        return latch == OPEN
    if fact.kind == "closed":
        return latch >= CLOSED
    if fact.kind == "unlocked":
        return latch <= CLOSED
    return latch == LOCKED


def is_solved(goal: Goal, state: State) -> bool:
    """Whether every fact of a goal is true in a state."""
    return all(holds(fact, state) for fact in goal)
