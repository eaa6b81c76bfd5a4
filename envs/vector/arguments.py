"""What `reset` and `step` of a vector environment are asked, one value for each environment."""

from collections.abc import Iterable, Sequence
from operator import index
from typing import Any

import numpy as np


def read_seeds(seed: int | Sequence[int | None] | None, num_envs: int) -> list[int | None]:
    """A seed, or None, for each environment: those after the first follow it by one.

    Raises:
        ValueError: a list of another length.
        TypeError: a seed that is no whole number.
    """
    if seed is None:
        return [None] * num_envs
    if isinstance(seed, Iterable):
        # NumPy's whole numbers too, which a single environment would refuse.
        seeds = [None if each is None else _whole(each) for each in seed]
    else:
        seeds = [_whole(seed) + i for i in range(num_envs)]
    if len(seeds) != num_envs:
        raise ValueError(f"{len(seeds)} seeds for {num_envs} environments. Give one for each.")
    return seeds


def read_mask(mask: Any, num_envs: int) -> list[int]:
    """Numbers of the environments that a reset mask names; None names all.

    Raises:
        TypeError: no array of bool.
        ValueError: an array of another shape, or one that names none.
    """
    if mask is None:
        return list(range(num_envs))
    if not isinstance(mask, np.ndarray) or mask.dtype != np.bool_:
        raise TypeError(f"options['reset_mask'] must be a numpy array of bool, got {mask!r}.")
    if mask.shape != (num_envs,) or not mask.any():
        raise ValueError(
            f"options['reset_mask'] must have shape ({num_envs},) and one True at least, got {mask}."
        )
    return [int(i) for i in np.flatnonzero(mask)]


def read_options(options: dict[str, Any], num_envs: int) -> list[dict[str, Any]]:
    """Options of each environment's reset; a list or array of tasks gives each its own.

    Raises:
        ValueError: a list of another length.
    """
    tasks = options.get("task")
    if not isinstance(tasks, list | tuple | np.ndarray):
        return [options] * num_envs
    if len(tasks) != num_envs:
        raise ValueError(f"{len(tasks)} tasks for {num_envs} environments. Give one for each.")
    return [{**options, "task": task} for task in tasks]


def read_actions(actions: Any, num_envs: int, playing: Sequence[int]) -> list[str]:
    """A command for each environment; those that do not play may have anything.

    Raises:
        TypeError: one that plays is given no str.
        ValueError: another number of actions.
    """
    if isinstance(actions, str):
        raise TypeError(f"Actions {actions!r} are one str. Give a sequence of {num_envs}.")
    commands = list(actions)
    if len(commands) != num_envs:
        raise ValueError(f"{len(commands)} actions for {num_envs} environments. Give one for each.")
    for i in playing:
        if not isinstance(commands[i], str):
            raise TypeError(f"An action is a str, got {type(commands[i]).__name__} {commands[i]!r}.")
    return [str(command) for command in commands]


def _whole(seed: Any) -> int:
    try:
        return index(seed)
    except TypeError as error:
        raise TypeError(f"A seed is a whole number or None, got {seed!r}.") from error
