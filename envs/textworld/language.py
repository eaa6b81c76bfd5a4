"""The command language: its words, and the commands that never reach the engine."""

import re

from turngym.envs.textworld.text import squeeze

DIRECTIONS = frozenset({"north", "south", "east", "west"})
# fmt: off
COMMAND_WORDS = DIRECTIONS | {
    "close", "drop", "eat", "examine", "from", "go", "insert", "into", "inventory", "lock", "look", "on",
    "open", "put", "take", "unlock", "with",
}
"""Every word of TextWorld's command templates; an honest expert may use them unseen."""

COMPOUND = re.compile(r"[\n\r;,]|[.]\s*[^\s.]|\b(?:then|and)\b", re.IGNORECASE)
"""Several commands in one. Inform also reads "take a and b" as two actions, and no name holds "and"."""

MAX_COMMAND_CHARS = 150
"""Twice the longest command that TextWorld lists; Inform's own buffer is larger."""

MAX_COMMAND_WORDS = 15
"""Inform reads no further, and says nothing."""

# Commands about the program and not the world. The story's dictionary keeps 9 characters of a word
# ("superbriefly" is "superbrief"), less where a word has hyphens: hence the prefixes.
_META = {
    "again", "brief", "disable", "enable", "fullscore", "g", "long", "normal", "notify", "nouns", "o",
    "oops", "print_state", "pronouns", "q", "quit", "restart", "restore", "restrict", "save", "score",
    "script", "short", "superbrief", "transcript", "undo", "verbose", "verify", "version",
}
# fmt: on
_META_STEMS = frozenset(word[:9] for word in _META)
_META_PREFIXES = ("tw-", "print_")
# A NUL crashes the interpreter, and brackets could fake its trace.
_READABLE = re.compile(r"[a-z0-9 .'!?\"_-]*")


def normalize(command: str) -> str:
    """The command as the engine gets it: lower case, single blanks."""
    return squeeze(command)


def refusal(command: str) -> str:
    """Why a normalized command is not passed on, as the agent reads it; "" for one that is."""
    if _READABLE.fullmatch(command) is None:
        return "only letters a to z, digits and simple punctuation are read."
    if len(re.findall(r'[^ "]+|"', command)) > MAX_COMMAND_WORDS:
        return f"only the first {MAX_COMMAND_WORDS} words of a command are read: say it shorter."
    first = re.split(r"[ .\"!?]+", command.strip(' ."!?'), maxsplit=1)[0]
    if first[:9] in _META_STEMS or first.startswith(_META_PREFIXES):
        return "that command is not part of the game."
    return ""
