"""Names within longer names, "safe" beside "red safe": Inform's parser fails with some commands that have one."""

from collections.abc import Iterable


def nested_names(names: Iterable[str]) -> frozenset[str]:
    """Those of the names, in lower case and none of a room, that stand within another one as whole words."""
    known = {*names}
    return frozenset(one for one in known for other in known if one != other and f" {one} " in f" {other} ")


def understood(command: str, nested: frozenset[str]) -> str:
    """A command of TextWorld's in a form that Inform reads, given the nested names of its game."""
    # "take latchkey from safe" fails where a red safe is about, too, and "take latchkey" works (1 game in 250).
    taken, found, source = command.partition(" from ")
    return taken if found and source in nested else command
