"""Other words for a game's objective that tell the same: same names, same directions."""

import re
from collections.abc import Sequence
from typing import Any

from turngym.envs.textworld import backend
from turngym.envs.textworld.language import DIRECTIONS
from turngym.envs.textworld.text import squeeze

NUM_PARAPHRASES = 12
_MAX_TRIES = 40


def paraphrases(game: Any, objective: str, names: Sequence[str]) -> tuple[str, ...]:
    """Up to 12 objectives for the same game, in lower case, each different from `objective` and from the others.

    TextWorld's wordings differ in what they give away: one says "unlock the safe with the latchkey", the next
    "unlock the safe in the attic". A demonstration under another wording would be right for the wrong reasons, so
    one that reveals another set of names is left out (about one in eight).
    """
    wanted = revealed(objective, names)
    found: list[str] = []
    for number in range(_MAX_TRIES):
        text = squeeze(backend.reworded(game, number))
        if text != objective and text not in found and revealed(text, names) == wanted:
            found.append(text)
        if len(found) == NUM_PARAPHRASES:
            break
    return tuple(found)


def revealed(text: str, names: Sequence[str]) -> frozenset[str]:
    """What a lower-case text gives away: whole names, single words of names, and directions."""
    words = set(re.findall(r"[a-z0-9]+(?:-[a-z0-9]+)*", text))
    padded = f" {' '.join(re.findall(r'[a-z0-9-]+', text))} "
    whole = {f"<{name}>" for name in names if f" {' '.join(re.findall(r'[a-z0-9-]+', name))} " in padded}
    single = {word for name in names for word in name.split()} - {"of", "the"}
    return frozenset(whole | (words & single) | (words & DIRECTIONS))
