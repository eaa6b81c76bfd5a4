"""What a task says: observations, instructions and commands in words."""

import random

from turngym.envs.rooms.goals import Fact
from turngym.envs.rooms.names import Names
from turngym.envs.rooms.tasks import House
from turngym.envs.rooms.text import Text
from turngym.envs.rooms.world import (
    CARRIED,
    DIRECTIONS,
    EXAMINED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    GONE,
    LATCHES,
    OPEN,
    Action,
    Obstacle,
    State,
)

Step = tuple[str, dict[str, str]]


class Wording:
    """The voice of one task."""

    def __init__(self, house: House, names: Names, text: Text, chance: random.Random) -> None:
        self.house, self.world, self.names, self.text = house, house.world, names, text
        self.style = text.draw_style(chance)
        # Listed by name, so that the order tells nothing about what matters.
        self._items = sorted(range(len(names.items)), key=lambda item: names.items[item])
        self._supporters = sorted(range(len(names.supporters)), key=lambda number: names.supporters[number])
        self._containers = sorted(
            range(len(self.world.containers)), key=lambda number: names.openables[number]
        )
        self._goal = text.draw_step(*goal_step(house.goal[-1], names), chance)

    def __deepcopy__(self, memo: dict[int, object]) -> "Wording":
        return self

    def instructions(self, goal: str, chance: random.Random) -> str:
        """What the agent is told at the start."""
        if goal == "detailed":
            return self.text.draw_steps(plan_steps(self.house, self.names), chance)
        return self.text.draw_frame(goal, self._goal, chance)

    def say(self, message: str, **arguments: str) -> str:
        return self.style[message].format(**arguments)

    def room(self, state: State) -> str:
        """The room, all that can be seen in it, and its exits."""
        here, style = state.room, self.style
        parts = [style["room"].format(x=self.names.rooms[here])]
        if floor := self._at(state, here):
            parts.append(style["floor"].format(things=self.text.listed(floor)))
        parts += [self._supporter(state, s) for s in self._supporters if self.world.supporters[s] == here]
        parts += [self._container(state, c) for c in self._containers if self.world.containers[c] == here]
        if self.world.note == here:
            parts.append(style["note"])
        ways = [self._exit(state, way.direction, way.door) for way in self.world.exits[here]]
        if ways:
            parts.append(style["exits"].format(things=self.text.join(ways)))
        return " ".join(parts)

    def result(self, action: Action, state: State) -> str:
        """What the agent reads after a possible action, which led to `state`."""
        verb, thing, target = action
        if verb in ("go", "look"):
            return self.room(state)
        if verb == "inventory":
            carried = self._at(state, CARRIED)
            return (
                self.say("inventory", things=self.text.listed(carried))
                if carried
                else self.say("inventory_empty")
            )
        if verb == "examine":
            return self._examined(EXAMINED[target], thing, state)
        if verb == "open" and thing < len(self.world.containers):
            content = self._at(state, FIRST_CONTAINER + thing)
            x = self.names.openables[thing]
            if content:
                return self.say("open_on", x=x, things=self.text.listed(content))
            return self.say("open_empty", x=x)
        return self.say(verb, **command_step(action, self.names)[1])

    def refusal(self, obstacle: Obstacle) -> str:
        """What the agent reads after an impossible command."""
        reason = f"is_{obstacle.reason}" if obstacle.reason in LATCHES else obstacle.reason
        names = {"item": self.names.items, "openable": self.names.openables}.get(obstacle.kind)
        return self.say(reason, x=names[obstacle.number] if names else "")

    def _at(self, state: State, place: int) -> list[str]:
        places = state.places
        return [self.names.items[item] for item in self._items if places[item] == place]

    def _supporter(self, state: State, supporter: int) -> str:
        name, content = self.names.supporters[supporter], self._at(state, FIRST_SUPPORTER + supporter)
        if content:
            return self.style["supporter"].format(x=name, things=self.text.listed(content))
        return self.style["supporter_empty"].format(x=name)

    def _container(self, state: State, container: int) -> str:
        name, latch = self.names.openables[container], state.latches[container]
        if latch == OPEN and (content := self._at(state, FIRST_CONTAINER + container)):
            return self.style["container"].format(x=name, things=self.text.listed(content))
        return self.style[f"container_{LATCHES[latch]}"].format(x=name)

    def _exit(self, state: State, direction: int, door: int) -> str:
        if door < 0:
            return self.style["exit"].format(way=DIRECTIONS[direction])
        message = self.style[f"exit_{LATCHES[state.latches[door]]}"]
        return message.format(way=DIRECTIONS[direction], x=self.names.openables[door])

    def _examined(self, kind: str, number: int, state: State) -> str:
        if kind == "room":
            return self.room(state)
        if kind == "note":
            return self.say("read", goal=self._goal)
        if kind == "supporter":
            return self._supporter(state, number)
        if kind == "openable":
            if number < len(self.world.containers):
                return self._container(state, number)
            return self.say(f"is_{LATCHES[state.latches[number]]}", x=self.names.openables[number])
        message = "carried" if state.places[number] == CARRIED else "item"
        return self.say(message, x=self.names.items[number])


def command(action: Action, names: Names) -> str:
    """The command that stands for an action, as plans and lists of commands write it."""
    verb, thing, target = action
    if verb in ("look", "inventory"):
        return verb
    if verb == "go":
        return f"go {DIRECTIONS[thing]}"
    if verb == "examine":
        return f"examine {_examined_name(EXAMINED[target], thing, names)}"
    if verb in ("open", "close"):
        return f"{verb} {names.openables[thing]}"
    if verb in ("unlock", "lock"):
        return f"{verb} {names.openables[thing]} with {names.items[target]}"
    if target < 0:
        return f"{verb} {names.items[thing]}"
    joint = {"take": "from", "put": "on", "insert": "into"}[verb]
    return f"{verb} {names.items[thing]} {joint} {holder_name(target, names)}"


def command_step(action: Action, names: Names) -> Step:
    """An action as a step of instructions: its name in `Text.steps`, and the names in it."""
    verb, thing, target = action
    if verb == "go":
        return "go", {"way": DIRECTIONS[thing]}
    if verb == "examine":
        return "examine", {"x": "note"}
    if verb in ("open", "close", "unlock", "lock"):
        if target < 0:
            return verb, {"x": names.openables[thing]}
        return f"{verb}_with", {"x": names.openables[thing], "y": names.items[target]}
    if target < 0:
        return verb, {"x": names.items[thing]}
    return "take_from" if verb == "take" else verb, {"x": names.items[thing], "y": holder_name(target, names)}


def goal_step(fact: Fact, names: Names) -> Step:
    """The goal as a step: what the last command achieves."""
    if fact.kind == "in_room":
        return "go_to", {"x": names.rooms[fact.thing]}
    if fact.kind != "at":
        verb = {"open": "open", "closed": "close", "unlocked": "unlock", "locked": "lock"}[fact.kind]
        return verb, {"x": names.openables[fact.thing]}
    item = {"x": names.items[fact.thing]}
    if fact.place in (CARRIED, GONE):
        return "take" if fact.place == CARRIED else "eat", item
    if fact.place < FIRST_CONTAINER:
        return "drop_in", item | {"y": names.rooms[fact.place]}
    verb = "insert" if fact.place < FIRST_SUPPORTER else "put"
    return verb, item | {"y": holder_name(fact.place, names)}


def plan_steps(house: House, names: Names) -> list[Step]:
    """The steps of a house's quest."""
    return [command_step(action, names) for action in house.plan]


def holder_name(place: int, names: Names) -> str:
    """Name of the container or supporter behind a place."""
    if place >= FIRST_SUPPORTER:
        return names.supporters[place - FIRST_SUPPORTER]
    return names.openables[place - FIRST_CONTAINER]


def _examined_name(kind: str, number: int, names: Names) -> str:
    if kind == "note":
        return "note"
    known = {
        "item": names.items,
        "openable": names.openables,
        "supporter": names.supporters,
        "room": names.rooms,
    }
    return known[kind][number]
