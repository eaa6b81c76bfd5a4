"""What `turngym speed` can measure: the records of an entry, and the table of all of them."""

import importlib
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from turngym.config import Settings
from turngym.errors import UnknownNameError, suggest

_ENTRIES = {
    "textworld": "turngym.benchmarks.speed.textworld.entry",
}
"""Name -> the module whose `ENTRY` it is."""

PEERS = Path(__file__).parent / "peers"
"""Scripts and requirements of the peers."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the programs that do the same work.

    Attributes:
        name: as it stands in tables.
        summary: what it is, for who reads the report.
        program: a module of turngym, run by this Python, or the path of a peer's script, run by the peer's Python. It
            gets two arguments, the file of its job and when it was started (`time.monotonic`), and prints a
            `Measurement` as the last line of its output.
        job: JSON values that tell the program what to do.
    """

    name: str
    summary: str
    program: str | Path
    job: Mapping[str, Any]

    @property
    def is_peer(self) -> bool:
        """Whether the program is a peer's."""
        return isinstance(self.program, Path)


@dataclass(frozen=True, slots=True)
class Workload:
    """Work that all sides do alike.

    Attributes:
        ratios: pairs of names of sides, each a ratio of the first one's speed to the second one's.
    """

    name: str
    summary: str
    sides: tuple[Side, ...]
    ratios: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Entry:
    """Something of turngym that is measured against a peer.

    Attributes:
        unit: what is counted, in the plural.
        settings: what can be changed on the command line.
        plan: the workloads for settings; files that the sides need go into the folder. Its docstring is the help.
        peer: name of the requirements file in `peers/`; "" where no environment of its own is needed.
    """

    name: str
    unit: str
    settings: type[Settings]
    plan: Callable[[Any, Path], Sequence[Workload]]
    peer: str = ""

    @property
    def text(self) -> str:
        """What is measured, against what, and how."""
        return inspect.getdoc(self.plan) or ""

    @property
    def summary(self) -> str:
        """The first line of that."""
        return self.text.partition("\n")[0]


def entry_names() -> tuple[str, ...]:
    """Names of all entries, sorted."""
    return tuple(sorted(_ENTRIES))


def find_entry(name: str) -> Entry:
    """The entry of a name.

    Raises:
        UnknownNameError: there is none.
    """
    if name not in _ENTRIES:
        raise UnknownNameError(f"No speed entry {name!r}. {suggest(name, _ENTRIES)}")
    entry = importlib.import_module(_ENTRIES[name]).ENTRY
    if not isinstance(entry, Entry):
        raise AssertionError(f"{_ENTRIES[name]}.ENTRY is no Entry")
    return entry
