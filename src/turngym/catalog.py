"""What there is, by kind: environments, suites, recipes, timings, and the choices that recipes make."""

import ast
import importlib
import importlib.util
import inspect
import textwrap
from pathlib import Path
from typing import Any

from turngym.errors import UnknownNameError, suggest

RECIPE_CHARS = 90


def kinds() -> dict[str, str]:
    """Every kind that `entries` knows, with a summary."""
    choices = {kind: "a choice in recipes" for kind in registries()}
    fixed = {
        "envs": "environments",
        "suites": "benchmarks",
        "recipes": "runs",
        "speed": "timings against peers",
    }
    return fixed | choices


def entries(kind: str) -> dict[str, str]:
    """Name -> one-line summary of all that is of a kind.

    Raises:
        UnknownNameError: no such kind.
    """
    if kind in ("env", "envs"):
        return _envs()
    if kind in ("suite", "suites"):
        from turngym.benchmarks.suite import load_suite, suite_names

        return {name: load_suite(name).description for name in suite_names()}
    if kind in ("recipe", "recipes"):
        return _recipes()
    if kind == "speed":
        from turngym.benchmarks.speed.entry import entry_names, find_entry

        return {name: find_entry(name).summary for name in entry_names()}
    registry = registries().get(kind)
    if registry is None:
        raise UnknownNameError(f"No kind {kind!r}. {suggest(kind, kinds())}")
    return {name: registry[name].summary for name in registry.names()}


def registries() -> dict[str, Any]:
    """Kind of choice -> its registry."""
    import turngym.training.settings  # noqa: F401 - fills the registries
    from turngym.config import REGISTRIES

    return REGISTRIES


def env_text(name: str) -> str:
    """Full id of an environment, and its docstring.

    Raises:
        UnknownEnvError: the id is not registered.
        MissingExtraError: the environment needs an extra.
    """
    from turngym.envs.registration import find_spec

    spec = find_spec(name)
    entry = spec.entry_point
    if isinstance(entry, str):
        module, _, attribute = entry.partition(":")
        entry = getattr(importlib.import_module(module), attribute)
    return f"{spec.id}\n{inspect.getdoc(entry) or ''}"


def _envs() -> dict[str, str]:
    from turngym.envs.registration import env_ids, find_spec

    return {env_id: _first_line(find_spec(env_id).entry_point) for env_id in env_ids()}


def _first_line(entry: Any) -> str:
    """First line of a class's docstring, read from the source: to import it may need an extra."""
    if not isinstance(entry, str):
        return (inspect.getdoc(entry) or "").partition("\n")[0]
    module, _, name = entry.partition(":")
    found = importlib.util.find_spec(module)
    if found is None or found.origin is None:
        return ""
    for node in ast.parse(Path(found.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == name:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""


def _recipes() -> dict[str, str]:
    from turngym.config import parse_yaml
    from turngym.training.recipe import recipe_names, recipe_text

    values = {name: parse_yaml(recipe_text(name), source=name) for name in recipe_names()}
    return {
        name: textwrap.shorten(str(one.get("description", "")), RECIPE_CHARS, placeholder=" ...")
        for name, one in values.items()
    }
