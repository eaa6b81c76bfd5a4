"""Games of TextWorld's challenges: those of `tw-make`, at half the price and the same in every process."""

import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from turngym.errors import MissingExtraError

NEEDS_TEXTWORLD = "The TextWorld environments need textworld: pip install 'turngym[textworld]'"

try:
    import textworld
    from textworld.challenges import CHALLENGES
    from textworld.challenges.tw_cooking import cooking
    from textworld.generator import data as knowledge
    from textworld.generator.game import Game, GameProgression
    from textworld.generator.inform7 import Inform7Game
except ImportError as error:
    raise MissingExtraError(NEEDS_TEXTWORLD) from error

_LOCK = threading.Lock()
_LOAD = knowledge.KnowledgeBase.load

if (knowledge.KB.logic_path, knowledge.KB.text_grammars_path) != (
    knowledge.LOGIC_DATA_PATH,
    knowledge.TEXT_GRAMMARS_PATH,
):
    # TextWorld prefers a folder `textworld_data` of the working directory; but a task id alone tells which game it is.
    knowledge.KB = _LOAD(logic_path=knowledge.LOGIC_DATA_PATH, grammar_path=knowledge.TEXT_GRAMMARS_PATH)


def make_challenge(name: str, settings: Mapping[str, Any], seed: int) -> Any:
    """The game of `tw-make NAME` with these settings, not compiled (0.1 to 0.6 s; hard treasure hunts several).

    Two things that `tw-make` leaves to chance (PYTHONHASHSEED) stand in a fixed order: a game's excluded names, and
    the ways to fail a quest, which the story's bytes depend on.
    """
    options = textworld.GameOptions()
    options.seeds = seed
    _, make, _ = CHALLENGES[name]
    with _LOCK, _walkthroughs_by_logic(), _rules_read_once():
        game = make(settings=dict(settings), options=options)
    game.grammar.options.names_to_exclude.sort(key=str)
    for quest in game.quests:
        quest.fail_events = sorted(quest.fail_events, key=_rank)
    return game


def house_rules() -> Any:
    """TextWorld's own knowledge base, which games don't change; reading it anew for each takes 0.15 s."""
    return knowledge.KB


@lru_cache(maxsize=1)
def cooking_names() -> tuple[str, ...]:
    """Names that things and rooms have in cooking games, and words of its recipes, in lower case."""
    doors = [name for door in cooking.DOORS for name in door["names"]]
    rooms = [room for group in cooking.ROOMS for room in group]
    done = [*cooking.TYPES_OF_COOKING, *cooking.TYPES_OF_CUTTING]
    verbs = [*cooking.TYPES_OF_COOKING_VERBS.values(), *cooking.TYPES_OF_CUTTING_VERBS.values()]
    return tuple(name.lower() for name in (*cooking.FOODS, *cooking.ENTITIES, *doors, *rooms, *done, *verbs))


def _rank(event: Any) -> tuple[bool, str]:
    # The challenge writes "consumed" first and then iterates over a set; equal names keep their order.
    name = str(event.condition.preconditions[0].name)
    return name != "consumed", name


@contextmanager
def _walkthroughs_by_logic() -> Iterator[None]:
    """Lets TextWorld follow a walkthrough in its logic: it would compile a story for that, only to throw it away."""
    maker = textworld.GameMaker
    original = maker.set_walkthrough
    maker.set_walkthrough = _set_walkthrough
    try:
        yield
    finally:
        maker.set_walkthrough = original


@contextmanager
def _rules_read_once() -> Iterator[None]:
    """Lets a challenge that was made before find its knowledge base, which no game changes, read already."""
    base = knowledge.KnowledgeBase
    original = base.__dict__["load"]
    base.load = _read_rules
    try:
        yield
    finally:
        base.load = original


@lru_cache(maxsize=16)
def _read_rules(*paths: str, **named_paths: str) -> Any:
    return _LOAD(*paths, **named_paths)


def _set_walkthrough(maker: Any, commands: Sequence[str]) -> None:
    """Gives each quest's event the actions that lead to it, as `GameMaker.set_walkthrough` does."""
    game = Game.deserialize(maker.build().serialize())
    writer, now = Inform7Game(game), GameProgression(game)
    events = [event for quest in maker.quests for event in quest.win_events]
    progressions = [event for quest in now.quest_progressions for event in quest.win_events]
    actions: list[Any] = []
    for number, command in enumerate(commands):
        open_events = [not progression.triggered for progression in progressions]
        fitting = [
            action for action in now.valid_actions if writer.gen_commands_from_actions([action]) == [command]
        ]
        if fitting:
            # Of several, Inform carries out the one with most conditions: all ingredients, and not the first alone.
            actions.append(max(fitting, key=lambda action: len(action.preconditions)))
            now.update(actions[-1])
        else:
            # A command that fails ("open fridge" again) counts as the last action, as in TextWorld's own tracking.
            actions.append(actions[-1])
        for event, progression, was_open in zip(events, progressions, open_events, strict=True):
            if was_open and progression.triggered:
                event.actions, event.commands = actions, commands[: number + 1]
