"""References to environments: how to make one, here or in another process."""

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from turngym.envs.base import TurnEnv
from turngym.envs.registration import make_turn_env
from turngym.errors import ConfigError


@dataclass(frozen=True, slots=True)
class EnvRef:
    """How to make an environment, anywhere: an id with its arguments, or a factory."""

    env_id: str
    kwargs: Mapping[str, Any] = field(default_factory=dict)
    factory: Callable[[], TurnEnv] | None = None

    @classmethod
    def of(cls, env: "str | TurnEnv | Any | Callable[[], TurnEnv] | EnvRef", **kwargs: Any) -> "EnvRef":
        """From an id, a made environment (its spec is copied), a factory or another reference."""
        if isinstance(env, EnvRef):
            return replace(env, kwargs={**env.kwargs, **kwargs})
        if isinstance(env, str):
            return cls(env, kwargs)
        spec = getattr(env, "spec", None)
        if spec is not None:
            module = type(getattr(env, "unwrapped", env)).__module__
            prefix = "" if spec.id.startswith("turngym/") else f"{module}:"
            return cls(f"{prefix}{spec.id}", {**spec.kwargs, **kwargs})
        if isinstance(env, TurnEnv):
            raise ConfigError(
                f"This {type(env).__name__} has no spec to copy. Give its id, or a function that makes one."
            )
        if callable(env):
            return cls(getattr(env, "__qualname__", repr(env)), kwargs, env)
        raise ConfigError(f"{env!r} is no environment id, environment or factory.")

    @property
    def key(self) -> Hashable:
        """Equal for references to the same environment; it keeps alive what it holds, so no other takes its address."""
        return self.env_id, _content(dict(sorted(self.kwargs.items()))), _content(self.factory)

    def make(self, *, list_commands: bool | None = False) -> TurnEnv:
        """A new environment, without the list of admissible commands unless asked for; None leaves that alone."""
        env = self.factory(**self.kwargs) if self.factory else make_turn_env(self.env_id, **self.kwargs)
        if list_commands is not None:
            env.list_commands = list_commands
        return env


def _content(value: Any) -> Hashable:
    """Equal for equal plain data, however nested; what cannot be hashed (an array) is equal to itself alone."""
    if isinstance(value, dict):
        return dict, tuple((name, _content(each)) for name, each in value.items())
    if isinstance(value, list | tuple):
        return type(value), tuple(_content(each) for each in value)
    try:
        hash(value)
    except TypeError:
        return _Itself(value)
    return type(value), value


class _Itself:
    """Stands for an object, as no other."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)
