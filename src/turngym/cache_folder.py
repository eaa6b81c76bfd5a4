"""The folder in which turngym keeps what is made once: compiled games, environments of peers."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """`$TURNGYM_CACHE`, else `~/.cache/turngym`; it may be deleted at any time."""
    return Path(os.environ.get("TURNGYM_CACHE") or "~/.cache/turngym").expanduser()
