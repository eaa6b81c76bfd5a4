"""References to environments as bytes, for processes that share nothing with this one but the installed code."""

import contextlib
import io
import pickle
from types import FunctionType
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from turngym.envs.pool.contract import ENV_ERRORS
from turngym.envs.pool.reference import EnvRef
from turngym.envs.registration import find_spec
from turngym.errors import ConfigError

_SCRIPT = "__main__"


def pack(env: EnvRef) -> bytes:
    """What another process needs to make the environment.

    Classes and functions travel by name, so each must be importable: code itself is never sent. An id that was
    registered in this process alone travels with its registration.

    Raises:
        UnknownEnvError: the id is not registered.
        ConfigError: a factory, an entry point or an argument cannot be imported by name, or cannot be pickled.
    """
    env_id, spec = env.env_id, b""
    module, _, name = env_id.rpartition(":")
    try:
        if env.factory is None and module in ("", _SCRIPT):
            found = find_spec(env_id)
            env_id, spec = found.id, _pickled(found)
        elif env.factory is None and name in gymnasium.registry:
            # Mostly the module registers it there too. If it does not, and this cannot travel, the worker will tell.
            with contextlib.suppress(Exception):
                spec = _pickled(gymnasium.registry[name])
        return _pickled((env_id, dict(env.kwargs), env.factory, spec))
    except ConfigError:
        raise
    except Exception as error:  # An author's or a caller's class may do anything when it is pickled.
        raise ConfigError(
            f"Worker processes cannot make {env.env_id}: {error}. Define what it is made from at the top level of a "
            "module, or set workers to 0."
        ) from error


def unpack(packed: bytes) -> EnvRef:
    """The reference that was packed, with its id registered.

    Raises:
        ConfigError: a module or a name in it is not there, or fails when it is imported.
    """
    try:
        env_id, kwargs, factory, spec = pickle.loads(packed)
        if spec:
            _register(env_id, spec)
    except ENV_ERRORS as error:
        raise ConfigError(
            f"A worker process cannot import what the environment is made from: {type(error).__name__}: {error}. "
            "Install the module or run from its folder, or set workers to 0."
        ) from error
    return EnvRef(env_id, kwargs, factory)


def import_ahead(env: EnvRef) -> None:
    """Imports the environment's module; what fails will fail again, and be told, when it is made."""
    with contextlib.suppress(*ENV_ERRORS):
        if env.factory is None:
            entry = find_spec(env.env_id).entry_point
            if isinstance(entry, str):
                load_env_creator(entry)


def _register(env_id: str, pickled: bytes) -> None:
    """Registers an id as the pool's process has it, where its own module does not."""
    with contextlib.suppress(*ENV_ERRORS):
        find_spec(env_id)
    if env_id.rpartition(":")[2] not in gymnasium.registry:
        spec = pickle.loads(pickled)
        if isinstance(spec, EnvSpec):
            gymnasium.registry[spec.id] = spec


def _pickled(value: Any) -> bytes:
    buffer = io.BytesIO()
    _Pickler(buffer, pickle.HIGHEST_PROTOCOL).dump(value)
    return buffer.getvalue()


class _Pickler(pickle.Pickler):
    """Refuses what stands in the script that runs: workers have another `__main__`, or would run it again."""

    def reducer_override(self, value: Any) -> Any:
        if isinstance(value, type | FunctionType) and value.__module__ == _SCRIPT:
            raise pickle.PicklingError(f"{value.__qualname__} stands in the script that runs")
        return NotImplemented
