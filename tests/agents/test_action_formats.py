"""How a reply becomes a command."""

import pytest

from turngym.agents.action_formats import action_format
from turngym.errors import UnknownNameError


def test_a_plain_reply_is_the_command() -> None:
    plain = action_format("plain")
    reply = plain.parse("  go north \n")
    assert (reply.command, reply.thought, reply.problem) == ("go north", "", "")
    assert plain.syntax == ""


@pytest.mark.parametrize("command", ["go north", "take the key; then drop it", "", "<act>"])
def test_a_written_command_is_read_back(command: str) -> None:
    plain = action_format("plain")
    assert plain.parse(plain.write(command)).command == command


def test_an_unknown_format_is_named_with_a_suggestion() -> None:
    with pytest.raises(UnknownNameError, match="No action format 'plian'. Did you mean 'plain'?"):
        action_format("plian")
