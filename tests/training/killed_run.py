"""Runs a recipe and kills its own process with SIGKILL at a chosen moment.

    python killed_run.py RECIPE.json PLACE CALL

PLACE names the function that dies (`never` kills nothing) and CALL which call of it, counted from 1.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import turngym.training.collect
import turngym.training.rl
from turngym.agents.policy import PolicyAgent
from turngym.training.optimizers import OptimizerSet
from turngym.training.run import train

PLACES: dict[str, tuple[Any, str]] = {
    "rollout": (turngym.training.rl, "collect"),
    "update": (OptimizerSet, "step"),
    "save": (torch, "save"),
}
"""Where a run can be killed: before the function begins its work, or in the middle of a rollout."""


def deadly(function: Callable[..., Any], call: int) -> Callable[..., Any]:
    calls = [0]

    def die(*arguments: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == call and function is turngym.training.collect.collect:
            # Not before the rollout but within it, when some turns have been read.
            PolicyAgent.submit = deadly(PolicyAgent.submit, 10)  # type: ignore[method-assign]
        elif calls[0] == call:
            os.kill(os.getpid(), signal.SIGKILL)
        return function(*arguments, **more)

    return die


def main(recipe: str, place: str, call: str) -> None:
    if place != "never":
        owner, name = PLACES[place]
        setattr(owner, name, deadly(getattr(owner, name), int(call)))
    train(json.loads(Path(recipe).read_text(encoding="utf-8")))


if __name__ == "__main__":
    main(*sys.argv[1:])
