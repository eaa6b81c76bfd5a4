"""Environment ids, and how to make an environment from one."""

import difflib
import importlib
import re
from collections.abc import Callable
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec

from turngym.envs.base import TurnEnv
from turngym.errors import ConfigError, UnknownEnvError

NAMESPACE = "turngym"

_ENTRY_POINTS = {
    "turngym/Rooms-v0": "turngym.envs.rooms.env:RoomsEnv",
    "turngym/TextWorld-v0": "turngym.envs.textworld.env:TextWorldEnv",
}


def register_envs() -> None:
    """Registers turngym's ids with Gymnasium; calling it again changes nothing."""
    for env_id, entry_point in _ENTRY_POINTS.items():
        if env_id not in gymnasium.registry:
            # The turn limit is the base's own, so Gymnasium must add no TimeLimit wrapper.
            gymnasium.register(env_id, entry_point=entry_point, max_episode_steps=None)


def register_factory(factory: Callable[..., TurnEnv]) -> str:
    """Registers a function or class that makes environments, for this process; returns its id."""
    name = re.sub(r"[^A-Za-z0-9]+", "-", getattr(factory, "__qualname__", "factory")).strip("-")
    env_id = f"local/{name}-v0"
    gymnasium.registry.pop(env_id, None)
    gymnasium.register(env_id, entry_point=factory)
    return env_id


def env_ids() -> tuple[str, ...]:
    """Ids of all registered TurnEnvs that need no import: ours, and those of modules already loaded."""
    return tuple(sorted(env_id for env_id in gymnasium.registry if env_id.startswith(f"{NAMESPACE}/")))


def find_spec(env_id: str) -> EnvSpec:
    """Spec behind `Name-v0`, `ns/Name-v0` or `module:ns/Name-v0`.

    Raises:
        UnknownEnvError: nothing of that id is registered; suggests the nearest.
    """
    module, _, name = env_id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or not (module == error.name or module.startswith(f"{error.name}.")):
                raise
            raise UnknownEnvError(
                f"No module {module!r} for environment {env_id!r}. Run from its folder or install it."
            ) from error
    if "/" not in name and f"{NAMESPACE}/{name}" in gymnasium.registry:
        name = f"{NAMESPACE}/{name}"
    if name not in gymnasium.registry:
        raise UnknownEnvError(f"No environment {env_id!r}. {_nearest(name)}")
    return gymnasium.registry[name]


def make(env_id: str, **kwargs: Any) -> gymnasium.Env[str, str]:
    """Makes an environment as `gymnasium.make` does, with our errors for a wrong id or argument.

    Raises:
        UnknownEnvError: the id is not registered.
        ConfigError: an argument is wrong.

    Example:
        >>> import turngym
        >>> env = turngym.make("Rooms-v0", level="w2-o3-q4")
        >>> observation, info = env.reset(seed=1)
        >>> observation, reward, terminated, truncated, info = env.step("look")
        >>> terminated, truncated, info["turn"]
        (False, False, 1)
    """
    spec = find_spec(env_id)
    try:
        return gymnasium.make(spec, **kwargs)
    except TypeError as error:
        wrong = re.search(r"unexpected keyword argument '(\w+)'", str(error))
        if wrong is None:
            raise
        raise ConfigError(
            f"{spec.id} takes no argument {wrong[1]!r}. `turngym help env {spec.id}` lists its arguments."
        ) from error


def make_turn_env(env_id: str, **kwargs: Any) -> TurnEnv:
    """The bare TurnEnv behind an id, for what needs more than Gymnasium's interface."""
    env = make(env_id, **kwargs).unwrapped
    if not isinstance(env, TurnEnv):
        raise ConfigError(
            f"{env_id!r} is a {type(env).__name__}, not a TurnEnv. Wrap it in a TurnEnv subclass."
        )
    return env


def _nearest(name: str) -> str:
    known = env_ids()
    short = {one.split("/")[1].lower(): one for one in known}
    near = difflib.get_close_matches(name.split("/")[-1].lower(), short, n=1, cutoff=0.6)
    return f"Did you mean {short[near[0]]!r}?" if near else "`turngym list envs` lists all of them."
