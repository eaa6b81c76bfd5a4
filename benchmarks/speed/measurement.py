"""What a side prints: one line of JSON with what it measured, and what it did."""

import importlib.metadata
import platform
from collections.abc import Mapping

from pydantic import Field

from turngym.config import Settings


class Timing(Settings):
    """How long a side took in one round; the clock runs after the warm-up."""

    amount: int = Field(gt=0)
    """How much was done, in the entry's unit."""

    wall_s: float = Field(gt=0)
    """Wall time."""

    cpu_s: float = Field(gt=0)
    """CPU time, that of child processes included."""

    startup_s: float
    """Wall time from the start of the program to that of the clock: imports, worker processes, warm-up."""

    details: Mapping[str, float] = {}
    """Further figures, by the names that they have in the table."""

    @property
    def per_s(self) -> float:
        """Amount per second of wall time."""
        return self.amount / self.wall_s

    @property
    def per_cpu_s(self) -> float:
        """Amount per second of CPU time."""
        return self.amount / self.cpu_s


class Measurement(Timing):
    """What a side says of one round."""

    work: Mapping[str, int | str]
    """What was done: numbers and digests that must be the same on all sides, or nothing is compared."""

    versions: Mapping[str, str]
    """Versions of what the side stands on."""

    @property
    def timing(self) -> Timing:
        """The figures alone."""
        return Timing(**self.model_dump(exclude={"work", "versions"}))


def versions(*packages: str) -> dict[str, str]:
    """Versions of Python and of installed packages."""
    return {
        "python": platform.python_version(),
        **{package: importlib.metadata.version(package) for package in packages},
    }
