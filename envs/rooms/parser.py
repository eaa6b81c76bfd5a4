"""From what an agent wrote to an action: the usual variations are understood, junk gets an obstacle."""

import re
from collections.abc import Iterable

from turngym.envs.rooms.names import Names
from turngym.envs.rooms.world import (
    CARRIED,
    DIRECTIONS,
    EXAMINED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    INVENTORY,
    LOOK,
    Action,
    Obstacle,
    State,
    World,
    is_visible,
    obstacle,
)

COMPOUND = re.compile(r"[\n\r;]|[.!?]\s*(?=\w)|(?:^|[\s,])then(?:\s|$)", re.IGNORECASE)
"""Several commands in one: a line break, a semicolon, a full stop with more behind it, or 'then'."""

_VERBS = (
    "go",
    "take",
    "drop",
    "open",
    "close",
    "unlock",
    "lock",
    "put",
    "insert",
    "eat",
    "look",
    "examine",
    "inventory",
)
COMMAND_WORDS = frozenset(_VERBS + ("note", "from", "with", "on", "into") + DIRECTIONS)

_FILLERS = frozenset({"the", "a", "an", "my", "please"})
_SYNONYMS = {
    "get": "take",
    "grab": "take",
    "pick": "take",
    "walk": "go",
    "move": "go",
    "run": "go",
    "shut": "close",
    "place": "put",
    "l": "look",
    "x": "examine",
    "inspect": "examine",
    "read": "examine",
    "i": "inventory",
    "inv": "inventory",
}
_SHORT_WAYS = dict(zip("nsew", range(4), strict=True)) | {way: n for n, way in enumerate(DIRECTIONS)}
_JOINTS = {
    "take": ("out of", "from", "off", "in", "on"),
    "put": ("into", "inside", "in", "onto", "on"),
    "insert": ("into", "inside", "in", "onto", "on"),
    "unlock": ("with", "using"),
    "lock": ("with", "using"),
}

Entity = tuple[str, int]
_UNSEEN, _CANNOT, _UNCLEAR = Obstacle("unseen"), Obstacle("cannot"), Obstacle("unclear")


class Parser:
    """Reads commands about one task."""

    def __init__(self, world: World, names: Names) -> None:
        self._world = world
        self._names: dict[str, Entity] = {}
        for kind, known in (
            ("room", names.rooms),
            ("supporter", names.supporters),
            ("openable", names.openables),
            ("item", names.items),
        ):
            self._names.update({name: (kind, number) for number, name in enumerate(known)})
        if world.note >= 0:
            self._names["note"] = ("note", 0)
        self._read: dict[str, Action] = {}

    def __deepcopy__(self, memo: dict[int, object]) -> "Parser":
        return self

    def read(self, command: str, state: State) -> Action | Obstacle:
        """The action that a command means in a state, possible or not; an obstacle where it means none."""
        known = self._read.get(command)
        if known is not None:
            return known
        words = [word for word in command.lower().strip().rstrip(".!").split() if word not in _FILLERS]
        if not words:
            return _CANNOT
        words[0] = _SYNONYMS.get(words[0], words[0])
        if words[:2] == ["take", "up"] or words[:2] == ["look", "at"]:
            words = ["examine" if words[0] == "look" else "take", *words[2:]]
        verb, rest = words[0], " ".join(words[1:])
        if verb in _SHORT_WAYS and not rest:
            return Action("go", _SHORT_WAYS[verb])
        if verb == "go":
            way = _SHORT_WAYS.get(rest.removeprefix("to "), -1)
            return Action("go", way) if way >= 0 else Obstacle("no_exit")
        if verb == "look" and rest in ("", "around"):
            return LOOK
        if verb == "inventory" and not rest:
            return INVENTORY
        if verb not in _VERBS or not rest:
            return _CANNOT
        first, second = _split(verb, rest)
        if first in self._names and (not second or second in self._names):
            action = self._action(verb, self._names[first], self._names.get(second))
            if isinstance(action, Action) and len(self._read) < 10_000:
                self._read[command] = action
            return action
        return self._guess(verb, first, second, state)

    def _guess(self, verb: str, first: str, second: str, state: State) -> Action | Obstacle:
        """Where names are cut short: the one possible action that fits."""
        found = [
            self._action(verb, one, other)
            for one in self._candidates(first, state)
            for other in (self._candidates(second, state) if second else (None,))
        ]
        actions = [action for action in found if isinstance(action, Action)]
        possible = [action for action in actions if obstacle(self._world, state, action) is None]
        if len(possible) == 1:
            return possible[0]
        if possible:
            return _UNCLEAR
        return actions[0] if actions else found[0] if found else _UNSEEN

    def _candidates(self, phrase: str, state: State) -> Iterable[Entity]:
        """What is here and has all words of the phrase in its name."""
        if phrase in self._names:
            return [self._names[phrase]]
        asked = set(phrase.split())
        return [
            entity
            for name, entity in self._names.items()
            if asked <= set(name.split()) and self._is_here(entity, state)
        ]

    def _is_here(self, entity: Entity, state: State) -> bool:
        kind, number = entity
        if kind == "item":
            place = state.places[number]
            return place == CARRIED or is_visible(self._world, state, place)
        return obstacle(self._world, state, Action("examine", number, EXAMINED.index(kind))) is None

    def _action(self, verb: str, first: Entity, second: Entity | None) -> Action | Obstacle:
        kind, number = first
        if verb == "examine":
            return _CANNOT if second else Action("examine", number, EXAMINED.index(kind))
        if verb in ("open", "close"):
            return Action(verb, number) if kind == "openable" and not second else _CANNOT
        if verb in ("unlock", "lock"):
            if kind != "openable":
                return _CANNOT
            if second is None:
                return Obstacle("which_key")
            return Action(verb, number, second[1]) if second[0] == "item" else _CANNOT
        if kind != "item":
            return _CANNOT
        if verb in ("drop", "eat"):
            return _CANNOT if second else Action(verb, number)
        if second is None:
            return Action("take", number) if verb == "take" else _CANNOT
        return self._placed(verb, number, second)

    def _placed(self, verb: str, item: int, holder: Entity) -> Action | Obstacle:
        kind, number = holder
        if kind == "supporter":
            return Action("take" if verb == "take" else "put", item, FIRST_SUPPORTER + number)
        if kind == "openable" and number < len(self._world.containers):
            return Action("take" if verb == "take" else "insert", item, FIRST_CONTAINER + number)
        return _CANNOT


def _split(verb: str, rest: str) -> tuple[str, str]:
    for joint in _JOINTS.get(verb, ()):
        first, found, second = rest.partition(f" {joint} ")
        if found:
            return first.strip(), second.strip()
    return rest, ""
