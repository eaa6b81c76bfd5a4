"""Tasks: levels, ids, and the generator, which makes a house whose quest has exactly the length of its level."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass

from turngym.envs.rooms.draft import MAX_LOCKS, Draft, draw_map, harden_item, harden_openable, harden_way
from turngym.envs.rooms.goals import Fact, Goal
from turngym.envs.rooms.planner import Plan, Planner
from turngym.envs.rooms.world import (
    CARRIED,
    CLOSED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    GONE,
    LOCKED,
    OPEN,
    Kind,
    State,
    World,
)
from turngym.errors import ConfigError
from turngym.types import Split, TaskRange

MAX_ROOMS, MAX_OBJECTS, MAX_QUEST = 10, 20, 12

NUMBERS: dict[Split, range] = {
    "train": range(50_001, 1_050_001),
    "validation": range(20_001, 21_001),
    "test": range(1, 1_001),
}

_LEVEL = re.compile(r"w(0|[1-9]\d*)-o(0|[1-9]\d*)-q(0|[1-9]\d*)")
_MAX_SUPPORTERS = 3
_MAX_CONTAINERS = 6
_MAX_FOODS = 8  # of the twelve names that "small" has for food


@dataclass(frozen=True, slots=True)
class Level:
    """Rooms, least number of objects, and length of the quest's shortest solution in commands."""

    rooms: int
    objects: int
    quest: int

    @classmethod
    def read(cls, text: str) -> "Level":
        """The level of `wX-oY-qZ`, the arguments of TextWorld's `tw-make custom`."""
        match = _LEVEL.fullmatch(text) if isinstance(text, str) else None
        supported = f"Supported: w1-{MAX_ROOMS}, o1-{MAX_OBJECTS}, q1-{MAX_QUEST}, as in 'w2-o3-q4'."
        if match is None:
            raise ConfigError(f"level = {text!r} is no level. {supported}")
        level = cls(*(int(group) for group in match.groups()))
        if not (
            1 <= level.rooms <= MAX_ROOMS
            and 1 <= level.objects <= MAX_OBJECTS
            and 1 <= level.quest <= MAX_QUEST
        ):
            raise ConfigError(f"level = {text!r} is out of range. {supported}")
        return level


@dataclass(frozen=True, slots=True)
class House:
    """A start, a goal, and a shortest plan from the one to the other."""

    world: World
    state: State
    goal: Goal
    plan: Plan
    planner: Planner

    def __deepcopy__(self, memo: dict[int, object]) -> "House":
        return self


def task_ranges(prefix: str) -> dict[str, Sequence[str]]:
    """Ids of the three splits."""
    return {split: TaskRange(prefix, numbers) for split, numbers in NUMBERS.items()}


def build(level: Level, has_note: bool, chance: random.Random) -> House:
    """A house whose quest has exactly the level's length; with a note, reading it is the quest's first command."""
    while True:
        draft = draw_map(level.rooms, chance)
        draft.has_note = has_note
        kinds = [kind for kind in _GOALS if kind != "go" or level.rooms > 1]
        fact = _GOALS[chance.choice(kinds)](draft, chance)
        goal = (Fact("read"), fact) if has_note else (fact,)
        hard = _lengthen(draft, goal, level.quest, chance)
        if hard is not None:
            return _furnish(hard, goal, level, chance)


# The goals, each in the shortest of its quests: one command.


def _thing(chance: random.Random) -> Kind:
    return "food" if chance.random() < 0.35 else "thing"


def _take(draft: Draft, chance: random.Random) -> Fact:
    return Fact("at", draft.add_item(_thing(chance), draft.start), CARRIED)


def _put(draft: Draft, chance: random.Random) -> Fact:
    supporter = draft.add_supporter(draft.start)
    return Fact("at", draft.add_item(_thing(chance), CARRIED), FIRST_SUPPORTER + supporter)


def _insert(draft: Draft, chance: random.Random) -> Fact:
    container = draft.add_container(draft.start, OPEN)
    return Fact("at", draft.add_item(_thing(chance), CARRIED), FIRST_CONTAINER + container)


def _drop(draft: Draft, chance: random.Random) -> Fact:
    return Fact("at", draft.add_item(_thing(chance), CARRIED), draft.start)


def _eat(draft: Draft, chance: random.Random) -> Fact:
    return Fact("at", draft.add_item("food", CARRIED), GONE)


def _open(draft: Draft, chance: random.Random) -> Fact:
    return Fact("open", draft.add_container(draft.start, CLOSED))


def _close(draft: Draft, chance: random.Random) -> Fact:
    return Fact("closed", draft.add_container(draft.start, OPEN))


def _unlock(draft: Draft, chance: random.Random) -> Fact:
    container = draft.add_container(draft.start, LOCKED)
    draft.add_key(container=container)
    return Fact("unlocked", container)


def _lock(draft: Draft, chance: random.Random) -> Fact:
    container = draft.add_container(draft.start, CLOSED)
    draft.add_key(container=container)
    return Fact("locked", container)


def _go(draft: Draft, chance: random.Random) -> Fact:
    ways = [way.room for way in draft.world().exits[draft.start]]
    return Fact("in_room", chance.choice(ways))


_GOALS = {
    "take": _take,
    "put": _put,
    "insert": _insert,
    "drop": _drop,
    "eat": _eat,
    "open": _open,
    "close": _close,
    "unlock": _unlock,
    "lock": _lock,
    "go": _go,
}


def _lengthen(draft: Draft, goal: Goal, length: int, chance: random.Random) -> Draft | None:
    """The draft made harder until its plan has the length; None where chance found no way to it."""
    plan = _plan(draft, goal)
    for _ in range(40 + 10 * length):
        if plan is None or len(plan) > length:
            return None
        if len(plan) == length:
            return draft if _tells_keys(draft, plan) else None
        harder = draft.copy()
        _harden(harder, plan, chance)
        if harder.num_locks > MAX_LOCKS or len(harder.containers) > _MAX_CONTAINERS:
            continue
        longer = _plan(harder, goal)
        if longer is not None and len(plan) < len(longer) <= length:
            draft, plan = harder, longer
    return None


def _tells_keys(draft: Draft, plan: Plan) -> bool:
    """Whether an expert learns the name of each key in time.

    It asks what it carries when its next command has a word that it has not read. A key that it carries from the
    start must therefore come before any other key, or the word `key` would be known and nothing asked.
    """
    return not _uses_carried_key(draft, plan) or all(
        place == CARRIED for kind, place in zip(draft.items, draft.places, strict=True) if kind == "key"
    )


def _uses_carried_key(draft: Draft, plan: Plan) -> bool:
    return any(
        action.verb in ("unlock", "lock") and draft.places[action.target] == CARRIED for action in plan
    )


def _plan(draft: Draft, goal: Goal) -> Plan | None:
    return Planner(draft.world(), goal).plan(draft.state())


def _harden(draft: Draft, plan: Plan, chance: random.Random) -> None:
    """One change, at the draft's start or at a random action of its plan."""
    if draft.num_rooms > 1 and chance.random() < 0.2:
        draft.start = chance.randrange(draft.num_rooms)
        return
    at = chance.randrange(len(plan))
    verb, thing, target = plan[at]
    taken = {action.thing for action in plan[:at] if action.verb == "take"}
    if verb == "take":
        harden_item(draft, thing, chance)
    elif verb in ("put", "insert", "drop", "eat"):
        if thing not in taken:
            harden_item(draft, thing, chance)
        elif verb == "insert":
            container = target - FIRST_CONTAINER
            draft.container_latches[container] = max(CLOSED, draft.container_latches[container])
    elif verb in ("unlock", "lock"):
        if target not in taken:
            harden_item(draft, target, chance)
        elif verb == "lock":
            _open_latch(draft, thing)
    elif verb == "open":
        harden_openable(draft, thing)
    elif verb == "go":
        room = draft.start
        exits = draft.world().exits
        for action in plan[:at]:
            if action.verb == "go":
                room = next(way.room for way in exits[room] if way.direction == action.thing)
        harden_way(draft, room, thing)


def _open_latch(draft: Draft, openable: int) -> None:
    """A thing to be locked stands open at first, so it must be closed before."""
    if openable < len(draft.containers):
        draft.container_latches[openable] = OPEN


def _furnish(draft: Draft, goal: Goal, level: Level, chance: random.Random) -> House:
    """Adds what the quest does not need, without making it shorter or longer."""
    for link, (*_, door) in enumerate(draft.links):
        if door < 0 and draft.num_locks < MAX_LOCKS and chance.random() < 0.15:
            changed = draft.copy()
            changed.add_door(link, chance.choice((OPEN, OPEN, CLOSED)))
            plan = _plan(changed, goal)
            if plan is not None and len(plan) == level.quest and _tells_keys(changed, plan):
                draft = changed
    plan = _plan(draft, goal)
    may_add_keys = plan is not None and not _uses_carried_key(draft, plan)
    while draft.num_objects < level.objects:
        _add_object(draft, may_add_keys, chance)
    world, state = draft.world(), draft.state()
    planner = Planner(world, goal)
    plan = planner.plan(state)
    if plan is None or len(plan) != level.quest:
        raise AssertionError(f"Furnishing changed the quest: {level}, {draft}.")
    return House(world, state, goal, plan, planner)


def _add_object(draft: Draft, may_add_keys: bool, chance: random.Random) -> None:
    room, roll = chance.randrange(draft.num_rooms), chance.random()
    if roll < 0.2 and len(draft.supporters) < _MAX_SUPPORTERS:
        draft.add_supporter(room)
    elif roll < 0.4 and len(draft.containers) < _MAX_CONTAINERS - 2:
        container = draft.add_container(room, chance.choice((OPEN, CLOSED)))
        if may_add_keys and chance.random() < 0.4 and draft.num_locks < MAX_LOCKS:
            draft.container_latches[container] = LOCKED
            draft.add_key(container=container, place=_any_place(draft, chance, but=container))
    else:
        kind = _thing(chance) if draft.items.count("food") < _MAX_FOODS else "thing"
        draft.add_item(kind, _any_place(draft, chance))


def _any_place(draft: Draft, chance: random.Random, *, but: int = -1) -> int:
    """Somewhere in the house, though not in the container `but`; sometimes with the player."""
    places = [*range(draft.num_rooms)]
    places += [FIRST_SUPPORTER + s for s in range(len(draft.supporters))] * 2
    places += [FIRST_CONTAINER + c for c in range(len(draft.containers)) if c != but]
    return CARRIED if chance.random() < 0.1 else chance.choice(places)
