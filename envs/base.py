"""TurnEnv: an author writes `load`, `act` and `state`; all the rest of an environment stands here."""

import copy
import hashlib
import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, final

import gymnasium
import numpy as np
from gymnasium.error import ResetNeeded

from turngym import seeding
from turngym.envs.spaces import Unicode
from turngym.errors import ConfigError, EnvContractError, TaskError
from turngym.types import SPLITS, Demonstration, JsonValue, Outcome, Split, Turn

Reward = Literal["dense", "sparse"]

UNSOLVED_PROGRESS_CAP = 0.9
"""Most progress of an unsolved episode where the score can be full without solving (DEFINITIONS section 1)."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A moment of an episode: what `TurnEnv.restore` needs to go on from here."""

    task: str
    seed: int | None
    chance: Mapping[str, Any]
    commands: tuple[str, ...]
    saved: Mapping[str, Any] | None


class TurnEnv(gymnasium.Env[str, str], ABC):
    """A text environment of many turns, with Gymnasium's five values.

    An author writes three methods and a few class attributes.

    Example:
        >>> from turngym import TaskRange, Turn, TurnEnv
        >>> class Guess(TurnEnv):
        ...     instructions = "Guess my digit from 0 to 9. Say `guess 3`."
        ...     max_turns = 4
        ...     splits = {"train": TaskRange("", range(6)), "test": TaskRange("", range(6, 9))}
        ...
        ...     def load(self, task, rng):
        ...         self.digit = rng.integers(10)
        ...         return "I have one."
        ...
        ...     def act(self, command):
        ...         guess = command.removeprefix("guess ")
        ...         if not guess.isdecimal():
        ...             return Turn("Say `guess 3`.", valid=False)
        ...         right = int(guess) == self.digit
        ...         return Turn("Yes!" if right else "No.", solved=right)
        ...
        ...     def state(self):
        ...         return int(self.digit)
        >>> env = Guess()
        >>> env.reset(seed=1)[0]
        'I have one.'
        >>> observation, reward, terminated, truncated, info = env.step("four, please")
        >>> observation, info["valid"], info["outcome"]
        ('Say `guess 3`.', False, 'running')

    `reset` and `step` are final. The base computes rewards (DEFINITIONS section 1), the outcome, the turn
    limit, the keys of state and start, refuses compound and over-long commands, and takes snapshots.

    Args:
        reward: "dense" pays progress made in the turn and can fall; a solved episode returns 1, every other
            less. "sparse" pays 1 on the turn that solves. At a discount below 1, going up and down under
            "dense" pays a little; at 1 it pays nothing.
        max_turns: turn limit; None takes the class's own. The limit is told in the instructions only.
        list_commands: whether `info["admissible"]` is filled, where the environment can list commands.

    Attributes:
        instructions: what the agent is told before the first observation; `load` may set it per task.
        max_turns, max_score: limits; `load` may set `max_score` per task.
        splits: train, validation and test task ids, pairwise disjoint.
        score_can_fill_unsolved: True where the score may reach `max_score` while the task is unsolved.
        compound_pattern: what marks several commands in one; such a turn is refused with the state untouched.
        max_command_chars: longer commands are refused likewise.
        command_words: words of the command language, which an honest expert may use unseen.
        augmentations: names that `augment` takes.
    """

    metadata: dict[str, Any] = {"render_modes": []}

    instructions: str = ""
    max_turns: int = 0
    max_score: float = 1.0
    splits: Mapping[str, Sequence[str]] = {}
    score_can_fill_unsolved: ClassVar[bool] = False
    compound_pattern: ClassVar[re.Pattern[str] | None] = re.compile(r"[\n\r]")
    max_command_chars: ClassVar[int] = 500
    command_words: frozenset[str] = frozenset()
    augmentations: ClassVar[tuple[str, ...]] = ()

    def __init__(
        self, *, reward: Reward = "dense", max_turns: int | None = None, list_commands: bool = True
    ) -> None:
        if reward not in ("dense", "sparse"):
            raise ConfigError(f"reward = {reward!r} is not known. Choose 'dense' or 'sparse'.")
        if max_turns is not None:
            self.max_turns = max_turns
        if isinstance(self.max_turns, bool) or not isinstance(self.max_turns, int) or self.max_turns < 1:
            raise ConfigError(
                f"{type(self).__name__}.max_turns = {self.max_turns!r}: set a whole number of turns, 1 or more."
            )
        self.observation_space = Unicode()
        self.action_space = Unicode()
        self.reward = reward
        self.list_commands = list_commands
        self._task: str | None = None
        self._outcome: Outcome = "running"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        for name in ("reset", "step"):
            if name in cls.__dict__:
                raise EnvContractError(
                    f"{cls.__name__}.{name}: {name} is final in TurnEnv. Write load, act and state instead."
                )

    # The author's part.

    @abstractmethod
    def load(self, task: str, rng: np.random.Generator) -> str:
        """Builds the start of a task and returns the first observation.

        Args:
            task: the id, which with the class alone must fix the start.
            rng: a generator that depends on environment id, version and task, and on nothing else.

        Raises:
            TaskError: the id is none of this environment's.
        """

    @abstractmethod
    def act(self, command: str) -> Turn:
        """Carries out one command; never raises because of what an agent said.

        Chance during the episode comes from `self.np_random` only.
        """

    @abstractmethod
    def state(self) -> JsonValue:
        """The whole true state, as a JSON value: equal states, equal values."""

    def plan(self) -> list[str]:
        """The expert's remaining commands from the present state; [] when there is no way or no expert."""
        return []

    def commands(self) -> list[str] | None:
        """Admissible commands now; None when the environment lists none."""
        return None

    def inquire(self) -> str:
        """The command that reveals names the plan needs (look at the inventory, read the record), or ""."""
        return ""

    def words(self) -> Sequence[str]:
        """Words that the environment may ever say or read, for tokenizers made for it; () when it tells none."""
        return ()

    def prepare(self, tasks: Sequence[str]) -> None:
        """Makes ahead, in parallel and with progress, what these tasks need (compiled games, downloads)."""

    def augment(self, name: str, demo: Demonstration, rng: np.random.Generator) -> Demonstration:
        """The demonstration in other words that hold the same facts; unchanged where it has no other."""
        raise ConfigError(
            f"{type(self).__name__} offers no augmentation {name!r}. It offers: {self.augmentations}."
        )

    # The base's part.

    def tasks(self, split: Split) -> Sequence[str]:
        """Task ids of a split, as a lazy sequence."""
        if split not in SPLITS:
            raise ConfigError(f"No split {split!r}. Splits: {', '.join(SPLITS)}.")
        if split not in self.splits:
            raise ConfigError(f"{type(self).__name__} has no tasks for {split!r}. Name them in `splits`.")
        return self.splits[split]

    @property
    def can_plan(self) -> bool:
        """Whether the class brings an expert."""
        return type(self).plan is not TurnEnv.plan

    @final
    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Starts an episode.

        Args:
            seed: seeds the chance during the episode, and picks the task where options name none.
            options: {"task": id} fixes the task, {"split": name} picks from that split (default train).

        Raises:
            TaskError: the task id cannot be loaded.
            ConfigError: unknown option or split.
        """
        options = dict(options or {})
        task, split = options.pop("task", None), options.pop("split", "train")
        if options:
            raise ConfigError(f"reset options {sorted(options)} are not known. Known: task, split.")
        super().reset(seed=seed)
        if task is None:
            tasks = self.tasks(split)
            # From a child stream: chance during the episode is the same whether the task was named or picked.
            task = tasks[int(self.np_random.spawn(1)[0].integers(len(tasks)))]
        if not isinstance(task, str):
            raise TaskError(
                f"Task {task!r} is no string. Task ids of this environment look like {self._example()!r}."
            )
        self._start(task, seed)
        info = self._info()
        info["instructions"] = self.told()
        info["tools"] = []
        return self._observation, info

    @final
    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Plays one turn.

        Returns:
            observation, reward, terminated, truncated, info. `terminated`: the task is decided.
            `truncated`: the turn limit is reached.

        Raises:
            ResetNeeded: before the first reset, or after the end.
            TypeError: the action is no str.
        """
        if self._task is None or self._outcome != "running":
            raise ResetNeeded("The episode has ended or never began. Call reset() first.")
        if not isinstance(action, str):
            raise TypeError(f"An action is a str, got {type(action).__name__} {action!r}.")
        self._commands.append(action)
        refusal = self._refusal(action)
        turn = Turn(refusal, valid=False) if refusal else self.act(action)
        if not isinstance(turn, Turn):
            raise EnvContractError(
                f"{type(self).__name__}.act returned {turn!r}. Return Turn(observation, ...)."
            )
        self._turns += 1
        self._valid = turn.valid
        if turn.score is not None:
            self._score = float(turn.score)
        self._outcome = self._outcome_after(turn)
        reward = self._reward(turn.solved)
        self._observation = turn.observation
        over = self._outcome in ("won", "lost")
        return turn.observation, reward, over, self._outcome == "turn_limit", self._info()

    def told(self) -> str:
        """The instructions as the agent reads them: the environment's own, and the turn limit."""
        limit = "1 turn" if self.max_turns == 1 else f"{self.max_turns} turns"
        return f"{self.instructions} You have {limit}.".strip()

    def snapshot(self) -> Snapshot:
        """This moment of the episode: a deep copy where the state allows it, else the commands to replay."""
        if self._task is None:
            raise ResetNeeded("There is no episode to take a snapshot of. Call reset() first.")
        try:
            saved = copy.deepcopy(
                {name: value for name, value in vars(self).items() if name not in _NOT_SAVED}
            )
        except (TypeError, ValueError, NotImplementedError, copy.Error):
            saved = None
        return Snapshot(self._task, self._seed, self._chance, tuple(self._commands), saved)

    def restore(self, snapshot: Snapshot) -> None:
        """Goes back to a snapshot of this environment; it can be restored any number of times."""
        if snapshot.saved is not None:
            for name in vars(self).keys() - snapshot.saved.keys() - _NOT_SAVED:
                delattr(self, name)  # An attribute that the episode made after the snapshot.
            vars(self).update(copy.deepcopy(dict(snapshot.saved)))
            return
        # Not by `reset`: without a seed it would draw other chance than the episode had.
        self.np_random.bit_generator.state = dict(snapshot.chance)
        self._start(snapshot.task, snapshot.seed)
        for command in snapshot.commands:
            self.step(command)

    def _start(self, task: str, seed: int | None) -> None:
        identity = (
            self.spec.id if self.spec is not None else f"{type(self).__module__}:{type(self).__qualname__}"
        )
        self._task, self._seed = None, seed  # A task that fails to load leaves no episode behind.
        self._chance = self.np_random.bit_generator.state
        self._turns, self._score, self._progress = 0, 0.0, 0.0
        self._valid, self._outcome = True, "running"
        self._commands: list[str] = []
        self._observation = self.load(task, seeding.generator("task", identity, task))
        if not isinstance(self._observation, str):
            raise EnvContractError(
                f"{type(self).__name__}.load returned {self._observation!r}. Return the first observation, a str."
            )
        self._start_score = self._score
        if not self.max_score > self._start_score:
            raise EnvContractError(
                f"{type(self).__name__}: max_score {self.max_score} must exceed the start's score {self._start_score}."
            )
        self._task = task
        self._start_key = self._key()

    def start_at(self, score: float) -> None:
        """For `load`: a start that already has points; progress is counted from there."""
        self._score = float(score)

    def _outcome_after(self, turn: Turn) -> Outcome:
        if turn.solved:
            return "won"
        if turn.over:
            return "lost"
        return "turn_limit" if self._turns >= self.max_turns else "running"

    def _reward(self, solved: bool) -> float:
        if self.reward == "sparse":
            return 1.0 if solved else 0.0
        progress = 1.0 if solved else (self._score - self._start_score) / (self.max_score - self._start_score)
        if self.score_can_fill_unsolved and not solved:
            progress = min(progress, UNSOLVED_PROGRESS_CAP)
        reward, self._progress = progress - self._progress, progress
        return reward

    def _refusal(self, command: str) -> str:
        if len(command) > self.max_command_chars:
            return f"That command has {len(command)} characters; at most {self.max_command_chars} are read."
        if self.compound_pattern is not None and self.compound_pattern.search(command.strip()):
            return "Give one command per turn."
        return ""

    def _key(self) -> str:
        text = json.dumps(self.state(), sort_keys=True, separators=(",", ":"), ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()

    def _info(self) -> dict[str, Any]:
        running = self._outcome == "running"
        return {
            "task": self._task,
            "turn": self._turns,
            "score": self._score,
            "max_score": float(self.max_score),
            "success": self._outcome == "won",
            "outcome": self._outcome,
            "valid": self._valid,
            "admissible": self.commands() if self.list_commands and running else None,
            "state_key": self._key() if self._turns else self._start_key,
            "start_key": self._start_key,
            "messages": [],
        }

    def _example(self) -> str:
        for split in SPLITS:
            if self.splits.get(split):
                return self.splits[split][0]
        return ""


# Not part of an episode: what the constructor or Gymnasium fixes.
_NOT_SAVED = frozenset({"spec", "observation_space", "action_space", "splits", "render_mode"})
