"""Exact shortest plans from any state, fast enough for every turn.

Three steps keep the search small, and none lengthens a plan (`test_rooms_planner.py` compares with a search
over all actions):

1. Only what can matter gets a bit: the goal's items and latches, the containers they are in, doors between rooms
   that matter, and the keys for what is locked. There is no limit on carrying and nothing is gained by dropping,
   closing or hiding, so other actions can be struck out of any plan.
2. An action that only adds bits, and one of which every plan must add, is played at once where possible: it must
   come sometime, costs the same then, and hinders nothing.
3. A plan from a state is remembered by the part of the state that can matter.
"""

from collections.abc import Sequence

from turngym.envs.rooms.goals import Goal, is_solved
from turngym.envs.rooms.problem import Op, Problem, Sides
from turngym.envs.rooms.world import Action, State, World

Plan = tuple[Action, ...]

_ROOM_BITS = 4
_ROOM_MASK = (1 << _ROOM_BITS) - 1


class Planner:
    """Plans for one task.

    `plan` gives the shortest list of actions to the goal, () where it holds already, None where none is possible.
    """

    def __init__(self, world: World, goal: Goal) -> None:
        self.world = world
        self.goal = goal
        targets = {fact.thing for fact in goal if fact.kind == "at"}
        self._items = tuple(i for i, kind in enumerate(world.items) if i in targets or i in world.keys)
        self._plans: dict[tuple[int, ...], Plan | None] = {}
        self._sides = Sides(world)

    def __deepcopy__(self, memo: dict[int, object]) -> "Planner":
        return self  # what it remembers holds for every copy

    def plan(self, state: State) -> Plan | None:
        """The shortest plan from a state."""
        key = self._key(state)
        if key not in self._plans:
            self._plans[key] = _search(self.world, self.goal, state, self._sides)
        return self._plans[key]

    def follow(self, plan: Plan, action: Action, state: State) -> Plan | None:
        """The plan from the state after an action, given the plan before it: its rest, where the action began it."""
        if plan and plan[0] == action:
            self._plans.setdefault(self._key(state), plan[1:])
        return self.plan(state)

    def _key(self, state: State) -> tuple[int, ...]:
        places = state.places
        return (state.room, state.read, *state.latches, *[places[item] for item in self._items])


def _search(world: World, goal: Goal, state: State, sides: Sides) -> Plan | None:
    """Breadth-first search over (bits, room)."""
    if is_solved(goal, state):
        return ()
    problem = Problem(world, goal, state, sides)
    if not problem.is_possible:
        return None
    care, want, goal_room = problem.care, problem.want, problem.room
    start = problem.start << _ROOM_BITS | state.room
    came: dict[int, tuple[int, Action] | None] = {start: None}
    front = [start]
    while front:
        reached: list[int] = []
        for node in front:
            bits, room = node >> _ROOM_BITS, node & _ROOM_MASK
            ops: Sequence[Op] = problem.free[room]
            for op in problem.forced[room]:
                if bits & op.care == op.want:
                    ops = (op,)
                    break
            for op in ops:
                if bits & op.care != op.want:
                    continue
                after = bits & op.keep | op.add
                to = after << _ROOM_BITS | op.room
                if to in came:
                    continue
                came[to] = (node, op.action)
                if after & care == want and goal_room in (-1, op.room):
                    return _path(came, to)
                reached.append(to)
        front = reached
    return None


def _path(came: dict[int, tuple[int, Action] | None], node: int) -> Plan:
    actions: list[Action] = []
    while (step := came[node]) is not None:
        node, action = step
        actions.append(action)
    return tuple(reversed(actions))
