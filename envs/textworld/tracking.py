"""TextWorld's tracking of a game, worked out only as far as somebody asks.

TextWorld's `GameProgression` lists all valid actions after each action, and orders the quest's actions anew wherever
they are needed. That is half the price of a turn, and a turn needs little of it: the one action behind Inform's
event, and how many commands are left. `Tracking` is that class with what it knows of a moment, and of a tree of
actions, worked out when asked for and then kept; what it answers is the same, in the same order. Rules, trees
and quests are TextWorld's; what stands here in place of its code is the search for valid actions (`matching`) and for
shorter ways (`_shorter`).
"""

import copy
from collections.abc import Iterable, Iterator
from typing import Any

from turngym.envs.textworld.challenge import NEEDS_TEXTWORLD
from turngym.envs.textworld.matching import Matcher
from turngym.errors import MissingExtraError

try:
    from textworld.generator.game import (
        ActionDependencyTree,
        ActionDependencyTreeElement,
        EventProgression,
        GameProgression,
        QuestProgression,
    )
except ImportError as error:
    raise MissingExtraError(NEEDS_TEXTWORLD) from error


class Tracking(GameProgression):  # type: ignore[misc]  # textworld has no types
    """`GameProgression` of a game from its start, without the list of valid actions until it is asked for."""

    def __init__(self, game: Any) -> None:
        # TextWorld's own would list the valid actions, so it isn't called.
        self.game = game
        self.state = game.world.state.copy()
        self.quest_progressions = [_Quest(quest, game.kb) for quest in game.quests]
        for quest in self.quest_progressions:
            quest.update(action=None, state=self.state)
        self._matcher = Matcher(self.state, game.kb)
        events = game.kb.inform7_events
        self._rules = [
            (rule, events.get(rule.name, "").partition("{")[0].lower()) for rule in game.kb.rules.values()
        ]
        self._known: dict[str, Any] = {}

    def copy(self) -> "Tracking":
        """The same moment, which goes on by itself; what is known of it is shared."""
        other = copy.copy(self)
        other.state = self.state.copy()
        other._matcher = self._matcher.copy(other.state)
        other.quest_progressions = [quest.copy() for quest in self.quest_progressions]
        return other

    def update(self, action: Any) -> None:
        """Carries out an action."""
        self._known = {}
        if self.state.apply(action):
            self._matcher.forget(action.added | action.removed)
        for quest in self.quest_progressions:
            quest.update(action, self.state)

    @property
    def valid_actions(self) -> list[Any]:
        """Actions that are valid now, in TextWorld's order."""
        if "actions" not in self._known:
            self._known["actions"] = self._instances(rule for rule, _ in self._rules)
        actions: list[Any] = self._known["actions"]
        return actions

    def actions_behind(self, event: str) -> list[Any]:
        """Those of `valid_actions`, in their order, of the rules whose event starts with the same words.

        All others have another event, so TextWorld's `detect_action` finds the same among these.
        """
        words = event.lower()
        return self._instances(rule for rule, start in self._rules if words.startswith(start))

    @property
    def winning_policy(self) -> tuple[Any, ...] | None:
        """Actions to the goal; None where there is no way, or it is reached."""
        if "policy" not in self._known:
            self._known["policy"] = self._policy()
        policy: tuple[Any, ...] | None = self._known["policy"]
        return policy

    def _policy(self) -> Any:
        open_quests = [
            quest
            for quest in self.quest_progressions
            if quest.completable and not quest.done and not quest.quest.optional
        ]
        tree = open_quests[0]._tree if len(open_quests) == 1 and not self.done else None
        if tree is None:
            return super().winning_policy
        # TextWorld merges the open quests' trees and flattens the outcome; of one tree that is the tree itself.
        return tuple(action for action in tree.flatten() if action.name != "trigger")

    def _instances(self, rules: Iterable[Any]) -> list[Any]:
        return [action for rule in rules for action in self._matcher.instances(rule)]


class _Quest(QuestProgression):  # type: ignore[misc]
    """`QuestProgression` whose events are `_Event`s."""

    def __init__(self, quest: Any, kb: Any) -> None:
        super().__init__(quest, kb)
        self.win_events = [_Event(event, kb) for event in quest.win_events]
        self.fail_events = [_Event(event, kb) for event in quest.fail_events]

    def copy(self) -> "_Quest":
        other = copy.copy(self)  # TextWorld's own builds all trees anew before it replaces them.
        other.win_events = [event.copy() for event in self.win_events]
        other.fail_events = [event.copy() for event in self.fail_events]
        return other


class _Event(EventProgression):  # type: ignore[misc]
    """`EventProgression` whose tree is a `_Tree`, and which copies the facts less often."""

    def __init__(self, event: Any, kb: Any) -> None:
        super().__init__(event, kb)
        self._tree: _Tree = _Tree(kb=kb, element_type=ActionDependencyTreeElement, trees=[self._tree])

    def copy(self) -> "_Event":
        other = copy.copy(self)
        other._tree = self._tree.copy()
        return other

    def compress_policy(self, state: Any) -> bool:
        """Leaves out actions that the state makes needless; returns whether there were any."""
        policy = self._tree.flatten()
        facts = set(state.facts) if len(policy) > 1 else set()
        is_shorter = False
        while (shorter := _shorter(policy, facts)) is not None:
            self._tree = _Tree(kb=self._kb, element_type=ActionDependencyTreeElement)
            for action in reversed(shorter):
                self._tree.push(action)
            self._policy = policy = shorter
            is_shorter = True
        return is_shorter


class _Tree(ActionDependencyTree):  # type: ignore[misc]
    """`ActionDependencyTree` that looks for its leaves when asked for them, and remembers its order till it changes."""

    def _update(self) -> None:
        # TextWorld calls it at the end of whatever changes the tree, to look for the leaves at once.
        self._has_leaves = False
        self._order: tuple[Any, ...] | None = None

    @property
    def leaves_elements(self) -> list[Any]:
        self._find_leaves()
        return list(self._leaves_elements)

    @property
    def leaves_values(self) -> list[Any]:
        self._find_leaves()
        return list(self._leaves_values)

    def __iter__(self) -> Iterator[Any]:
        for root in self.roots:
            yield from _nodes_of(root, [])

    def flatten(self) -> tuple[Any, ...]:
        """The actions in the order in which they can be done."""
        if self._order is None:
            self._order = tuple(super().flatten())
        return self._order

    def copy(self) -> "_Tree":
        other: _Tree = super().copy()
        other._order = self._order
        return other

    def _find_leaves(self) -> None:
        if not self._has_leaves:
            super()._update()
            self._has_leaves = True


def _nodes_of(node: Any, found: list[Any]) -> list[Any]:
    """Appends the nodes of a tree, children first: TextWorld's order without its copies at each level."""
    for child in node.children:
        _nodes_of(child, found)
    found.append(node)
    return found


def _shorter(policy: tuple[Any, ...], facts: set[Any]) -> tuple[Any, ...] | None:
    """The first way that leaves out one run of actions, tried in TextWorld's order; None where there is none."""
    for kept in range(len(policy)):
        for rest in range(len(policy) - 1, kept, -1):
            if _is_applicable(policy[rest:], facts):
                return policy[:kept] + policy[rest:]
        if not _fits(policy[kept], facts):
            return None  # All that follow start with it.
        facts = _after(policy[kept], facts)
    return None


def _is_applicable(actions: tuple[Any, ...], facts: set[Any]) -> bool:
    """As `State.is_sequence_applicable`, which would copy the facts before it looks at the first action."""
    for action in actions:
        if not _fits(action, facts):
            return False
        facts = _after(action, facts)
    return True


def _fits(action: Any, facts: set[Any]) -> bool:
    return len(action._pre_set & facts) == len(action.preconditions)


def _after(action: Any, facts: set[Any]) -> set[Any]:
    after: set[Any] = facts - action._pre_set | action._post_set
    return after
