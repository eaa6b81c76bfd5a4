"""Settings models, YAML 1.2 and the open registries behind `{name: ..., its settings}`."""

import importlib.metadata
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Generic, Literal, TypeVar, get_args, get_origin

from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator
from ruamel.yaml import YAML
from ruamel.yaml.constructor import SafeConstructor
from ruamel.yaml.error import YAMLError

from turngym.errors import ConfigError, UnknownNameError, suggest


class Settings(BaseModel):
    """Base of every settings model: frozen, unknown keys refused, strict booleans, docstrings as help."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    @field_validator("*", mode="before")
    @classmethod
    def _keep_booleans_apart(cls, value: Any, info: ValidationInfo) -> Any:
        """Pydantic would take "yes" and 1 for true, and true for 1."""
        leaves = _leaf_types(cls.model_fields[info.field_name or ""].annotation)
        values = value if isinstance(value, list | tuple) else [value]
        if leaves <= {bool, NoneType}:
            wrong = [one for one in values if not isinstance(one, bool | None)]
            if wrong:
                raise ValueError(f"{wrong[0]!r} is no boolean. Write true or false.")
        elif leaves <= {int, float, str, NoneType} and any(isinstance(one, bool) for one in values):
            raise ValueError(
                "true and false are booleans, and this setting takes none. Give a number or a text."
            )
        return value


def _leaf_types(annotation: Any) -> set[Any]:
    """Types that an annotation is made of, through unions and sequences: `tuple[float, ...] | None`."""
    arguments = [one for one in get_args(annotation) if one is not Ellipsis]
    if get_origin(annotation) is Literal:
        return {type(one) for one in arguments}
    if get_origin(annotation) is Annotated:
        return _leaf_types(arguments[0])
    if not arguments:
        return {annotation}
    return set().union(*(_leaf_types(one) for one in arguments))


FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])


@dataclass(frozen=True, slots=True)
class Method(Generic[FunctionT]):
    """A row of a registry: a function and the settings it takes."""

    name: str
    settings: type[Settings]
    function: FunctionT
    summary: str


class Registry(Generic[FunctionT]):
    """Open table name -> (settings, function) of one kind of choice, such as `advantage`.

    Third parties add rows by an entry point in the group `turngym.methods` or by a module named under
    `imports` in the recipe; either only has to run `registry.register(...)`.
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._rows: dict[str, Method[FunctionT]] = {}
        REGISTRIES[kind] = self

    def register(self, name: str, settings: type[Settings], function: FunctionT) -> None:
        """Adds a row; registering the same name again from elsewhere is an error."""
        old = self._rows.get(name)
        if old is not None and old.function.__module__ != function.__module__:
            raise ConfigError(
                f"{self.kind} {name!r} is already registered by {old.function.__module__}. Choose another name."
            )
        doc = (settings.__doc__ or function.__doc__ or "").strip()
        self._rows[name] = Method(name, settings, function, doc.splitlines()[0] if doc else "")

    def __getitem__(self, name: str) -> Method[FunctionT]:
        if name not in self._rows:
            load_entry_points()
        if name not in self._rows:
            hint = suggest(name, self._rows, listing=f"turngym list {self.kind}")
            raise UnknownNameError(f"No {self.kind} {name!r}. {hint}")
        return self._rows[name]

    def names(self) -> tuple[str, ...]:
        """All names, sorted."""
        load_entry_points()
        return tuple(sorted(self._rows))


REGISTRIES: dict[str, Registry[Any]] = {}
_loaded_entry_points: set[str] = set()


def load_entry_points() -> None:
    """Imports, once, what installed packages offer in the group `turngym.methods`."""
    for entry in importlib.metadata.entry_points(group="turngym.methods"):
        if entry.value not in _loaded_entry_points:
            _loaded_entry_points.add(entry.value)
            entry.load()


class _Constructor(SafeConstructor):
    """YAML 1.2 knows no dates: 2026-11-30 is text."""


_Constructor.add_constructor("tag:yaml.org,2002:timestamp", SafeConstructor.construct_yaml_str)


def parse_yaml(text: str, *, source: str) -> Any:
    """Value of a YAML 1.2 text (1e-6 is a number, "no" is text).

    Raises:
        ConfigError: the text is no YAML; names source and line.
    """
    try:
        reader = YAML(typ="safe", pure=True)
        reader.Constructor = _Constructor
        return reader.load(text)
    except YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f" line {mark.line + 1}" if mark is not None else ""
        problem = getattr(error, "problem", None) or "not readable"
        raise ConfigError(
            f"{source}{line}: not valid YAML ({problem}). Check quotes, colons and indentation."
        ) from error


def read_yaml(path: Path) -> dict[str, Any]:
    """The mapping in a YAML file."""
    try:
        value = parse_yaml(path.read_text(encoding="utf-8"), source=str(path))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"Cannot read {path}: {error}. Give a readable YAML file.") from error
    if not isinstance(value, dict):
        raise ConfigError(f"{path}: expected settings as `key: value` lines, got {type(value).__name__}.")
    return value


def dump_yaml(value: Mapping[str, Any]) -> str:
    """YAML 1.2 text that `parse_yaml` reads back as the same value."""
    out = StringIO()
    writer = YAML(typ="safe", pure=True)
    writer.default_flow_style = False
    writer.sort_base_mapping_type_on_output = False  # type: ignore[assignment]
    writer.dump(dict(value), out)
    return out.getvalue()


SettingsT = TypeVar("SettingsT", bound=BaseModel)


def validate(model: type[SettingsT], value: Any, *, source: str, prefix: str = "") -> SettingsT:
    """A settings model from plain values.

    Raises:
        ConfigError: first wrong key or value, with its dotted path and what would be right.
    """
    try:
        return model.model_validate(value)
    except ValidationError as error:
        raise ConfigError(explain(model, error, source=source, prefix=prefix)) from error


def explain(model: type[BaseModel], error: ValidationError, *, source: str, prefix: str = "") -> str:
    """One or two plain sentences about the first error that pydantic found."""
    # A mistyped key also leaves the right one missing, so the typing error is the one to tell.
    found = error.errors(include_url=False)
    first = next((one for one in found if one["type"] == "extra_forbidden"), found[0])
    parts = [str(part) for part in first["loc"]]
    where = ".".join([*([prefix] if prefix else []), *parts]) or "the settings"
    more = f" ({error.error_count() - 1} more errors follow.)" if error.error_count() > 1 else ""
    if first["type"] == "extra_forbidden":
        known = _fields_at(model, first["loc"][:-1])
        return f"{source}: {where} is not a setting. {suggest(parts[-1], known)}{more}"
    if first["type"] == "missing":
        return f"{source}: {where} is missing. Set it in the recipe.{more}"
    if first["type"] == "string_type" and isinstance(first["input"], int | float):
        return f"{source}: {where} = {first['input']!r} reads as a number or boolean. Put it in quotes to make it text.{more}"
    message = first["msg"].removeprefix("Value error, ")
    if first["type"] in ("list_type", "tuple_type"):
        return f"{source}: {where} = {first['input']!r} is no list. Write [{first['input']}].{more}"
    if isinstance(first.get("ctx", {}).get("error"), Exception):
        return f"{source}: {where}: {message}{more}"
    return f"{source}: {where} = {first['input']!r}: {message}.{more}"


def _fields_at(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """Field names of the model that stands at a location inside another one."""
    current: Any = model
    for part in loc:
        if isinstance(part, int):
            continue
        fields = getattr(current, "model_fields", {})
        if part not in fields:
            return []
        annotation = fields[part].annotation
        candidates = [annotation, *getattr(annotation, "__args__", ())]
        models = [c for c in candidates if isinstance(c, type) and issubclass(c, BaseModel)]
        if not models:
            return []
        current = models[0]
    return list(getattr(current, "model_fields", {}))
