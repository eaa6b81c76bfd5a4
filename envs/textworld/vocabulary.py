"""Words that names are made of in TextWorld's house grammar, by the type of the thing named."""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.challenge import cooking_names
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.coin import CoinLevel
from turngym.envs.textworld.families.cooking import CookingLevel
from turngym.envs.textworld.families.simple import SimpleLevel
from turngym.envs.textworld.language import COMMAND_WORDS

TYPES = ("r", "d", "c", "s", "k", "f", "o")
"""Room, door, container, supporter, key, food, other object."""

# fmt: off
FIXED_WORDS = COMMAND_WORDS | {
    "a", "an", "and", "at", "by", "for", "i", "in", "is", "it", "of", "off", "on", "or", "out", "the",
    "to", "type", "well", "with", "your", "amazing", "big", "cool", "day", "door", "down", "exciting",
    "expensive", "fancy", "hot", "lit", "place", "room", "shut", "stand", "still", "style", "textworld",
    "used", "zone",
}
# fmt: on
"""Words that keep their meaning when names change: of the command language, grammatical, or common in ordinary text."""

_TAG = re.compile(r"#[^#]*#")
_WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


def all_words(level: Level) -> list[str]:
    """Every word of every name that a game of a level can have, sorted, in lower case.

    For building a tokenizer, so that names unseen in training are known words. Names come from the house grammar;
    coins, simple and cooking games have names of their own, and get the grammar's when they are renamed.
    """
    words = set().union(*name_words().values())
    if isinstance(level, CoinLevel):
        words.add("coin")
    if isinstance(level, CookingLevel):
        words |= _words_in(cooking_names()) | level.verbs | level.kept_words
    if isinstance(level, SimpleLevel):
        words |= _simple_words()
    return sorted(words)


@lru_cache(maxsize=1)
def _simple_words() -> frozenset[str]:
    # The same things in every game, of which one is made (0.2 s).
    game = backend.generate(SimpleLevel("sparse", "brief"), 1)
    names = [entity.name.lower() for entity in game.infos.values() if entity.name]
    return frozenset(_words_in(names))


def _words_in(names: Iterable[str]) -> set[str]:
    return {word for name in names for word in _WORD.findall(name)}


@lru_cache(maxsize=1)
def name_words() -> Mapping[str, frozenset[str]]:
    """Words by type of the thing they name, those of `FIXED_WORDS` among them (1.3 s, once in a process)."""
    grammar = backend.house_grammar()
    rooms = [alternative.full_form() for alternative in grammar.grammar["#room_type#"].alternatives]
    words: dict[str, set[str]] = {}
    for kind in TYPES:
        tags = [f"#({kind})#", *(f"#{room}_({kind})#" for room in rooms)]
        words[kind] = _words_below(grammar, [tag for tag in tags if grammar.has_tag(tag)])
    for tag in grammar.grammar:
        match = re.fullmatch(r"#\((\w)<->(\w)\)_match#", tag)
        for kind in match.groups() if match else ():
            words[kind] |= _words_below(grammar, [tag])
    return {kind: frozenset(found) for kind, found in words.items()}


def _words_below(grammar: Any, tags: list[str]) -> set[str]:
    # Token by token ("#elder#berry"), and not by whole names: their products fill the memory.
    words: set[str] = set()
    seen: set[str] = set()
    tokens = list(tags)
    while tokens:
        token = tokens.pop()
        if token in seen:
            continue
        seen.add(token)
        tag = _TAG.search(token)
        if tag is None:
            words.update(_WORD.findall(token.lower()))
        elif grammar.has_tag(tag.group()):
            for alternative in grammar.grammar[tag.group()].alternatives:
                tokens.extend((token[: tag.start()] + alternative.full_form() + token[tag.end() :]).split())
    return words
