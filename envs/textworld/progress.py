"""What TextWorld's logic knows of a running game: the plan, the admissible commands, the facts."""

from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.nested import nested_names, understood
from turngym.envs.textworld.way import way_to

_PREPARE = "prepare meal"


class Progress:
    """TextWorld's own logic, following a game by Inform's action events: the plan and the admissible commands.

    What an honest expert has learnt is followed, too: whether it has looked into the inventory and examined the
    document, where the level has any.
    """

    def __init__(self, game: dict[str, Any], level: Level) -> None:
        self._game = backend.load_logic(game)
        self._start = backend.start_logic(self._game)
        self._inform = backend.command_writer(self._game)
        self._level = level
        infos = self._game.infos.items()
        self._names = {number: entity.name.lower() for number, entity in infos if entity.name}
        names = [entity.name.lower() for _, entity in infos if entity.name and entity.type != "r"]
        self._nested = nested_names(names)
        # It reads "put candy bar on bar" as to put it on itself, and "insert red key into safe" not at all.
        self._dead = {
            f"{verb} {thing} {word} {one}"
            for one in self._nested
            for other in names
            if one != other and f" {one} " in f" {other} "
            for thing in names
            if set(thing.split()) & (set(other.split()) - set(one.split()))
            for verb, word in (("put", "on"), ("insert", "into"))
        }
        self.restart()

    def restart(self) -> None:
        """Back to the start."""
        self._now = self._start.copy()
        self._to_read = self._level.document
        self._to_look = self._level.checks_inventory

    def follow(self, events: tuple[str, ...]) -> None:
        """Applies the actions that Inform reported as succeeded; those outside the logic (look, jump) change nothing."""
        for event in events:
            if event == "taking inventory":
                self._to_look = False
            if event == f"examining the {self._to_read}":
                self._to_read = ""
            action = self._inform.detect_action(event, self._now.actions_behind(event))
            if action is None and event.startswith("taking the "):
                action = self._taken_out(event.removeprefix("taking the "))
            if action is None and event.startswith("entering "):
                action = self._gone_through(event.removeprefix("entering ").removeprefix("the "))
            if action is not None:
                self._now.update(action)

    def plan(self) -> list[str] | None:
        """Commands to the goal, [] when it is reached; None when there is no way.

        TextWorld's plan from here; where the expert has not yet looked or read, that comes first.
        """
        if self._now.completed:
            return []
        policy = self._now.winning_policy
        if policy is None:
            return None
        look = ["inventory"] if self._to_look else []
        return look + (self._read_first(self._lower(policy)) if self._to_read else self._lower(policy))

    def commands(self) -> list[str]:
        """Admissible commands, sorted."""
        commands = set(self._lower(self._now.valid_actions)) - self._dead
        # TextWorld lists it for any ingredient in hand, and Inform refuses while another is missing or unprepared.
        if _PREPARE in commands and not self._is_meal_ready():
            commands.remove(_PREPARE)
        return sorted(commands)

    def facts(self) -> list[str]:
        """The facts of the world, sorted, with TextWorld's ids of entities."""
        return sorted(str(fact) for fact in self._now.state.facts)

    def conditions(self) -> list[str]:
        """The facts about one thing alone (open, raw, chopped), sorted; of carrying capacity none."""
        facts = (fact for fact in self._now.state.facts if len(fact.arguments) == 1)
        return sorted(str(fact) for fact in facts if fact.arguments[0].type != "slot")

    def learnt(self) -> list[bool]:
        """Whether the inventory was looked into, and the document examined; True where the level asks for none."""
        return [not self._to_look, not self._to_read]

    def completed(self) -> list[bool]:
        """Which quests are completed."""
        return [bool(quest.completed) for quest in self._now.quest_progressions]

    def _read_first(self, plan: list[str]) -> list[str]:
        """A plan that examines the document as soon as it can, and goes on from there."""
        then, first = self._now.copy(), list[str]()
        while (way := way_to(then.state.facts, self._names, self._to_read)) is None:
            # Locks bar the way: whatever the goal is, the plan's own start opens them.
            if not plan:
                return first
            first.append(plan[0])
            self._apply(then, plan[0])
            plan = self._lower(then.winning_policy or ())
        for command in way:
            self._apply(then, command)
        return [*first, *way, f"examine {self._to_read}", *self._lower(then.winning_policy or ())]

    def _apply(self, now: Any, command: str) -> None:
        fitting = [action for action in now.valid_actions if self._lower([action]) == [command]]
        now.update(max(fitting, key=lambda action: len(action.preconditions)))

    def _is_meal_ready(self) -> bool:
        facts = list(self._now.state.facts)
        carried = {
            fact.arguments[0].name for fact in facts if fact.name == "in" and fact.arguments[1].name == "I"
        }
        kinds: dict[str, set[str]] = {}
        for fact in facts:
            if len(fact.arguments) == 1:
                kinds.setdefault(fact.arguments[0].name, set()).add(fact.name)
        wanted = [[one.name for one in fact.arguments] for fact in facts if fact.name == "base"]
        return all(food in carried and kinds[ingredient] <= kinds[food] for food, ingredient in wanted)

    def _taken_out(self, name: str) -> Any:
        # "get key" takes out of a box or off a shelf under the event of taking from the floor, where "take key"
        # has an event that names the box. TextWorld's own tracking loses its way there.
        for action in self._now.valid_actions:
            if action.name.split("/")[0] == "take":
                command = self._inform.gen_commands_from_actions([action])[0].lower()
                if command.startswith(f"take {name.lower()} from "):
                    return action
        return None

    def _gone_through(self, name: str) -> Any:
        # "enter gate" goes where the gate leads, under an event of its own, and TextWorld knows directions only.
        behind = {
            fact.arguments[2].name
            for fact in self._now.state.facts
            if fact.name == "link" and self._names[fact.arguments[1].name] == name.lower()
        }
        for action in self._now.valid_actions:
            if action.name.startswith("go/"):
                room = next(fact.arguments[1].name for fact in action.postconditions if fact.name == "at")
                if room in behind:
                    return action
        return None

    def _lower(self, actions: Any) -> list[str]:
        commands = [command.lower() for command in self._inform.gen_commands_from_actions(actions)]
        return [understood(command, self._nested) for command in commands]
