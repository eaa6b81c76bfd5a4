"""What a figure was measured on, and whether that was at rest."""

import os
import platform
from pathlib import Path

from turngym.config import Settings

BUSY_SHARE = 0.25
"""Load for each core past which other work is likely to disturb the timing."""


class Machine(Settings):
    """The machine, without what names it."""

    cores: int
    """Cores that this process may use."""

    processor: str
    """Model of the processor, where the system tells."""

    system: str
    """Operating system and C library."""

    load: float
    """Load average of the last minute before the first round; 0 where the system does not tell."""

    @property
    def busy_warning(self) -> str:
        """What to say of a machine that has other work; "" for one at rest."""
        bound = max(0.5, BUSY_SHARE * self.cores)
        if self.load <= bound:
            return ""
        return (
            f"This machine is busy: load {self.load:.1f} before the first round, on {self.cores} cores. Figures may "
            f"mislead; run it again at a load below {bound:.1f}."
        )


def this_machine() -> Machine:
    """The machine that this runs on, as it is now."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return Machine(cores=usable, processor=_processor(), system=platform.platform(), load=_load())


def _load() -> float:
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return 0.0


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor()
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor()
