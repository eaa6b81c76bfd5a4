"""Episodes made by hand, and a toy environment to play."""

from collections.abc import Callable, Iterator

import gymnasium
import numpy as np
import pytest

from turngym.benchmarks.suite import Panel
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.errors import InfraError
from turngym.types import Episode, JsonValue, Outcome, PlayedTurn, TaskRange, Turn

MakeEpisode = Callable[..., Episode]
MakePanel = Callable[..., Panel]


@pytest.fixture
def make_episode() -> MakeEpisode:
    def make(
        number: int, task: str, outcome: Outcome, *, valid: tuple[bool, ...] = (True,), error: str = ""
    ) -> Episode:
        last = len(valid) - 1
        turns = tuple(
            PlayedTurn("go", "ok", float(outcome == "won" and at == last), 0.0, one, "policy")
            for at, one in enumerate(valid)
        )
        return Episode(
            number, 0, "toy", {}, task, 0, 0, "hand", "", "", turns, outcome, 0.0, 1.0, "", error=error
        )

    return make


@pytest.fixture
def make_panel() -> MakePanel:
    def make(*tasks: str, repeats: int = 1) -> Panel:
        return Panel("toy", EnvRef("toy"), tasks, repeats)

    return make


class ToyEnv(TurnEnv):
    """Task `t3` is solved by `say 3` and lost by another digit; `fail` breaks the environment, `crash` a worker."""

    instructions = "Say my digit."
    max_turns = 3
    splits = {
        "train": TaskRange("t", range(4)),
        "validation": TaskRange("t", range(4, 6)),
        "test": TaskRange("t", range(6, 10)),
    }

    def load(self, task: str, rng: np.random.Generator) -> str:
        self.digit = task.removeprefix("t")
        return f"It is {self.digit}."

    def act(self, command: str) -> Turn:
        if command == "fail":
            raise ValueError("broken")
        if command == "crash":
            raise InfraError("worker died")
        word, _, digit = command.partition(" ")
        if word != "say":
            return Turn("What?", valid=False)
        return Turn("Over.", solved=digit == self.digit, over=True)

    def state(self) -> JsonValue:
        return {"digit": self.digit}

    def plan(self) -> list[str]:
        return [f"say {self.digit}"]

    def commands(self) -> list[str]:
        return [f"say {digit}" for digit in range(10)]


@pytest.fixture
def toy_env() -> type[TurnEnv]:
    return ToyEnv


@pytest.fixture
def toy_id() -> Iterator[str]:
    env_id = "toys/Toy-v0"
    gymnasium.register(env_id, entry_point=lambda **kwargs: ToyEnv(**kwargs))
    yield env_id
    del gymnasium.registry[env_id]


@pytest.fixture
def toy_panel() -> Panel:
    return Panel("toy", EnvRef("toy", {}, ToyEnv), tuple(ToyEnv.splits["test"]), 4)
