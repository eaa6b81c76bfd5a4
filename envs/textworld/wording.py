"""Demonstrations in other words: the objective told differently, things and rooms renamed, or the goal's outline alone.

All work on text alone and need the game's card only, so they never start a game.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np

from turngym.envs.honesty import Seen
from turngym.envs.textworld.card import Card
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.games import load_card
from turngym.envs.textworld.language import COMMAND_WORDS, DIRECTIONS
from turngym.envs.textworld.levels import parse_task
from turngym.envs.textworld.nested import nested_names, understood
from turngym.envs.textworld.survey_table import narrow_words
from turngym.envs.textworld.vocabulary import FIXED_WORDS, TYPES, name_words
from turngym.types import Author, Demonstration

_TRIES = 30
# An article is matched with its word, so that it can follow the new word's first letter. After "type" stands a letter.
_ARTICLE_AND_WORD = re.compile(r"((?<![a-z0-9'-])(?<!type )an? )?([a-z0-9]+(?:['-][a-z0-9]+)*)")
_BORDER = "\0"


def reword(demo: Demonstration, rng: np.random.Generator) -> Demonstration:
    """The demonstration under another objective text that reveals the same names; unchanged where none is known."""
    card = load_card(*parse_task(demo.task))
    if not card.reworded or card.objective not in demo.instructions:
        return demo
    objective = card.reworded[int(rng.integers(len(card.reworded)))]
    return replace(
        demo,
        instructions=demo.instructions.replace(card.objective, objective),
        # The command "goal" prints it.
        observations=tuple(text.replace(card.objective, objective) for text in demo.observations),
    )


def outline(demo: Demonstration) -> Demonstration:
    """The goal and the whole walkthrough, with empty observations: a third of the tokens, for the first steps.

    Where the walkthrough uses a name or a direction that the goal does not tell, an expert without observations
    would guess, so such a demonstration is unchanged.
    """
    level, seed = parse_task(demo.task)
    card, allowed = load_card(level, seed), (COMMAND_WORDS | level.verbs) - DIRECTIONS
    things = (name for name, kind in zip(card.names, card.types, strict=True) if kind != "r")
    nested = nested_names(things)
    commands = tuple(understood(command, nested) for command in card.walkthrough)
    shown = Seen()
    shown.add(demo.instructions)
    if any(shown.unseen(command, allowed) for command in commands):
        return demo
    expert: Author = "expert"
    return replace(
        demo, observations=("",) * len(commands), commands=commands, authors=(expert,) * len(commands)
    )


def rename(demo: Demonstration, rng: np.random.Generator, *, wide: bool) -> Demonstration:
    """The demonstration with other names of things and rooms, in instructions, observations and commands alike.

    Names change word by word, so a key and its box go on sharing their adjective. Half of the new words come from
    names of the same type of thing, half from all names. No new word occurs in the demonstration already, and
    different words stay different, so that what is revealed when doesn't change. Words of `FIXED_WORDS` stay, and
    where a name tells what a thing is for (stove, kitchen), so do its words.

    Args:
        demo: a demonstration in a game of this environment.
        rng: where the choice comes from.
        wide: draw from every name that TextWorld can make, and not only from those of training games.
    """
    level, seed = parse_task(demo.task)
    card = load_card(level, seed)
    whole = _BORDER.join((demo.instructions, *demo.observations, *demo.commands))
    taken = set(_words_of(whole.lower()))
    taken.update(word for name in card.names for word in name.split())
    new = _new_words(card, taken, _kept(card, level), _pools(wide), rng)
    if not new:
        return demo
    parts = _renamed(whole, new).split(_BORDER)
    middle = 1 + len(demo.observations)
    return replace(
        demo, instructions=parts[0], observations=tuple(parts[1:middle]), commands=tuple(parts[middle:])
    )


def _words_of(text: str) -> list[str]:
    return [word for _, word in _ARTICLE_AND_WORD.findall(text)]


def _kept(card: Card, level: Level) -> frozenset[str]:
    """Words that no name loses."""
    # Types beyond the seven (oven, meal) are what commands and recipes speak of.
    others = [name for name, kind in zip(card.names, card.types, strict=True) if kind not in TYPES]
    return FIXED_WORDS | level.kept_words | {word for name in others for word in name.split()}


def _new_words(
    card: Card,
    taken: set[str],
    kept: frozenset[str],
    pools: Mapping[str, Sequence[str]],
    rng: np.random.Generator,
) -> dict[str, str]:
    new: dict[str, str] = {}
    for name, kind in zip(card.names, card.types, strict=True):
        for word in name.split():
            if word in new or word in kept:
                continue
            same_type = len(word) > 1 and rng.random() < 0.5
            pool = pools["letter"] if len(word) == 1 else pools[kind] if same_type else pools["all"]
            for place in rng.integers(len(pool), size=_TRIES).tolist():
                if pool[place] not in taken:
                    new[word] = pool[place]
                    taken.add(pool[place])
                    break
    return new


def _renamed(text: str, new: Mapping[str, str]) -> str:
    def put(match: re.Match[str]) -> str:
        article, word = match.groups()
        stem = word if word in new else word.removesuffix("'s")
        if stem not in new:
            return match.group()
        if article:
            article = "an " if new[stem][0] in "aeiou" else "a "
        return f"{article or ''}{new[stem]}{word[len(stem) :]}"

    return _ARTICLE_AND_WORD.sub(put, text)


@lru_cache(maxsize=2)
def _pools(wide: bool) -> Mapping[str, Sequence[str]]:
    words = name_words() if wide else narrow_words()
    usable = {
        kind: sorted(word for word in found - FIXED_WORDS if len(word) > 1) for kind, found in words.items()
    }
    everything = sorted(set().union(*usable.values()))
    # Without a and i, which are words of their own.
    # No game of those that the narrow words come from has a named door.
    usable = {kind: found or everything for kind, found in usable.items()}
    return {**usable, "all": everything, "letter": list("bcdefghjklmnopqrstuvwxyz0123456789")}
