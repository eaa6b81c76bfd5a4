"""Options of the test run, and the toy environments and recipes that many tests share."""

import os

# Before torch or a Hugging Face library loads: idle threads must not spin, and nothing may be fetched.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"

import re
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.envs.base import TurnEnv
from turngym.errors import TaskError
from turngym.types import JsonValue, TaskRange, Turn

# A shell without job control starts what runs in its background with Ctrl-C ignored, and children inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Makes `toy_env:toy/Signs-v0` importable, as the command line does with the current folder.
sys.path.insert(0, str(Path(__file__).parent / "training"))

# Random play is imitated until some colour is said each turn, so that the episodes of RL differ.
SFT = {
    "steps": 10,
    "episodes_per_step": 4,
    "tasks": {"count": 8},
    "demos": {"noise": [1.0]},
    "train_on": "all",
    "optim": {"lr": 1e-2},
}
RL = {
    "updates": 2,
    "groups": 2,
    "group_size": 4,
    "advantage": "reinforce",
    "checkpoint_every": 1,
    "tasks": {"start": 8},
}

ToyRecipe = Callable[..., dict[str, Any]]


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="rewrite tests/golden instead of comparing")
    parser.addoption("--full", action="store_true", help="also run the full form of tests that CI samples")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if config.getoption("--full"):
        return
    skip = pytest.mark.skip(reason="the full form runs with --full")
    for item in items:
        if item.get_closest_marker("full"):
            item.add_marker(skip)


@pytest.fixture
def update_golden(request: pytest.FixtureRequest) -> bool:
    """Whether golden files are to be rewritten."""
    return bool(request.config.getoption("--update-golden"))


class Vault(TurnEnv):
    """Two of three wheels open the vault, in an order that only `read` shows.

    A wrong wheel closes it again, so the score can fall; `smash` loses. Chance is in the reading only.
    """

    instructions = "Open the vault. Say `read`, or `turn` and a colour."
    max_turns = 6
    max_score = 2.0
    splits = {
        "train": TaskRange("vault/", range(30)),
        "validation": TaskRange("vault/", range(30, 40)),
        "test": TaskRange("vault/", range(40, 50)),
    }
    compound_pattern = re.compile(r"[;\n\r]|\.\s*\S|\bthen\b", re.IGNORECASE)
    command_words = frozenset({"read", "turn", "smash"})

    def load(self, task: str, rng: np.random.Generator) -> str:
        if not any(task in tasks for tasks in self.splits.values()):
            raise TaskError(f"Task {task!r} is none of the vault's. They look like 'vault/7'.")
        self.order = [("red", "blue", "green")[int(i)] for i in rng.permutation(3)[:2]]
        self.turned = 0
        return "A vault with three wheels: red, blue and green."

    def act(self, command: str) -> Turn:
        words = command.lower().rstrip(". ").split()
        if words == ["read"]:
            return Turn(
                f"{' before '.join(self.order)}. The lamp flickers {self.np_random.integers(100)} times."
            )
        if words == ["smash"]:
            return Turn("Alarm!", over=True)
        if len(words) != 2 or words[0] != "turn" or words[1] not in ("red", "blue", "green"):
            return Turn("Nothing happens.", valid=False)
        self.turned = self.turned + 1 if words[1] == self.order[self.turned] else 0
        return Turn("Click." if self.turned else "Clack.", score=self.turned, solved=self.turned == 2)

    def state(self) -> JsonValue:
        return [*self.order, self.turned]

    def plan(self) -> list[str]:
        return [f"turn {colour}" for colour in self.order[self.turned :]]

    def commands(self) -> list[str]:
        return ["read", "turn blue", "turn green", "turn red"]

    def inquire(self) -> str:
        return "read"


@pytest.fixture
def vault() -> type[Vault]:
    """The class of a toy environment of two commands, with expert, chance, a falling score and a way to lose."""
    return Vault


@pytest.fixture
def toy(tmp_path: Path) -> ToyRecipe:
    """Makes recipe values: `toy()` has both stages, `toy(sft=None)` or `toy(rl=None)` leaves one out."""

    def make(
        *, sft: dict[str, Any] | None = SFT, rl: dict[str, Any] | None = RL, **run: Any
    ) -> dict[str, Any]:
        stages: list[dict[str, Any]] = [{"sft": dict(sft)}] if sft is not None else []
        stages += [{"rl": dict(rl)}] if rl is not None else []
        return {
            "model": {"hidden": 32, "layers": 1, "heads": 2, "ff": 64, "positions": 64},
            "agent": {"max_new_tokens": 2, "max_context": 64},
            "envs": [{"id": "toy_env:toy/Signs-v0"}],
            "stages": stages,
            "validation": {"tasks": 4},
            "run": {"threads": 1, "out": str(tmp_path / "run"), **run},
        }

    return make
