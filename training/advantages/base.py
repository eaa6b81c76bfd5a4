"""What every advantage estimator takes and gives, and the registry that finds it by name."""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field
from torch import Tensor

from turngym.config import Registry, Settings
from turngym.errors import ConfigError

AdvantageFunction = Callable[..., "Advantages | Tensor"]

CRITIC_COLUMNS = ("values", "token_values", "bootstrap")
COLUMNS = ("rewards", "mask", "group", "token_rewards", "token_mask", *CRITIC_COLUMNS)
"""Columns an estimator may ask for, by naming them as parameters (see `register_advantage`)."""

ADVANTAGES: Registry[AdvantageFunction] = Registry("advantage")


@dataclass(frozen=True, slots=True)
class Advantages:
    """What an estimator gives.

    Attributes:
        advantages: (N, T) one per turn, 0 where the turn was not played; or (N, T, K) one per action token.
        value_targets: what the critic should say; None for estimators without a critic. (N, T) before each turn, or
            (N, T, K) before each action token.
        target_mask: same shape, bool, what has a target.
        kept: (N,) bool, False for episodes that teach nothing (flat groups, groups of one); they leave
            numerator and denominator of every average. None keeps all.
        reasons: why episodes were not kept, reason -> (N,) bool.
    """

    advantages: Tensor
    value_targets: Tensor | None = None
    target_mask: Tensor | None = None
    kept: Tensor | None = None
    reasons: Mapping[str, Tensor] | None = None


class AdvantageSettings(Settings):
    """Settings that every estimator has."""

    name: str
    """Which estimator; `turngym list advantage` shows all."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per turn."""
    whiten: Literal["none", "batch"] = "none"
    """Shift and scale the advantages of an update to mean 0 and spread 1."""


def register_advantage(name: str, settings: type[AdvantageSettings], function: AdvantageFunction) -> None:
    """Adds an estimator.

    The function gets the columns that it names as parameters:

        rewards: (N, T) float64 reward of each turn.     mask: (N, T) bool, True on turns that were played.
        group: (N,) id of each episode's group.          values: (N, T) critic's estimate before each turn.
        bootstrap: (N,) critic's estimate after the last turn, 0 where the episode ended for good.
        token_mask: (N, T, K) bool, True where the turn has a K-th action token.
        token_rewards: (N, T, K) the turn's reward on its last action token, what KL takes on its own.
        token_values: (N, T, K) critic's estimate before each action token.

    and the settings' fields (all but `name` and `whiten`) as keywords. It returns advantages, (N, T) or (N, T, K),
    or an `Advantages`. Naming `values`, `token_values` or `bootstrap` makes the trainer keep a critic.
    """
    parameters = inspect.signature(function).parameters
    fields = set(settings.model_fields) - {"name", "whiten"}
    unknown = set(parameters) - set(COLUMNS) - fields
    if unknown:
        raise ConfigError(
            f"Advantage {name!r} asks for {sorted(unknown)}. Columns: {', '.join(COLUMNS)}; "
            f"settings of {settings.__name__}: {', '.join(sorted(fields))}."
        )
    ADVANTAGES.register(name, settings, function)


def needs_critic(function: AdvantageFunction) -> bool:
    """Whether the estimator reads a critic."""
    return not set(CRITIC_COLUMNS).isdisjoint(inspect.signature(function).parameters)


def compares_groups(function: AdvantageFunction) -> bool:
    """Whether the estimator reads groups, so that an episode alone in its group teaches nothing."""
    return "group" in inspect.signature(function).parameters


def estimate(settings: AdvantageSettings, columns: Mapping[str, Tensor]) -> Advantages:
    """Runs the estimator that the settings name."""
    function = ADVANTAGES[settings.name].function
    parameters = inspect.signature(function).parameters
    given: dict[str, Any] = {name: columns[name] for name in COLUMNS if name in parameters}
    given |= {name: getattr(settings, name) for name in type(settings).model_fields if name in parameters}
    out = function(**given)
    return out if isinstance(out, Advantages) else Advantages(out)
