"""A house under construction: what the generator changes, step by step, until the quest is long enough."""

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from turngym.envs.rooms.world import (
    CARRIED,
    CLOSED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    LOCKED,
    OPEN,
    OPPOSITE,
    Exit,
    Kind,
    State,
    World,
)

MAX_LOCKS = 6
"""Most doors and lockable containers together: each has a colour of its own, and "small" has six."""

_STEPS = ((0, 1), (0, -1), (1, 0), (-1, 0))


@dataclass(slots=True)
class Draft:
    """A world and its start in parts that can change. Doors are numbered apart from containers here.

    Attributes:
        links: per connection its first room, the direction from there, its second room, and its door or -1.
        start: the player's room.
        containers, supporters: the room of each.
        items, places: kind and place of each item.
        container_latches, container_keys, door_latches, door_keys: latch, and the key's item or -1.
        has_note: whether the start room has a note.
    """

    links: list[tuple[int, int, int, int]]
    num_rooms: int
    start: int
    containers: list[int] = field(default_factory=list)
    supporters: list[int] = field(default_factory=list)
    items: list[Kind] = field(default_factory=list)
    places: list[int] = field(default_factory=list)
    container_latches: list[int] = field(default_factory=list)
    container_keys: list[int] = field(default_factory=list)
    door_latches: list[int] = field(default_factory=list)
    door_keys: list[int] = field(default_factory=list)
    has_note: bool = False

    def copy(self) -> "Draft":
        return replace(
            self,
            links=list(self.links),
            containers=list(self.containers),
            supporters=list(self.supporters),
            items=list(self.items),
            places=list(self.places),
            container_latches=list(self.container_latches),
            container_keys=list(self.container_keys),
            door_latches=list(self.door_latches),
            door_keys=list(self.door_keys),
        )

    def world(self) -> World:
        first = len(self.containers)
        exits: list[list[Exit]] = [[] for _ in range(self.num_rooms)]
        doors: dict[int, tuple[int, int]] = {}
        for room, direction, other, door in self.links:
            openable = first + door if door >= 0 else -1
            exits[room].append(Exit(direction, other, openable))
            exits[other].append(Exit(OPPOSITE[direction], room, openable))
            if door >= 0:
                doors[door] = (room, other)
        return World(
            exits=tuple(tuple(sorted(ways)) for ways in exits),
            containers=tuple(self.containers),
            supporters=tuple(self.supporters),
            items=tuple(self.items),
            keys=(*self.container_keys, *self.door_keys),
            doors=tuple(doors[door] for door in range(len(doors))),
            note=self.start if self.has_note else -1,
        )

    def state(self) -> State:
        return State(self.start, tuple(self.places), (*self.container_latches, *self.door_latches))

    @property
    def num_objects(self) -> int:
        """Items, containers and supporters; doors and the note are none."""
        return len(self.items) + len(self.containers) + len(self.supporters)

    @property
    def num_locks(self) -> int:
        return len(self.door_keys) + sum(key >= 0 for key in self.container_keys)

    def add_item(self, kind: Kind, place: int) -> int:
        self.items.append(kind)
        self.places.append(place)
        return len(self.items) - 1

    def add_container(self, room: int, latch: int) -> int:
        self.containers.append(room)
        self.container_latches.append(latch)
        self.container_keys.append(-1)
        return len(self.containers) - 1

    def add_supporter(self, room: int) -> int:
        self.supporters.append(room)
        return len(self.supporters) - 1

    def add_door(self, link: int, latch: int) -> int:
        room, direction, other, _ = self.links[link]
        door = len(self.door_latches)
        self.door_latches.append(latch)
        self.door_keys.append(-1)
        self.links[link] = (room, direction, other, door)
        return door

    def add_key(self, *, container: int = -1, door: int = -1, place: int = CARRIED) -> int:
        """Gives a container or door a lock; the key lies at `place`."""
        key = self.add_item("key", place)
        if container >= 0:
            self.container_keys[container] = key
        else:
            self.door_keys[door] = key
        return key


def draw_map(num_rooms: int, chance: random.Random) -> Draft:
    """Connected rooms on a grid, some of them in circles."""
    spots = [(0, 0)]
    links: list[tuple[int, int, int, int]] = []
    while len(spots) < num_rooms:
        room, direction = chance.randrange(len(spots)), chance.randrange(4)
        spot = _next_to(spots[room], direction)
        if spot not in spots:
            links.append((room, direction, len(spots), -1))
            spots.append(spot)
    joined = {(room, other) for room, _, other, _ in links}
    for room, spot in enumerate(spots):
        for direction in range(4):
            other = _find(spots, _next_to(spot, direction))
            if other > room and (room, other) not in joined and chance.random() < 0.3:
                links.append((room, direction, other, -1))
    return Draft(links, num_rooms, chance.randrange(num_rooms))


def harden_item(draft: Draft, item: int, chance: random.Random) -> None:
    """Makes an item harder to come by: lays it down if carried, else hides it in a closed container."""
    place = draft.places[item]
    if place == CARRIED:
        room = chance.randrange(draft.num_rooms)
        near = [s for s, where in enumerate(draft.supporters) if where == room]
        draft.places[item] = FIRST_SUPPORTER + chance.choice(near) if near and chance.random() < 0.5 else room
    elif FIRST_CONTAINER <= place < FIRST_SUPPORTER:
        container = place - FIRST_CONTAINER
        if draft.container_latches[container] == OPEN:
            draft.container_latches[container] = CLOSED
    else:
        room = draft.supporters[place - FIRST_SUPPORTER] if place >= FIRST_SUPPORTER else place
        if chance.random() < 0.4:
            room = chance.randrange(draft.num_rooms)
        near = [c for c, where in enumerate(draft.containers) if where == room]
        container = (
            chance.choice(near) if near and chance.random() < 0.7 else draft.add_container(room, CLOSED)
        )
        draft.places[item] = FIRST_CONTAINER + container


def harden_openable(draft: Draft, openable: int) -> None:
    """Locks a closed container or door; its new key is carried at first."""
    door = openable - len(draft.containers)
    keys = draft.container_keys if door < 0 else draft.door_keys
    latches = draft.container_latches if door < 0 else draft.door_latches
    number = openable if door < 0 else door
    if keys[number] < 0 and latches[number] == CLOSED:
        draft.add_key(**({"container": number} if door < 0 else {"door": number}))
        latches[number] = LOCKED


def harden_way(draft: Draft, room: int, direction: int) -> None:
    """Puts a closed door in a free way, or closes the open one."""
    for link, (one, way, other, door) in enumerate(draft.links):
        if (one, way) == (room, direction) or (other, OPPOSITE[way]) == (room, direction):
            if door < 0:
                draft.add_door(link, CLOSED)
            elif draft.door_latches[door] == OPEN:
                draft.door_latches[door] = CLOSED


def _next_to(spot: tuple[int, int], direction: int) -> tuple[int, int]:
    step = _STEPS[direction]
    return spot[0] + step[0], spot[1] + step[1]


def _find(spots: Sequence[tuple[int, int]], spot: tuple[int, int]) -> int:
    return spots.index(spot) if spot in spots else -1
