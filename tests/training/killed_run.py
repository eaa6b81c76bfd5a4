"""Runs a recipe and kills its own process with SIGKILL at a chosen moment.

    python killed_run.py RECIPE.json PLACE CALL

PLACE names the function that dies (`never` kills nothing) and CALL its how-manieth call.
"""

import json
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

import turngym.training.checkpoint
import turngym.training.rl
import turngym.training.sft
from turngym.agents.policy import PolicyAgent
from turngym.training.optimizers import OptimizerSet
from turngym.training.run import train

PLACES: dict[str, tuple[Any, str]] = {
    "rollout": (PolicyAgent, "submit"),
    "update": (OptimizerSet, "step"),
    "save": (torch, "save"),
    "rename": (turngym.training.checkpoint, "_put_in_place"),
    "after-update": (turngym.training.rl, "canary"),
}
"""Where a run can be killed: before the function begins its work."""


def deadly(function: Callable[..., Any], call: int) -> Callable[..., Any]:
    calls = [0]

    def die(*arguments: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
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
