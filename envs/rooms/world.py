"""The rules of a house: what stands where, which actions are possible, what they change.

A `World` never changes; a `State` is what an action replaces. Everything is a small number here;
`names.py` gives the words.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, NamedTuple

DIRECTIONS = ("north", "south", "east", "west")
OPPOSITE = (1, 0, 3, 2)

OPEN, CLOSED, LOCKED = 0, 1, 2
LATCHES = ("open", "closed", "locked")

# Places of an item: the floor of room r is r, container c is FIRST_CONTAINER + c, supporter s is
# FIRST_SUPPORTER + s.
CARRIED, GONE = -1, -2
FIRST_CONTAINER = 16
FIRST_SUPPORTER = 64

Kind = Literal["key", "food", "thing"]


class Exit(NamedTuple):
    """A way out of a room; `door` is an openable, or -1 where the way is free."""

    direction: int
    room: int
    door: int


@dataclass(frozen=True, slots=True)
class World:
    """What no action changes.

    Attributes:
        exits: of each room.
        containers, supporters: the room of each.
        items: the kind of each.
        keys: per openable the item that locks and unlocks it, or -1. Openables are the containers, then the doors.
        doors: the two rooms of each door.
        note: room of the note that tells the goal, or -1.
    """

    exits: tuple[tuple[Exit, ...], ...]
    containers: tuple[int, ...]
    supporters: tuple[int, ...]
    items: tuple[Kind, ...]
    keys: tuple[int, ...]
    doors: tuple[tuple[int, int], ...]
    note: int = -1

    def room_of(self, place: int) -> int:
        """The room that a floor, container or supporter is in."""
        if place >= FIRST_SUPPORTER:
            return self.supporters[place - FIRST_SUPPORTER]
        if place >= FIRST_CONTAINER:
            return self.containers[place - FIRST_CONTAINER]
        return place

    def rooms_of(self, openable: int) -> tuple[int, ...]:
        """The rooms from which an openable can be handled."""
        if openable < len(self.containers):
            return (self.containers[openable],)
        return self.doors[openable - len(self.containers)]

    def __deepcopy__(self, memo: dict[int, object]) -> "World":
        return self


class State(NamedTuple):
    """What actions change: the player's room, each item's place, each openable's latch, the note read or not."""

    room: int
    places: tuple[int, ...]
    latches: tuple[int, ...]
    read: bool = False


class Action(NamedTuple):
    """One command, understood.

    thing and target by verb: go(direction), take(item, holder or -1), drop(item), eat(item), open / close(openable),
    unlock / lock(openable, key), put(item, supporter's place), insert(item, container's place),
    examine(number, index into EXAMINED).
    """

    verb: str
    thing: int = -1
    target: int = -1


EXAMINED = ("item", "openable", "supporter", "room", "note")
LOOK, INVENTORY = Action("look"), Action("inventory")


class Obstacle(NamedTuple):
    """Why an action is impossible: a message's name in `wording.py`, and what it is about."""

    reason: str
    kind: str = ""
    number: int = -1


_CANNOT = Obstacle("cannot")
_UNSEEN = Obstacle("unseen")


def is_visible(world: World, state: State, place: int) -> bool:
    """Whether what lies at a place can be seen and touched; not so what is carried."""
    if place < 0 or world.room_of(place) != state.room:
        return False
    return not FIRST_CONTAINER <= place < FIRST_SUPPORTER or state.latches[place - FIRST_CONTAINER] == OPEN


def obstacle(world: World, state: State, action: Action) -> Obstacle | None:
    """What stands in the way of an action; None where it is possible."""
    verb, thing, target = action
    if verb in ("look", "inventory"):
        return None
    if verb == "go":
        return _obstacle_to_go(world, state, thing)
    if verb == "examine":
        return None if _is_present(world, state, EXAMINED[target], thing) else _UNSEEN
    if verb in ("open", "close", "unlock", "lock"):
        return _obstacle_to_turn(world, state, action)
    place = state.places[thing]
    if verb == "take":
        if place == CARRIED:
            return Obstacle("carried", "item", thing)
        if target >= 0 and target != place and world.room_of(target) == state.room:
            return Obstacle("elsewhere", "item", thing)
        return None if is_visible(world, state, place) else _UNSEEN
    if place != CARRIED:
        return Obstacle("not_carried", "item", thing) if is_visible(world, state, place) else _UNSEEN
    if verb == "eat":
        return None if world.items[thing] == "food" else _CANNOT
    if verb in ("put", "insert"):
        if world.room_of(target) != state.room:
            return _UNSEEN
        container = target - FIRST_CONTAINER
        if verb == "insert" and state.latches[container] != OPEN:
            return Obstacle(LATCHES[state.latches[container]], "openable", container)
    return None


def apply(world: World, state: State, action: Action) -> State:
    """The state after a possible action; the same object where nothing changes."""
    verb, thing, target = action
    if verb == "go":
        for way in world.exits[state.room]:
            if way.direction == thing:
                return State(way.room, state.places, state.latches, state.read)
    if verb in _PLACED:
        place = {"take": CARRIED, "eat": GONE, "drop": state.room}.get(verb, target)
        places = state.places[:thing] + (place,) + state.places[thing + 1 :]
        return State(state.room, places, state.latches, state.read)
    if verb in _LATCHED:
        latches = state.latches[:thing] + (_LATCHED[verb],) + state.latches[thing + 1 :]
        return State(state.room, state.places, latches, state.read)
    if verb == "examine" and EXAMINED[target] == "note" and not state.read:
        return State(state.room, state.places, state.latches, True)
    return state


def possible(world: World, state: State) -> Iterator[Action]:
    """Every possible action that changes the state, and every look, inventory and examine."""
    room = state.room
    yield LOOK
    yield INVENTORY
    for way in world.exits[room]:
        if way.door < 0 or state.latches[way.door] == OPEN:
            yield Action("go", way.direction)
    openables = [c for c, where in enumerate(world.containers) if where == room]
    openables += [way.door for way in world.exits[room] if way.door >= 0]
    supporters = [s for s, where in enumerate(world.supporters) if where == room]
    if world.note == room:
        yield Action("examine", 0, EXAMINED.index("note"))
    for supporter in supporters:
        yield Action("examine", supporter, EXAMINED.index("supporter"))
    for openable in openables:
        yield Action("examine", openable, EXAMINED.index("openable"))
        yield from _turns(world, state, openable)
    for item, place in enumerate(state.places):
        if place == CARRIED:
            yield Action("examine", item, 0)
            yield Action("drop", item)
            if world.items[item] == "food":
                yield Action("eat", item)
            for supporter in supporters:
                yield Action("put", item, FIRST_SUPPORTER + supporter)
            for openable in openables:
                if openable < len(world.containers) and state.latches[openable] == OPEN:
                    yield Action("insert", item, FIRST_CONTAINER + openable)
        elif is_visible(world, state, place):
            yield Action("examine", item, 0)
            yield Action("take", item, place if place >= FIRST_CONTAINER else -1)


_PLACED = frozenset({"take", "eat", "drop", "put", "insert"})
_LATCHED = {"open": OPEN, "close": CLOSED, "unlock": CLOSED, "lock": LOCKED}
_LATCH_BEFORE = {"open": CLOSED, "close": OPEN, "unlock": LOCKED, "lock": CLOSED}


def _turns(world: World, state: State, openable: int) -> Iterator[Action]:
    latch, key = state.latches[openable], world.keys[openable]
    if latch == OPEN:
        yield Action("close", openable)
        return
    if latch == CLOSED:
        yield Action("open", openable)
    if key >= 0 and state.places[key] == CARRIED:
        yield Action("lock" if latch == CLOSED else "unlock", openable, key)


def _obstacle_to_go(world: World, state: State, direction: int) -> Obstacle | None:
    for way in world.exits[state.room]:
        if way.direction == direction:
            if way.door < 0 or state.latches[way.door] == OPEN:
                return None
            return Obstacle(LATCHES[state.latches[way.door]], "openable", way.door)
    return Obstacle("no_exit")


def _obstacle_to_turn(world: World, state: State, action: Action) -> Obstacle | None:
    verb, thing, key = action
    if state.room not in world.rooms_of(thing):
        return _UNSEEN
    if verb in ("unlock", "lock"):
        if world.keys[thing] < 0 or world.items[key] != "key":
            return _CANNOT
        if state.places[key] != CARRIED:
            seen = is_visible(world, state, state.places[key])
            return Obstacle("not_carried", "item", key) if seen else _UNSEEN
    latch = state.latches[thing]
    if latch != _LATCH_BEFORE[verb]:
        return Obstacle(LATCHES[latch], "openable", thing)
    if verb in ("unlock", "lock") and world.keys[thing] != key:
        return Obstacle("wrong_key")
    return None


def _is_present(world: World, state: State, kind: str, number: int) -> bool:
    if kind == "item":
        place = state.places[number]
        return place == CARRIED or is_visible(world, state, place)
    if kind == "openable":
        return state.room in world.rooms_of(number)
    if kind == "supporter":
        return world.supporters[number] == state.room
    return (world.note if kind == "note" else number) == state.room
