"""The planner against a search over every possible action."""

import random

import pytest

from turngym.envs.rooms.draft import Draft, draw_map
from turngym.envs.rooms.goals import Fact, Goal, is_solved
from turngym.envs.rooms.planner import Planner
from turngym.envs.rooms.tasks import Level, build
from turngym.envs.rooms.world import (
    CARRIED,
    CLOSED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    GONE,
    LOCKED,
    OPEN,
    State,
    World,
    apply,
    obstacle,
    possible,
)

MAX_STATES = 20_000


def brute_force(world: World, goal: Goal, start: State) -> tuple[int, bool]:
    """Length of the shortest plan and True, or (-1, True) without one, or (a length it exceeds, False)."""
    seen, front, depth = {start}, [start], 0
    if is_solved(goal, start):
        return 0, True
    while front:
        depth += 1
        reached = []
        for state in front:
            for action in possible(world, state):
                after = apply(world, state, action)
                if after in seen:
                    continue
                if is_solved(goal, after):
                    return depth, True
                seen.add(after)
                reached.append(after)
        front = reached
        if len(seen) > MAX_STATES:
            return depth, False
    return -1, True


def random_house(chance: random.Random) -> tuple[Draft, Goal]:
    """Up to four rooms with doors, locks and keys anywhere, and one or two facts to reach, possible or not."""
    draft = draw_map(chance.randint(1, 4), chance)
    for link in range(len(draft.links)):
        if chance.random() < 0.6:
            draft.add_door(link, CLOSED)
    for _ in range(chance.randint(0, 3)):
        draft.add_container(chance.randrange(draft.num_rooms), CLOSED)
    for _ in range(chance.randint(0, 1)):
        draft.add_supporter(chance.randrange(draft.num_rooms))
    for _ in range(chance.randint(0, 2)):
        draft.add_item(chance.choice(("food", "thing")), CARRIED)
    for container in range(len(draft.containers)):
        if chance.random() < 0.4 and len(draft.items) < 4:
            draft.add_key(container=container)
    for door in range(len(draft.door_keys)):
        if chance.random() < 0.5 and len(draft.items) < 4:
            draft.add_key(door=door)
    places = [CARRIED, *range(draft.num_rooms)]
    places += [FIRST_CONTAINER + container for container in range(len(draft.containers))]
    places += [FIRST_SUPPORTER + supporter for supporter in range(len(draft.supporters))]
    draft.places = [chance.choice(places) for _ in draft.items]
    draft.container_latches = [chance.choice(_latches(key)) for key in draft.container_keys]
    draft.door_latches = [chance.choice(_latches(key)) for key in draft.door_keys]
    draft.has_note = chance.random() < 0.2
    goal = [random_fact(draft, places, chance)]
    other = random_fact(draft, places, chance)
    if chance.random() < 0.4 and other.kind != goal[0].kind and other.thing != goal[0].thing:
        goal.append(other)
    return draft, (*([Fact("read")] if draft.has_note else []), *goal)


def random_fact(draft: Draft, places: list[int], chance: random.Random) -> Fact:
    facts = [Fact("in_room", chance.randrange(draft.num_rooms))]
    if draft.items:
        item = chance.randrange(len(draft.items))
        if draft.items[item] == "food":
            places = [*places, GONE]
        facts += [Fact("at", item, chance.choice(places))] * 3
    keys = draft.container_keys + draft.door_keys
    if keys:
        openable = chance.randrange(len(keys))
        kinds = ("open", "closed", "unlocked", "locked") if keys[openable] >= 0 else ("open", "closed")
        facts += [Fact(kind, openable) for kind in kinds]
    return chance.choice(facts)


def check_state(world: World, goal: Goal, state: State) -> None:
    planner = Planner(world, goal)
    plan = planner.plan(state)
    length, is_exact = brute_force(world, goal, state)
    if not is_exact:
        assert plan is None or len(plan) > length
    else:
        assert (-1 if plan is None else len(plan)) == length, (world, goal, state, plan)
    for number, action in enumerate(plan or ()):
        assert obstacle(world, state, action) is None
        state = apply(world, state, action)
        # The rest of a plan is the plan from there, so plans depend on the state alone.
        assert plan is not None
        assert Planner(world, goal).plan(state) == plan[number + 1 :]
    assert plan is None or is_solved(goal, state)


@pytest.mark.parametrize("seed", range(6))
def test_plans_are_shortest_in_random_houses(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        draft, goal = random_house(chance)
        world, state = draft.world(), draft.state()
        for _ in range(3):
            check_state(world, goal, state)
            for _ in range(chance.randint(1, 10)):
                state = apply(world, state, chance.choice(list(possible(world, state))))


@pytest.mark.full
@pytest.mark.parametrize("seed", range(100, 110))
def test_plans_are_shortest_in_many_random_houses(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(1000):
        draft, goal = random_house(chance)
        check_state(draft.world(), goal, draft.state())


@pytest.mark.parametrize("has_note", [False, True])
@pytest.mark.parametrize("level", ["w1-o1-q2", "w2-o3-q4", "w3-o3-q3", "w2-o2-q5"])
def test_quests_have_exactly_the_length_of_their_level(level: str, has_note: bool) -> None:
    for seed in range(15):
        house = build(Level.read(level), has_note, random.Random(seed))
        length, is_exact = brute_force(house.world, house.goal, house.state)
        assert len(house.plan) == Level.read(level).quest
        assert length == len(house.plan) if is_exact else length < len(house.plan)


def test_without_the_goals_food_there_is_no_plan() -> None:
    draft = Draft([], 1, 0)
    apple = draft.add_item("food", GONE)
    assert Planner(draft.world(), (Fact("at", apple, CARRIED),)).plan(draft.state()) is None


def _latches(key: int) -> tuple[int, ...]:
    return (OPEN, CLOSED, LOCKED, LOCKED) if key >= 0 else (OPEN, CLOSED, CLOSED)
