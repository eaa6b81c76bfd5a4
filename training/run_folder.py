"""A run's folder: whose it is, and whether the run in it is the one that is asked for."""

import shutil
from pathlib import Path
from typing import Any

from turngym.errors import ConfigError
from turngym.training.recipe import load_saved, save_recipe
from turngym.training.session import CHECKPOINTS
from turngym.training.settings import Recipe

RECIPE_FILE = "recipe.yaml"
FINISHED_FILE = "finished.json"


def claim_folder(out: Path, recipe: Recipe) -> bool:
    """Makes the run's folder, or finds that it holds this run; True when that is finished."""
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
    out.mkdir(parents=True, exist_ok=True)
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
