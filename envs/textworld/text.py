"""What Inform prints, cleaned: banner, prompt, status line and trace cut, whitespace squeezed, lower-cased.

All text is lower-cased: the parser doesn't care, and a small word-level model then has one form of each name.
"""

import re
from dataclasses import dataclass

_TRACE = re.compile(r"\[([^\]]*)\]\n?")
_SUCCEEDED = " - succeeded"
_WON, _LOST = "*** The End ***", "*** You lost! ***"
_FIRST_ROOM = "-= "
_QUESTION = "which do you mean, "
_POINTS = re.compile(r"=-\s*(-?\d+)/\d+\s*$")
# A recipe: its lines would run together, "pork chop red onion".
_RECIPE = re.compile(r"(Ingredients|Directions):\n(.*?)\n\n", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Reply:
    """One reply of the engine.

    Attributes:
        text: what the agent reads.
        events: actions that succeeded, as Inform names them ("opening the box"), sub-actions left out.
        acted: an action was tried; False for the parser's errors and questions.
        won, lost: the story has ended.
        points: the game's own score, out of the status line; not up to date when the story has ended.
    """

    text: str
    events: tuple[str, ...]
    acted: bool
    won: bool
    lost: bool
    points: int


def squeeze(text: str) -> str:
    """Lower case, every run of whitespace one blank."""
    return " ".join(text.split()).lower()


def read_intro(raw: str) -> str:
    """The first room's description, without the banner and the objective above it."""
    start = max(raw.find(_FIRST_ROOM), 0)
    return squeeze(_without_prompt(raw[start:]))


def read_reply(raw: str) -> Reply:
    """Takes a reply apart.

    Commands are sent in lower case and without brackets, so that no echo of them looks like a trace or an end.
    """
    won, lost = _WON in raw, _LOST in raw
    body = raw
    for ending in (_WON, _LOST):
        body = body.split(ending, 1)[0]
    body = _without_prompt(body)
    traced: list[str] = _TRACE.findall(body)
    events = tuple(
        event.removesuffix(_SUCCEEDED) for event in traced if event.endswith(_SUCCEEDED) and "(" not in event
    )
    points = _POINTS.search(raw)
    text = _RECIPE.sub(_in_one_line, _TRACE.sub("", body))
    return Reply(squeeze(text), events, bool(traced), won, lost, int(points[1]) if points else 0)


def named_option(question: str, command: str) -> int | None:
    """Which option, from 1, of "which do you mean, the box or the red box?" the command has named in full.

    Inform takes "box" for both even in a command that TextWorld lists, and goes on asking when answered "box".
    None where the text is no such question, or the command names none or several of the options.
    """
    if not question.startswith(_QUESTION):
        return None
    options = [
        part.strip().removeprefix("the ")
        for part in re.split(r", | or ", question.removeprefix(_QUESTION).removesuffix("?"))
        if part.strip()
    ]
    rest, named = f" {command.strip(' .!?')} ", []
    for option in sorted(options, key=len, reverse=True):
        if f" {option} " in rest:
            named.append(options.index(option) + 1)
            rest = rest.replace(f" {option} ", " | ")
    return named[0] if len(named) == 1 else None


def _in_one_line(match: re.Match[str]) -> str:
    return f"{match[1]}: {', '.join(line.strip() for line in match[2].splitlines())}. "


def _without_prompt(raw: str) -> str:
    # The prompt is followed by the status line, which jericho prints into the text.
    return raw.rsplit("\n>", 1)[0]
