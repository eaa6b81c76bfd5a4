"""How a model's reply becomes a command, by name."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from turngym.errors import UnknownNameError, suggest


@dataclass(frozen=True, slots=True)
class ParsedReply:
    """A reply as read; with a `problem`, the environment is not asked and the agent is told it."""

    command: str
    thought: str = ""
    problem: str = ""


class ActionFormat(Protocol):
    """Reads replies, writes demonstrations, and says its syntax to the agent."""

    name: str
    syntax: str

    def parse(self, text: str) -> ParsedReply:
        """The command in a reply, which may have been cut by length."""

    def write(self, command: str) -> str:
        """The reply that says this command; `parse` of it gives the command back."""


class PlainFormat:
    """The reply is the command."""

    name = "plain"
    syntax = ""

    def parse(self, text: str) -> ParsedReply:
        return ParsedReply(text.strip())

    def write(self, command: str) -> str:
        return command


_FORMATS: dict[str, Callable[[], ActionFormat]] = {"plain": PlainFormat}


def action_format(name: str) -> ActionFormat:
    """The format of a name.

    Raises:
        UnknownNameError: no such format.
    """
    if name not in _FORMATS:
        raise UnknownNameError(f"No action format {name!r}. {suggest(name, _FORMATS)}")
    return _FORMATS[name]()
