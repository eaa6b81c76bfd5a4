"""The compiled story, running in a Z-machine."""

from tempfile import NamedTemporaryFile
from typing import Any

import numpy as np

from turngym.envs.textworld import backend
from turngym.errors import InfraError

Table = np.ndarray[Any, np.dtype[np.uint8]]


class Machine:
    """A compiled story in jericho's Z-machine, with the trace of Inform's actions switched on.

    One machine has its own copy of the interpreter's library, so machines don't share state.

    Attributes:
        intro: the raw text that the story opens with.

    Args:
        story: the story to `open`; None leaves that for later.
    """

    intro: str

    def __init__(self, story: bytes | None = None) -> None:
        self._frotz: Any = None
        if story is not None:
            self.open(story)

    def __deepcopy__(self, memo: object) -> "Machine":
        raise NotImplementedError("An interpreter cannot be copied; replay the commands.")

    def open(self, story: bytes) -> None:
        """Starts a story; in a machine that has had one before as in a new one, at a third of the price.

        Raises:
            InfraError: the story cannot be written to a temporary file, which jericho needs.
        """
        try:
            # jericho opens the path now and never again.
            with NamedTemporaryFile(prefix="turngym_", suffix=".z8") as file:
                file.write(story)
                file.flush()
                if self._frotz is None:
                    self._frotz = backend.start_interpreter(file.name)
                else:
                    backend.exchange_story(self._frotz, file.name, story)
                self.intro = self._frotz.reset()[0]
        except OSError as error:
            raise InfraError(f"A game could not be started: {error}. Free the disk behind TMPDIR.") from error
        self._frotz.step("tw-trace-actions")
        self._now: Any = None
        self._start = self.save()
        self._tree = _object_tree(self._start[0])

    def restart(self) -> None:
        """Back to the start; far cheaper than `open`."""
        self.restore(self._start)

    def save(self) -> Any:
        """The whole state of the interpreter, for `restore` (13 microseconds)."""
        if self._now is None:
            self._now = self._frotz.get_state()
        return self._now

    def restore(self, saved: Any) -> None:
        """Undoes everything since `save`, a pending question of the parser included."""
        self._frotz.set_state(saved)
        self._now = saved

    def send(self, command: str) -> str:
        """Raw reply to a command of printable ASCII; others crash the interpreter."""
        self._now = None
        return str(self._frotz.step(command)[0])

    def objects(self) -> Table:
        """(objects, 14) the story's object table: 6 bytes of attributes, then words parent, sibling, child, properties.

        It is a part of what `save` gave, not to be changed.
        """
        return np.asarray(self.save()[0][self._tree].reshape(-1, 14))


def _object_tree(ram: Any) -> slice:
    # Z-machine standard 1.1, section 12.3: the table starts after 63 default words; its end isn't stored,
    # but the first property list stands right behind it.
    start = (int(ram[10]) << 8 | int(ram[11])) + 126
    end, entry = len(ram), start
    while entry + 14 <= end:
        end = min(end, int(ram[entry + 12]) << 8 | int(ram[entry + 13]))
        entry += 14
    return slice(start, entry)
