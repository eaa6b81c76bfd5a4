"""Recipes by name or path, and dotted overrides."""

import importlib
import importlib.resources
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from turngym.config import dump_yaml, parse_yaml, read_yaml, validate
from turngym.errors import ConfigError, UnknownNameError, suggest
from turngym.training.settings import Recipe, RlSettings, SftSettings

_KINDS: dict[str, type[SftSettings] | type[RlSettings]] = {"sft": SftSettings, "rl": RlSettings}
_CHOICES = ("advantage", "policy_loss", "kl", "model")


def recipe_names() -> tuple[str, ...]:
    """Names of the bundled recipes, sorted."""
    folder = importlib.resources.files("turngym.training") / "recipes"
    return tuple(sorted(entry.name[:-5] for entry in folder.iterdir() if entry.name.endswith(".yaml")))


def recipe_text(name: str) -> str:
    """The YAML of a recipe, by name or path, with its comments.

    Raises:
        UnknownNameError: neither a bundled recipe nor a file.
    """
    if name.endswith((".yaml", ".yml")) or "/" in name:
        path = Path(name)
        if not path.is_file():
            raise UnknownNameError(f"No recipe file {name!r}. `turngym list recipes` shows the bundled ones.")
        return path.read_text(encoding="utf-8")
    if name not in recipe_names():
        raise UnknownNameError(f"No recipe {name!r}. {suggest(name, recipe_names(), listing='turngym list recipes')}")
    folder = importlib.resources.files("turngym.training") / "recipes"
    return (folder / f"{name}.yaml").read_text(encoding="utf-8")


def load_recipe(
    recipe: str | Mapping[str, Any] | Recipe, overrides: Sequence[str] = (), **changes: Any
) -> Recipe:
    """A resolved recipe.

    Args:
        recipe: bundled name, path, mapping or recipe.
        overrides: `dotted.key=YAML value`, as on the command line.
        changes: the same with Python values; dots are written as double underscores.

    Raises:
        ConfigError: a wrong key or value, with what would be right.
    """
    if isinstance(recipe, Recipe):
        values, source = recipe.model_dump(mode="json", exclude_none=True), "recipe"
    elif isinstance(recipe, str):
        values = parse_yaml(recipe_text(recipe), source=recipe)
        source = recipe
        if not isinstance(values, dict):
            raise ConfigError(f"{recipe}: expected settings as `key: value` lines.")
    else:
        values, source = _deep_copy(dict(recipe)), "recipe"
    for override in overrides:
        key, found, text = override.partition("=")
        if not found or not key:
            raise ConfigError(f"{override!r} is no override. Write key=value, as in advantage.gamma=0.95.")
        _set(values, key.strip().split("."), parse_yaml(text, source=key), key)
    for name, value in changes.items():
        _set(values, name.split("__"), value, name.replace("__", "."))
    _import_modules(values.get("imports", ()), source)
    return validate(Recipe, values, source=source)


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Writes the resolved recipe; it can be run again."""
    path.write_text(dump_yaml(recipe.model_dump(mode="json", exclude_none=True)), encoding="utf-8")


def load_saved(path: Path) -> Recipe:
    """The recipe that `save_recipe` wrote."""
    values = read_yaml(path)
    _import_modules(values.get("imports", ()), str(path))
    return validate(Recipe, values, source=str(path))


def _import_modules(names: Any, source: str) -> None:
    for name in names if isinstance(names, list | tuple) else ():
        try:
            importlib.import_module(str(name))
        except ModuleNotFoundError as error:
            raise ConfigError(f"{source}: imports: no module {name!r}. Run from its folder or install it.") from error


def _set(values: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    """Sets a dotted key; what is no top-level key is looked for in the stages."""
    if path[0] in Recipe.model_fields:
        _put(values, path, value, key)
        return
    stages = [stage for stage in values.get("stages", []) if isinstance(stage, dict)]
    kinds = [(next(iter(stage)), stage) for stage in stages if stage]
    named = [(kind, stage) for kind, stage in kinds if path[0] in (kind, (stage[kind] or {}).get("name"))]
    if named:
        if len(named) > 1:
            names = ", ".join(str((stage[kind] or {}).get("name", kind)) for kind, stage in named)
            raise ConfigError(f"{key}: several stages are of kind {path[0]!r}. Use one of their names: {names}.")
        kind, stage = named[0]
        if len(path) == 1:
            raise ConfigError(f"{key} names a stage. Name a setting of it, as in {path[0]}.optim.lr=1e-4.")
        _put(stage[kind], path[1:], value, key)
        return
    holders = [(kind, stage) for kind, stage in kinds if kind in _KINDS and path[0] in _KINDS[kind].model_fields]
    if len(holders) == 1:
        kind, stage = holders[0]
        _put(stage[kind], path, value, key)
        return
    if holders:
        full = ", ".join(f"{(stage[kind] or {}).get('name', kind)}.{key}" for kind, stage in holders)
        raise ConfigError(f"{key} is a setting of several stages. Write one of: {full}.")
    known = [*Recipe.model_fields, *(field for kind, _ in kinds if kind in _KINDS for field in _KINDS[kind].model_fields)]
    raise ConfigError(f"{path[0]} is not a setting of this recipe. {suggest(path[0], known)}")


def _put(target: Any, path: list[str], value: Any, key: str) -> None:
    """Sets a value deep in nested mappings and lists; choosing another name drops the old one's settings."""
    for depth, part in enumerate(path[:-1]):
        if isinstance(target, list):
            target = target[_index(target, part, key)]
            continue
        inner = target.get(part)
        if path[depth + 1] == "name" and part in _CHOICES and len(path) == depth + 2:
            target[part] = {"name": value} if not (isinstance(inner, dict) and inner.get("name") == value) else inner
            return
        if isinstance(inner, str) and part in _CHOICES:
            inner = {"name": inner} if part != "model" else inner
        if not isinstance(inner, dict | list):
            inner = {}
        target[part] = inner
        target = inner
    if isinstance(target, list):
        target[_index(target, path[-1], key)] = value
    else:
        target[path[-1]] = value


def _index(items: list[Any], part: str, key: str) -> int:
    if not part.isdecimal() or int(part) >= len(items):
        raise ConfigError(f"{key}: {part!r} is no place in a list of {len(items)}. Count from 0.")
    return int(part)


def _deep_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list | tuple) else value
