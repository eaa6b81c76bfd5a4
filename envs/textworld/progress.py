"""What TextWorld's logic knows of a running game: the plan, the admissible commands, the facts."""

from typing import Any

from turngym.envs.textworld import backend


class Progress:
    """TextWorld's own logic, following a game by Inform's action events: the plan and the admissible commands."""

    def __init__(self, game: dict[str, Any]) -> None:
        self._game = backend.load_logic(game)
        self._inform = backend.command_writer(self._game)
        names = [
            entity.name.lower() for entity in self._game.infos.values() if entity.name and entity.type != "r"
        ]
        inside = [
            (one, other) for one in names for other in names if one != other and f" {one} " in f" {other} "
        ]
        # Names within longer ones, "safe" beside "red safe": Inform's parser fails with some of their commands.
        self._nested = {one for one, _ in inside}
        # It reads "put candy bar on bar" as to put it on itself, and "insert red key into safe" not at all.
        self._dead = {
            f"{verb} {thing} {word} {one}"
            for one, other in inside
            for thing in names
            if set(thing.split()) & (set(other.split()) - set(one.split()))
            for verb, word in (("put", "on"), ("insert", "into"))
        }
        self.restart()

    def restart(self) -> None:
        """Back to the start."""
        self._now = backend.start_logic(self._game)

    def follow(self, events: tuple[str, ...]) -> None:
        """Applies the actions that Inform reported as succeeded; those outside the logic (look, jump) change nothing."""
        for event in events:
            action = self._inform.detect_action(event, self._now.valid_actions)
            if action is None and event.startswith("taking the "):
                action = self._taken_out(event.removeprefix("taking the "))
            if action is not None:
                self._now.update(action)

    def plan(self) -> list[str] | None:
        """Commands to the goal as TextWorld plans them, [] when it is reached; None when there is no way."""
        if self._now.completed:
            return []
        policy = self._now.winning_policy
        return None if policy is None else self._lower(policy)

    def commands(self) -> list[str]:
        """Admissible commands, sorted."""
        commands = set(self._lower(self._now.valid_actions))
        return sorted(commands - self._dead)

    def facts(self) -> list[str]:
        """The facts of the world, sorted, with TextWorld's ids of entities."""
        return sorted(str(fact) for fact in self._now.state.facts)

    def completed(self) -> list[bool]:
        """Which quests are completed."""
        return [bool(quest.completed) for quest in self._now.quest_progressions]

    def _taken_out(self, name: str) -> Any:
        # "get key" takes out of a box or off a shelf under the event of taking from the floor, where "take key"
        # has an event that names the box. TextWorld's own tracking loses its way there.
        for action in self._now.valid_actions:
            if action.name.split("/")[0] == "take":
                command = self._inform.gen_commands_from_actions([action])[0].lower()
                if command.startswith(f"take {name.lower()} from "):
                    return action
        return None

    def _lower(self, actions: Any) -> list[str]:
        commands = [command.lower() for command in self._inform.gen_commands_from_actions(actions)]
        return [self._understood(command) for command in commands] if self._nested else commands

    def _understood(self, command: str) -> str:
        # "take latchkey from safe" fails where a red safe is about, too, and "take latchkey" works (1 game in 250).
        taken, found, source = command.partition(" from ")
        return taken if found and source in self._nested else command
