"""A run's folder: whose it is, who works in it, and whether the run in it is the one that is asked for."""

import logging
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError
from turngym.training.recipe import load_saved, save_recipe
from turngym.training.session import CHECKPOINTS
from turngym.training.settings import Recipe

logger = logging.getLogger(__name__)

RECIPE_FILE = "recipe.yaml"
FINISHED_FILE = "finished.json"


@contextmanager
def hold_folder(out: Path) -> Iterator[None]:
    """Makes the run's folder and keeps other processes from working in it, until left or this process ends.

    Raises:
        ConfigError: another process holds it.
    """
    out.mkdir(parents=True, exist_ok=True)
    if sys.platform == "win32":
        yield
        return
    import fcntl

    # The lock is on the folder itself: no file stays behind, and the kernel frees it however this process ends.
    descriptor = os.open(out, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        os.close(descriptor)
        raise ConfigError(
            f"Another process is training in {out}. Wait for it, stop it, or choose another folder with run.out=FOLDER."
        ) from error
    except OSError as error:  # Some network file systems have no locks.
        logger.warning("%s cannot be locked (%s): let no second process train in it.", out, error)
    try:
        yield
    finally:
        os.close(descriptor)


def claim_folder(out: Path, recipe: Recipe) -> bool:
    """Makes the folder this run's, or finds that it is already; True when that run is finished."""
    saved = out / RECIPE_FILE
    begun = out.is_dir() and any(entry.name != RECIPE_FILE for entry in out.iterdir())
    if saved.is_file() and begun and recipe.run.resume == "auto":
        old = load_saved(saved)
        if _comparable(old) != _comparable(recipe):
            raise ConfigError(
                f"{out} holds a run of another recipe ({_first_difference(old, recipe)}). "
                "Choose another folder with run.out=FOLDER, or start over with run.resume=never."
            )
        save_recipe(recipe, saved)
        return (out / FINISHED_FILE).is_file()
    if out.is_dir() and any(out.iterdir()):
        if not saved.is_file():
            raise ConfigError(
                f"{out} exists and holds no run of turngym. Choose another folder with run.out=FOLDER."
            )
        _remove_run(out, saved)
    save_recipe(recipe, saved)
    return False


def copy_folder(source: Path, target: Path) -> None:
    """Copies a folder in place of another, whole or not at all."""
    beside = target.with_name(f"{target.name}.tmp")
    shutil.rmtree(beside, ignore_errors=True)
    shutil.copytree(source, beside)
    shutil.rmtree(target, ignore_errors=True)
    beside.rename(target)


def _remove_run(out: Path, saved: Path) -> None:
    """Removes what a run wrote, and nothing else that may lie in its folder."""
    stages = [stage.settings.name for stage in load_saved(saved).stages]
    for name in (CHECKPOINTS, "final", *stages):
        shutil.rmtree(out / name, ignore_errors=True)
    for name in (FINISHED_FILE, "metrics.jsonl", RECIPE_FILE):
        (out / name).unlink(missing_ok=True)


def _comparable(recipe: Recipe) -> dict[str, Any]:
    """What must be equal for a run to go on; threads are compared with the checkpoint's, workers change nothing."""
    values = recipe.model_dump(mode="json")
    values.pop("description")
    free_settings = (
        "out",
        "resume",
        "keep_checkpoints",
        "threads",
        "workers",
        "deadline_s",
        "worker_memory_mb",
    )
    for free in free_settings:
        values["run"].pop(free)
    return values


def _first_difference(old: Recipe, new: Recipe) -> str:
    before, after = _flat(_comparable(old)), _flat(_comparable(new))
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            return f"{key}: {before.get(key)} there, {after.get(key)} asked"
    return "no difference found"


def _flat(value: Any, prefix: str = "") -> dict[str, Any]:
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = [(str(i), item) for i, item in enumerate(value)]
    else:
        return {prefix: value}
    return {k: v for key, item in items for k, v in _flat(item, f"{prefix}.{key}".strip(".")).items()}
