"""One search put into bits: which of them a plan needs, and the operations that set them."""

from collections.abc import Collection
from typing import NamedTuple

from turngym.envs.rooms.goals import Goal
from turngym.envs.rooms.world import (
    CARRIED,
    CLOSED,
    EXAMINED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    GONE,
    LOCKED,
    OPEN,
    Action,
    State,
    World,
)


class Op(NamedTuple):
    """An action on bits: possible where bits & care == want; then keeps `keep`, adds `add`, moves to `room`."""

    care: int
    want: int
    keep: int
    add: int
    room: int
    action: Action


class Sides:
    """What each door of a world parts, found when asked."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._sides: list[int | None] = [None] * len(world.doors)

    def of(self, door: int) -> int:
        """Bit mask of the rooms on one side of a door, or 0 where a way around the door exists."""
        side = self._sides[door]
        if side is None:
            openable = len(self._world.containers) + door
            start, other = self._world.doors[door]
            side, front = 1 << start, [start]
            while front:
                for way in self._world.exits[front.pop()]:
                    if way.door != openable and not side >> way.room & 1:
                        side |= 1 << way.room
                        front.append(way.room)
            if side >> other & 1:
                side = 0
            self._sides[door] = side
        return side


class Problem:
    """Bits and operations of one search."""

    def __init__(self, world: World, goal: Goal, state: State, sides: Sides) -> None:
        self.world, self.goal, self.state, self._sides = world, goal, state, sides
        self.start = self.required = self.care = self.want = self._bits = 0
        self.room = -1
        self.is_possible = True
        # Rooms that every plan visits, and rooms that some plan may.
        self._must = self._may = 1 << state.room
        self._has: dict[int, int] = {}
        self._done: dict[int, int] = {}
        self._opened: dict[int, int] = {}
        self._unlocked: dict[int, int] = {}
        self._marked: set[tuple[str, int]] = set()
        self._read = 0
        # Latches that the goal wants shut: bits for them are kept even while open.
        self._shut = {fact.thing: fact.kind for fact in goal if fact.kind in ("closed", "locked")}
        self._goal_places = {fact.thing: fact.place for fact in goal if fact.kind == "at"}
        self._collect()
        self.forced: list[list[Op]] = [[] for _ in self.world.exits]
        self.free: list[list[Op]] = [[] for _ in self.world.exits]
        if self.is_possible:
            self._build()

    def _bit(self, is_set: bool) -> int:
        bit = 1 << self._bits
        self._bits += 1
        if is_set:
            self.start |= bit
        return bit

    def _visit(self, room: int, must: bool) -> None:
        self._may |= 1 << room
        if must:
            self._must |= 1 << room

    def _visit_openable(self, openable: int, must: bool) -> None:
        rooms = self.world.rooms_of(openable)
        side = self._sides.of(openable - len(self.world.containers)) if len(rooms) == 2 else 0
        if side:
            # Nobody reaches the far side of this door without passing the near one.
            near = rooms[0] if (side >> self.state.room ^ side >> rooms[0]) & 1 == 0 else rooms[1]
            self._visit(near, must)
            return
        for room in rooms:
            self._visit(room, must and len(rooms) == 1)

    # What is needed.

    def _collect(self) -> None:
        for fact in self.goal:
            if fact.kind == "in_room":
                self.room = fact.thing
                self._visit(fact.thing, True)
            elif fact.kind == "at":
                self._need_placed(fact.thing, fact.place)
            elif fact.kind == "read":
                if not self.state.read:
                    self._read = self._bit(False)
                    self._aim(self._read, True)
                    self.required |= self._read
                    self._visit(self.world.note, True)
            elif fact.kind in ("closed", "locked"):
                self._need_shut(fact.thing, fact.kind)
            elif fact.kind == "open":
                self._need_open(fact.thing, True)
                self._aim(self._opened.get(fact.thing, 0), True)
            else:
                self._need_unlocked(fact.thing, True)
                self._aim(self._unlocked.get(fact.thing, 0), True)
        self._need_doors()

    def _aim(self, bit: int, value: bool) -> None:
        self.care |= bit
        if value:
            self.want |= bit

    def _need_placed(self, item: int, place: int) -> None:
        now = self.state.places[item]
        if now == place:
            if place == GONE or item not in self.world.keys:
                return
        elif now == GONE:
            self.is_possible = False
            return
        if place == CARRIED:
            self._need_item(item, True)
            self._aim(self._has.get(item, 0), True)
            return
        self._has[item] = self._bit(now == CARRIED)
        self._done[item] = self._bit(now == place)
        self._aim(self._done[item], True)
        if now == place:
            return
        self.required |= self._done[item]
        if now != CARRIED:
            self.required |= self._has[item]
            self._need_reached(now, True)
        if place != GONE:
            self._need_reached(place, True)

    def _need_reached(self, place: int, must: bool) -> None:
        self._visit(self.world.room_of(place), must)
        if FIRST_CONTAINER <= place < FIRST_SUPPORTER:
            self._need_open(place - FIRST_CONTAINER, must)

    def _need_item(self, item: int, must: bool) -> None:
        place = self.state.places[item]
        if place == GONE:
            self.is_possible = self.is_possible and not must
            return
        if not self._mark("item", item, must):
            return
        if item not in self._has and place != CARRIED:
            self._has[item] = self._bit(False)
        if place != CARRIED:
            if must:
                self.required |= self._has[item]
            self._need_reached(place, must)

    def _need_open(self, openable: int, must: bool) -> None:
        if self.state.latches[openable] == OPEN or not self._mark("open", openable, must):
            return
        if openable not in self._opened:
            self._opened[openable] = self._bit(False)
        if must:
            self.required |= self._opened[openable]
        self._need_unlocked(openable, must)
        self._visit_openable(openable, must)

    def _need_unlocked(self, openable: int, must: bool) -> None:
        if self.state.latches[openable] != LOCKED or not self._mark("unlocked", openable, must):
            return
        if openable not in self._unlocked:
            self._unlocked[openable] = self._bit(False)
        if must:
            self.required |= self._unlocked[openable]
        self._visit_openable(openable, must)
        self._need_item(self.world.keys[openable], must)

    def _need_shut(self, openable: int, kind: str) -> None:
        latch = self.state.latches[openable]
        if openable not in self._opened:
            self._opened[openable] = self._bit(latch == OPEN)
        if openable not in self._unlocked:
            self._unlocked[openable] = self._bit(latch != LOCKED)
        self._aim(self._opened[openable], False)
        if kind == "locked":
            self._aim(self._unlocked[openable], False)
            if latch != LOCKED:
                self._need_item(self.world.keys[openable], True)
        if latch < (LOCKED if kind == "locked" else CLOSED):
            self._visit_openable(openable, True)

    def _mark(self, kind: str, number: int, must: bool) -> bool:
        """Whether this need is new; a need that was optional may come again as one of every plan."""
        if (kind, number) in self._marked and not (must and (f"must {kind}", number) not in self._marked):
            return False
        self._marked.add((kind, number))
        if must:
            self._marked.add((f"must {kind}", number))
        return True

    def _need_doors(self) -> None:
        first = len(self.world.containers)
        shut = [d for d in range(len(self.world.doors)) if self.state.latches[first + d] != OPEN]
        for openable in self._shut:
            # The goal's own door may have to be open for a while.
            if openable >= first and openable - first not in shut:
                shut.append(openable - first)
        before = None
        while before != (before := (self._must, self._may, len(self._marked))):
            for door in shut:
                side = self._sides.of(door)
                if not side:
                    self._need_open(first + door, False)
                elif self._must & side and self._must & ~side:
                    self._need_open(first + door, True)
                elif self._may & side and self._may & ~side:
                    self._need_open(first + door, False)

    # What can be done.

    def _build(self) -> None:
        world, state = self.world, self.state
        for item, has in self._has.items():
            self._build_item(item, has)
        for openable in self._opened.keys() | self._unlocked.keys():
            self._build_openable(openable)
        if self._read:
            note = Action("examine", 0, EXAMINED.index("note"))
            self._add(world.note, self._read, 0, 0, self._read, note)
        for room, ways in enumerate(world.exits):
            for way in ways:
                needed = self._opened.get(way.door, 0) if way.door >= 0 else 0
                if way.door >= 0 and not needed and state.latches[way.door] != OPEN:
                    continue
                self.free[room].append(Op(needed, needed, -1, 0, way.room, Action("go", way.direction)))
        for ops in (*self.forced, *self.free):
            # The note first: nobody knows before what to do.
            ops.sort(key=lambda op: (op.action.verb != "examine", op.action))

    def _build_item(self, item: int, has: int) -> None:
        world, place = self.world, self.state.places[item]
        done, goal_place = self._done.get(item, 0), self._goal_places.get(item, CARRIED)
        is_key = item in world.keys
        if place >= 0 and (not done or place != goal_place or is_key):
            opened, holder = self._opened_bit(place), place if place >= FIRST_CONTAINER else -1
            at_goal = done if place == goal_place else 0
            care, want, clear = has | done | opened, opened | at_goal, at_goal
            self._add(world.room_of(place), care, want, clear, has, Action("take", item, holder))
        if not done:
            return
        if goal_place == GONE:
            for room in range(len(world.exits)):
                self._add(room, has, has, has, done, Action("eat", item))
            return
        opened = self._opened_bit(goal_place)
        verb = "drop" if goal_place < FIRST_CONTAINER else "insert" if goal_place < FIRST_SUPPORTER else "put"
        action = Action(verb, item, goal_place if goal_place >= FIRST_CONTAINER else -1)
        self._add(world.room_of(goal_place), has | opened, has | opened, has, done, action)

    def _opened_bit(self, place: int) -> int:
        if FIRST_CONTAINER <= place < FIRST_SUPPORTER:
            return self._opened.get(place - FIRST_CONTAINER, 0)
        return 0

    def _build_openable(self, openable: int) -> None:
        opened, unlocked = self._opened.get(openable, 0), self._unlocked.get(openable, 0)
        key = self.world.keys[openable]
        has = self._has.get(key, 0)
        can_lock = key >= 0 and (key in self._has or self.state.places[key] == CARRIED)
        for room in self.world.rooms_of(openable):
            if opened:
                self._add(room, opened | unlocked, unlocked, 0, opened, Action("open", openable))
            if unlocked and can_lock:
                self._add(room, unlocked | has, has, 0, unlocked, Action("unlock", openable, key))
            if openable in self._shut:
                self._add(room, opened, opened, opened, 0, Action("close", openable))
            if self._shut.get(openable) == "locked" and can_lock:
                care = opened | unlocked | has
                self._add(room, care, unlocked | has, unlocked, 0, Action("lock", openable, key))

    def _add(self, room: int, care: int, want: int, clear: int, add: int, action: Action) -> None:
        op = Op(care, want, ~clear, add, room, action)
        is_forced = not clear and add & self.required and action.thing not in self._shut_openables(action)
        (self.forced if is_forced else self.free)[room].append(op)

    def _shut_openables(self, action: Action) -> Collection[int]:
        return self._shut if action.verb in ("open", "unlock") else ()
