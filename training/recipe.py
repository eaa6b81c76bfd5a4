"""Recipes by name or path, and dotted overrides."""

import importlib
import importlib.resources
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from turngym.config import dump_yaml, parse_yaml, read_yaml, validate
from turngym.errors import ConfigError, UnknownNameError, suggest
from turngym.training.settings import Recipe, RlSettings, SftSettings

_KINDS: dict[str, type[SftSettings] | type[RlSettings]] = {"sft": SftSettings, "rl": RlSettings}
_CHOICES = ("advantage", "policy_loss", "kl", "model")
_NAMED_BY = {"model": "path"}


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
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"Cannot read {name}: {error}. Give a readable YAML file.") from error
    if name not in recipe_names():
        raise UnknownNameError(
            f"No recipe {name!r}. {suggest(name, recipe_names(), listing='turngym list recipes')}"
        )
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
        values, source = plain_values(recipe), "recipe"
    elif isinstance(recipe, str):
        values = parse_yaml(recipe_text(recipe), source=recipe)
        source = recipe
        if not isinstance(values, dict):
            raise ConfigError(f"{recipe}: expected settings as `key: value` lines.")
    else:
        values, source = _deep_copy(dict(recipe)), "recipe"
    given = [_read_override(override) for override in overrides]
    given += [(name.replace("__", "."), value) for name, value in changes.items()]
    # Names first: choosing one drops the old one's settings, and must not drop what is given beside it.
    for key, value in sorted(given, key=lambda one: not _chooses(one[0])):
        _set(values, key.split("."), value, key)
    _import_modules(values.get("imports", ()), source)
    return validate(Recipe, values, source=source)


def plain_values(recipe: Recipe) -> dict[str, Any]:
    """A resolved recipe as YAML values, which `load_recipe` takes back."""
    values = recipe.model_dump(mode="json")
    values["stages"] = [{k: v for k, v in stage.items() if v is not None} for stage in values["stages"]]
    return values


def save_recipe(recipe: Recipe, path: Path) -> None:
    """Writes the resolved recipe, whole or not at all; it can be run again."""
    beside = path.with_suffix(".tmp")
    beside.write_text(dump_yaml(plain_values(recipe)), encoding="utf-8")
    beside.replace(path)


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
            if error.name is None or not (name == error.name or str(name).startswith(f"{error.name}.")):
                raise
            raise ConfigError(
                f"{source}: imports: no module {name!r}. Run from its folder or install it."
            ) from error


def _read_override(override: str) -> tuple[str, Any]:
    key, found, text = override.partition("=")
    if not found or not key.strip():
        raise ConfigError(f"{override!r} is no override. Write key=value, as in advantage.gamma=0.95.")
    return key.strip(), parse_yaml(text, source=key)


def _chooses(key: str) -> bool:
    return key.rpartition(".")[2] in (*_CHOICES, "name")


@dataclass(frozen=True, slots=True)
class _Place:
    """A stage as the recipe's values hold it."""

    kind: str
    name: str
    settings: dict[str, Any]


def _places(values: Mapping[str, Any]) -> list[_Place]:
    """The stages that overrides can reach; what is malformed is left to the validation."""
    places = []
    stages = values.get("stages")
    for stage in stages if isinstance(stages, list) else []:
        kind = next(iter(stage), "") if isinstance(stage, dict) else ""
        if kind in _KINDS:
            settings = stage[kind] = {} if stage[kind] is None else stage[kind]
            if isinstance(settings, dict):
                places.append(_Place(kind, str(settings.get("name", kind)), settings))
    return places


def _set(values: dict[str, Any], path: list[str], value: Any, key: str) -> None:
    """Sets a dotted key; what is no top-level key is looked for in the stages."""
    if path[0] in Recipe.model_fields:
        _put(values, path, value, key)
        return
    places = _places(values)
    named = [place for place in places if place.name == path[0]]
    named = named or [place for place in places if place.kind == path[0]]
    if len(named) > 1:
        names = ", ".join(place.name for place in named)
        raise ConfigError(f"{key}: several stages are called {path[0]!r}. Use one of their names: {names}.")
    if named and len(path) == 1:
        raise ConfigError(f"{key} names a stage. Name a setting of it, as in {path[0]}.optim.lr=1e-4.")
    if named:
        _put(named[0].settings, path[1:], value, key)
        return
    holders = [place for place in places if path[0] in _KINDS[place.kind].model_fields]
    if len(holders) > 1:
        full = ", ".join(f"{place.name}.{key}" for place in holders)
        raise ConfigError(f"{key} is a setting of several stages. Write one of: {full}.")
    if not holders:
        known = [*Recipe.model_fields, *(place.name for place in places)]
        known += [field for place in places for field in _KINDS[place.kind].model_fields]
        deeper = _deeper_keys(path[0], places)
        hint = (
            f"Did you mean {' or '.join(deeper)}?"
            if deeper
            else suggest(path[0], known, listing="turngym help recipe")
        )
        raise ConfigError(f"{path[0]} is not a setting of this recipe. {hint}")
    _put(holders[0].settings, path, value, key)


def _deeper_keys(name: str, places: "Sequence[_Place]") -> list[str]:
    """Dotted keys that end in a name, one level down: `lr` stands at `sft.optim.lr` and `rl.optim.lr`."""
    models: list[tuple[str, type[BaseModel]]] = [("", Recipe)]
    models += [(f"{place.name}.", _KINDS[place.kind]) for place in places]
    return [
        f"{prefix}{field}.{name}"
        for prefix, model in models
        for field, info in model.model_fields.items()
        if name in getattr(info.annotation, "model_fields", {})
    ]


def _put(target: Any, path: list[str], value: Any, key: str) -> None:
    """Sets a value deep in nested mappings and lists; choosing another name drops the old one's settings."""
    choices = _CHOICES if path[0] != "envs" else ()
    for depth, part in enumerate(path[:-1]):
        if isinstance(target, list):
            target = target[_index(target, part, key)]
            continue
        if part in choices and path[depth + 1 :] == [_NAMED_BY.get(part, "name")]:
            target[part] = _chosen(part, target.get(part), value)
            return
        inner = target.get(part)
        if isinstance(inner, str) and part in choices and inner != "tiny":
            inner = _chosen(part, None, inner)
        if not isinstance(inner, dict | list):
            inner = {}
        target[part] = inner
        target = inner
    if isinstance(target, list):
        target[_index(target, path[-1], key)] = value
    elif path[-1] in choices and isinstance(value, str) and path[-1] != "model":
        target[path[-1]] = _chosen(path[-1], target.get(path[-1]), value)
    elif isinstance(target, dict):
        target[path[-1]] = value
    else:
        raise ConfigError(f"{key}: {target!r} has no setting {path[-1]!r}. Give the whole of it.")


def _chosen(part: str, old: Any, name: Any) -> dict[str, Any]:
    """The choice of a name: the old settings where they are of that name, else none."""
    field = _NAMED_BY.get(part, "name")
    return old if isinstance(old, dict) and old.get(field) == name else {field: name}


def _index(items: list[Any], part: str, key: str) -> int:
    if not part.isdecimal() or int(part) >= len(items):
        raise ConfigError(f"{key}: {part!r} is no place in a list of {len(items)}. Count from 0.")
    return int(part)


def _deep_copy(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _deep_copy(item) for key, item in value.items()}
    return [_deep_copy(item) for item in value] if isinstance(value, list | tuple) else value
