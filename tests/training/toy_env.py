"""A toy game of two turns, importable by id (`toy_env:toy/Signs-v0`) in this process and in others."""

import gymnasium
import numpy as np

from turngym.envs.base import TurnEnv
from turngym.types import JsonValue, TaskRange, Turn

COLOURS = ("red", "blue", "green")


class Signs(TurnEnv):
    """Two signs, one after the other; the right command is the colour that the present one shows."""

    instructions = "Say it."
    max_turns = 3
    max_score = 2.0
    splits = {
        "train": TaskRange("signs/", range(40)),
        "validation": TaskRange("signs/", range(40, 52)),
        "test": TaskRange("signs/", range(52, 60)),
    }

    def load(self, task: str, rng: np.random.Generator) -> str:
        self.colours = [COLOURS[int(i)] for i in rng.integers(len(COLOURS), size=2)]
        self.seen = self.right = 0
        return self._sign()

    def act(self, command: str) -> Turn:
        valid = command in COLOURS
        if valid:
            self.right += command == self.colours[self.seen]
            self.seen += 1
        over = self.seen == 2
        text = "The end." if over else self._sign()
        return Turn(text, score=self.right, solved=over and self.right == 2, over=over, valid=valid)

    def state(self) -> JsonValue:
        return [*self.colours, self.seen, self.right]

    def plan(self) -> list[str]:
        return self.colours[self.seen :]

    def commands(self) -> list[str]:
        return list(COLOURS)

    def _sign(self) -> str:
        return self.colours[self.seen]


gymnasium.register("toy/Signs-v0", entry_point="toy_env:Signs")
