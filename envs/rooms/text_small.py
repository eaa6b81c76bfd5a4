"""The small vocabulary: few words, short lines, one wording for each message."""

import re

from turngym.envs.rooms.names import Pools
from turngym.envs.rooms.parser import COMMAND_WORDS
from turngym.envs.rooms.text import Text
from turngym.envs.rooms.world import LATCHES

SMALL = Text(
    pools=Pools(
        rooms=(
            "kitchen",
            "cellar",
            "attic",
            "garden",
            "hall",
            "study",
            "bedroom",
            "porch",
            "shed",
            "pantry",
        ),
        colours=("red", "blue", "green", "white", "black", "gold"),
        things=("book", "cup", "lamp", "coin"),
        foods=("apple", "bread"),
        containers=("chest", "box", "crate"),
        supporters=("table", "shelf", "bench"),
    ),
    thing="{x}",
    comma=" , ",
    last_comma=" , ",
    frames={
        "brief": ("your goal : {goal} .", "goal : {goal} ."),
        "none": ("find out what to do .",),
    },
    orders=(("first", "then", "then"), ("", "then", "then"), ("first", "then", "last")),
    step_comma=" , ",
    full_stop=" .",
    steps={
        "go": ("go {way}",),
        "take": ("take {x}",),
        "take_from": ("take {x} from {y}",),
        "drop": ("drop {x}",),
        "put": ("put {x} on {y}",),
        "insert": ("insert {x} into {y}",),
        "eat": ("eat {x}",),
        "open": ("open {x}",),
        "close": ("close {x}",),
        "unlock_with": ("unlock {x} with {y}",),
        "lock_with": ("lock {x} with {y}",),
        "unlock": ("unlock {x}",),
        "lock": ("lock {x}",),
        "drop_in": ("drop {x} in {y}",),
        "go_to": ("go to {x}",),
    },
    messages={
        "room": ("{x} .",),
        "floor": ("floor : {things} .",),
        "supporter": ("{x} : {things} .",),
        "supporter_empty": ("{x} .",),
        "container": ("open {x} : {things} .",),
        "container_open": ("open {x} .",),
        "container_closed": ("closed {x} .",),
        "container_locked": ("locked {x} .",),
        "note": ("note .",),
        "exits": ("exits : {things} .",),
        "exit": ("{way}",),
        "exit_open": ("{way} open {x}",),
        "exit_closed": ("{way} closed {x}",),
        "exit_locked": ("{way} locked {x}",),
        "read": ("note : {goal} .",),
        "item": ("you see {x} .",),
        "inventory": ("you carry {things} .",),
        "inventory_empty": ("you carry nothing .",),
        "take": ("done .",),
        "drop": ("done .",),
        "put": ("done .",),
        "insert": ("done .",),
        "eat": ("done .",),
        "open": ("open {x} .",),
        "open_on": ("open {x} : {things} .",),
        "open_empty": ("open {x} .",),
        "close": ("closed {x} .",),
        "unlock": ("closed {x} .",),
        "lock": ("locked {x} .",),
        "is_open": ("open {x} .",),
        "is_closed": ("closed {x} .",),
        "is_locked": ("locked {x} .",),
        "cannot": ("you cannot .",),
        "unseen": ("no such thing .",),
        "unclear": ("which thing ?",),
        "carried": ("you carry {x} .",),
        "not_carried": ("you carry no {x} .",),
        "elsewhere": ("no {x} there .",),
        "wrong_key": ("wrong key .",),
        "which_key": ("which key ?",),
        "no_exit": ("no exits there .",),
        "won": ("you win .",),
        "lost": ("you lose .",),
    },
)


def small_words() -> tuple[str, ...]:
    """Every token of the small vocabulary, sorted: what the environment says, and what it lists as commands.

    Tokens are words and punctuation marks. The base's own sentences are included, with turn limits to 24.
    """
    tokens = {
        "key",
        "door",
        *LATCHES,
        *COMMAND_WORDS,
        *SMALL.words(),
        *"0123456789",
        *map(str, range(10, 25)),
    }
    base = "You have turn turns. Give one command per turn. That has characters; at most 500 are read."
    tokens.update(re.findall(r"\w+|[^\w\s]", base), ".,:?;")
    return tuple(sorted(tokens))
