"""Which actions TextWorld's rules allow in a state: the same, in the same order, as its own search finds.

TextWorld's `State.all_instantiations` looks up and sorts the facts at each step of its search, and compares variables
in Python. `Matcher` sorts the facts of a predicate once, compares names (which are unique in a state), and keeps what
it found until one of the facts that it hangs on changes.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

Row = tuple[str, ...]
"""The names in one fact."""


@dataclass(frozen=True, slots=True)
class _Pattern:
    """A rule, made ready to be matched.

    Attributes:
        start: a value for each of the rule's placeholders; the constants (player, inventory) have theirs already.
        steps: for each precondition the signatures of facts that fit it, in TextWorld's order, and the placeholders
            that it names, by their places in `start`.
        signatures: all of the steps' signatures.
        has_free: a placeholder stands in no precondition, so anything may take its place.
    """

    rule: Any
    placeholders: tuple[Any, ...]
    start: tuple[str | None, ...]
    steps: tuple[tuple[tuple[Any, ...], tuple[int, ...]], ...]
    signatures: frozenset[Any]
    has_free: bool


class Matcher:
    """Finds the actions that rules allow in one state.

    Args:
        state: TextWorld's state; whoever changes it must call `forget`.
        kb: TextWorld's knowledge of the game.
    """

    def __init__(self, state: Any, kb: Any) -> None:
        self._state = state
        self._constants = kb.types.constants_mapping
        self._patterns = _patterns(kb)
        self._rows: dict[tuple[Any, ...], list[Row]] = {}
        self._found: dict[str, list[Any]] = {}

    def copy(self, state: Any) -> "Matcher":
        """The same for an equal state, which then changes by itself."""
        other: Matcher = object.__new__(Matcher)
        other._state, other._constants, other._patterns = state, self._constants, self._patterns
        other._rows, other._found = dict(self._rows), dict(self._found)
        return other

    def forget(self, facts: Iterable[Any]) -> None:
        """Drops what hangs on facts like these, which came or went."""
        changed = {fact.signature for fact in facts}
        for name in [name for name in self._found if not changed.isdisjoint(self._patterns[name].signatures)]:
            del self._found[name]
        for signatures in [signatures for signatures in self._rows if not changed.isdisjoint(signatures)]:
            del self._rows[signatures]

    def instances(self, rule: Any) -> list[Any]:
        """As `list(state.all_instantiations(rule, constants))`."""
        pattern = self._patterns[rule.name]
        if pattern.has_free:
            return list(self._state.all_instantiations(rule, self._constants))
        found = self._found.get(rule.name)
        if found is None:
            rows = [self._rows_of(signatures) for signatures, _ in pattern.steps]
            found = self._found[rule.name] = (
                [
                    self._action(pattern, values)
                    for values in _assignments(pattern, rows, list(pattern.start), 0)
                ]
                if all(rows)
                else []
            )
        return found

    def _rows_of(self, signatures: tuple[Any, ...]) -> list[Row]:
        rows = self._rows.get(signatures)
        if rows is None:
            rows = []
            for signature in signatures:
                rows += sorted(fact.names for fact in self._state.facts_with_signature(signature))
            self._rows[signatures] = rows
        return rows

    def _action(self, pattern: _Pattern, values: Iterable[Any]) -> Any:
        mapping = dict(self._constants)
        for placeholder, name in zip(pattern.placeholders, values, strict=True):
            if placeholder not in mapping:
                mapping[placeholder] = self._state.variable_named(name)
        return pattern.rule.instantiate(mapping)


def _assignments(
    pattern: _Pattern, rows: list[list[Row]], values: list[str | None], depth: int
) -> Iterator[tuple[str | None, ...]]:
    """Names for the placeholders with which all preconditions are facts; different placeholders, different names."""
    if depth == len(rows):
        yield tuple(values)
        return
    places = pattern.steps[depth][1]
    for row in rows[depth]:
        filled = []
        for place, name in zip(places, row, strict=True):
            if values[place] is None:
                if name in values:
                    break
                values[place] = name
                filled.append(place)
            elif values[place] != name:
                break
        else:
            yield from _assignments(pattern, rows, values, depth + 1)
        for place in filled:
            values[place] = None


def _patterns(kb: Any) -> dict[str, _Pattern]:
    return _patterns_of(kb.logic, tuple(kb.types.constants_mapping.items()))


@lru_cache(maxsize=64)
def _patterns_of(logic: Any, constants: tuple[tuple[Any, Any], ...]) -> dict[str, _Pattern]:
    """The patterns of all rules of a game's logic, which games share."""
    return {name: _pattern(logic, rule, dict(constants)) for name, rule in logic.rules.items()}


def _pattern(logic: Any, rule: Any, constants: dict[Any, Any]) -> _Pattern:
    # All constants count, as in TextWorld: none of them can stand for another placeholder of any rule.
    placeholders = tuple(dict.fromkeys([*constants, *rule.placeholders]))
    place = {placeholder: number for number, placeholder in enumerate(placeholders)}
    steps = tuple(
        (_signatures(logic, predicate), tuple(place[parameter] for parameter in predicate.parameters))
        for predicate in rule.preconditions
    )
    bound = {
        *constants,
        *(parameter for predicate in rule.preconditions for parameter in predicate.parameters),
    }
    return _Pattern(
        rule=rule,
        placeholders=placeholders,
        start=tuple(constants[one].name if one in constants else None for one in placeholders),
        steps=steps,
        signatures=frozenset(signature for signatures, _ in steps for signature in signatures),
        has_free=not bound.issuperset(rule.placeholders),
    )


def _signatures(logic: Any, predicate: Any) -> tuple[Any, ...]:
    types = [logic.types.get(name) for name in predicate.signature.types]
    make = type(predicate.signature)
    return tuple(
        make(predicate.name, [one.name for one in subtypes]) for subtypes in logic.types.multi_subtypes(types)
    )
