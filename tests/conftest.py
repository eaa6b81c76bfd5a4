"""Options of the test run, and toy environments that many tests share."""

import os

# Before torch or a Hugging Face library loads: idle threads must not spin, and nothing may be fetched.
os.environ["OMP_WAIT_POLICY"] = "PASSIVE"
os.environ["HF_HUB_OFFLINE"] = "1"

import re

import numpy as np
import pytest

from turngym.envs.base import TurnEnv
from turngym.errors import TaskError
from turngym.types import JsonValue, TaskRange, Turn


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
