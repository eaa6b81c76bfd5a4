"""An environment that hangs, dies or grows on command, importable by id (`faulty_env:toy/Faulty-v0`) everywhere."""

import ctypes
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np

from turngym.envs.base import TurnEnv
from turngym.errors import ConfigError, InfraError, MissingExtraError, TaskError
from turngym.types import JsonValue, TaskRange, Turn


class OddError(ConfigError):
    """An author's own kind of error, which cannot be made again from its text alone."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


ERRORS = {
    "task": TaskError("No task of that name. They look like 'faulty/7'."),
    "config": ConfigError("level = 9: choose 1 or 2."),
    "extra": MissingExtraError("Faulty needs the extra: pip install 'turngym[faulty]'"),
    "odd": OddError(7, "An error of its own kind. Do this."),
    "infra": InfraError("The sandbox died."),
    "bug": ZeroDivisionError("lamp"),
}


class Faulty(TurnEnv):
    """`go` three times wins. `hang`, `die`, `exit`, `quit`, `raise bug`, `swell 100` (grow, and hang) and others break it.

    `hang FILE` and the like happen only where the file is absent, and make it: so they happen once.
    """

    instructions = "Say go."
    max_turns = 12
    max_score = 3.0
    splits = {"train": TaskRange("faulty/", range(100)), "test": TaskRange("faulty/", range(100, 110))}

    def load(self, task: str, rng: np.random.Generator) -> str:
        if task.startswith("raise/"):
            raise ERRORS[task.removeprefix("raise/")]
        self.gone = 0
        self.held: list[bytes] = []
        return f"Start {rng.integers(1000)}, luck {self.np_random.integers(1000)}, process {os.getpid()}."

    def act(self, command: str) -> Turn:
        word, _, rest = command.partition(" ")
        if word == "go":
            self.gone += 1
            return Turn(f"Luck {self.np_random.integers(1000)}.", score=self.gone, solved=self.gone == 3)
        if word in ("hang", "hold", "die", "exit") and (not rest or self._first_time(rest)):
            self._break(word)
        if word == "raise":
            raise KeyError(self) if rest == "itself" else ERRORS[rest]
        if word == "quit":
            sys.exit(4)
        if word in ("grow", "swell"):
            self.held.append(b"x" * (int(rest) << 20))
        if word == "swell":
            self._break("hang")
        if word == "wait":
            while not Path(rest).exists():
                time.sleep(0.01)
        if word == "start":
            if rest == "orphan":  # Its parent is gone at once, and its session is its own.
                shell = ["sh", "-c", "setsid sleep 1000 > /dev/null & echo $!"]
                found = subprocess.run(shell, stdout=subprocess.PIPE, text=True, check=True).stdout
                return Turn(f"Started {found.strip()}.")
            child = subprocess.Popen(["sleep", "1000"], start_new_session=rest == "apart")
            return Turn(f"Started {child.pid}.")
        if word == "say":
            return Turn("y" * int(rest))
        if word == "print":
            sys.stdout.write("x" * 100_000 + "\n")
            subprocess.run(["echo", "from a child"], check=True)
            return Turn(f"Printed; input was {sys.stdin.read()!r}.")
        return Turn("Nothing.")

    def state(self) -> JsonValue:
        return self.gone

    def plan(self) -> list[str]:
        return ["go"] * (3 - self.gone)

    def _first_time(self, name: str) -> bool:
        path = Path(name)
        first = not path.exists()
        path.touch()
        return first

    def _break(self, how: str) -> None:
        if how == "hang":
            time.sleep(1000)
        elif how == "hold":
            ctypes.PyDLL(None).sleep(1000)  # In native code that keeps the interpreter to itself.
        elif how == "exit":
            os._exit(3)
        os.kill(os.getpid(), signal.SIGSEGV)


class Unsendable(Faulty):
    """Its plan holds what no other process can read."""

    def plan(self) -> list[str]:
        return [type("Local", (str,), {})("go")]


class Broken(str):
    """A command that can be pickled, and not be read again."""

    def __reduce__(self) -> tuple[Any, ...]:
        return Broken._made, ()

    @staticmethod
    def _made() -> None:
        raise LookupError("no such command")


class Unreadable(Faulty):
    """Its plan leaves its process and arrives nowhere."""

    def plan(self) -> list[str]:
        return [Broken("go")]


class Unclosable(Faulty):
    """Fails when it is closed."""

    def close(self) -> None:
        raise OSError("The door is stuck.")


def make_faulty() -> Faulty:
    """A factory that other processes can import."""
    return Faulty()


for name in ("Faulty", "Unsendable", "Unreadable", "Unclosable"):
    if f"toy/{name}-v0" not in gymnasium.registry:
        gymnasium.register(f"toy/{name}-v0", entry_point=f"faulty_env:{name}")
