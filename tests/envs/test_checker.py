"""The checker passes a good environment and catches a broken one of each kind."""

import itertools
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium import spaces

from turngym.envs.base import TurnEnv
from turngym.envs.checker import CHECKS, CheckLine, CheckReport, check_env
from turngym.envs.checker.report import Finding
from turngym.envs.checker.solving import shared_task
from turngym.envs.checker.subject import Subject, difference, sample_tasks
from turngym.envs.pool import EnvRef
from turngym.errors import InfraError, TaskError, UnknownEnvError
from turngym.types import SPLITS, JsonValue, TaskRange, Turn


class Guess(TurnEnv):
    """A good environment: a digit to be found."""

    instructions = "Find my digit. Say `guess 3`, or `peek` to see it."
    max_turns = 6
    splits = {"train": TaskRange("", range(6)), "validation": TaskRange("", range(6, 8)), "test": ["8", "9"]}
    command_words = frozenset({"guess", "peek"})

    def load(self, task: str, rng: np.random.Generator) -> str:
        if not any(task in tasks for tasks in self.splits.values()):
            raise TaskError(f"Task {task!r} is no digit from '0' to '9'.")
        self.digit, self.said = task, ""
        return "I have chosen a digit."

    def act(self, command: str) -> Turn:
        if command == "peek":
            return Turn(f"It is {self.digit}.")
        if command not in self.commands():
            return Turn("Say `guess 3`.", valid=False)
        self.said = command[-1]
        right = self.said == self.digit
        return Turn("Right!" if right else f"Not {self.said}.", score=int(right), solved=right)

    def state(self) -> JsonValue:
        return [self.digit, self.said]

    def plan(self) -> list[str]:
        return [f"guess {self.digit}"]

    def commands(self) -> list[str]:
        return [*(f"guess {digit}" for digit in range(10)), "peek"]

    def inquire(self) -> str:
        return "peek"


def find(name: str, env: type[TurnEnv], *, strict: bool = False, **members: Any) -> Finding:
    """What one check finds in the environment with some members replaced."""
    broken: type[TurnEnv] = type(f"Broken{env.__name__}", (env,), members)
    ref = EnvRef.of(broken)
    tasks = {split: sample_tasks(broken.splits.get(split, ()), 3) for split in SPLITS}
    subject = Subject(ref, {split: some for split, some in tasks.items() if some}, strict=strict)
    return CHECKS[name](subject)


def line(report: CheckReport, name: str) -> Any:
    return next(one for one in report.lines if one.name == name)


ENV_MODULE = '''
import gymnasium
from turngym import TaskRange, Turn, TurnEnv
from turngym.errors import TaskError

class Coin(TurnEnv):
    instructions = "Say heads or tails."
    max_turns = 3
    splits = {"train": TaskRange("", range(4)), "validation": TaskRange("", range(4, 6)), "test": TaskRange("", range(6, 8))}
    command_words = frozenset({"heads", "tails"})

    def load(self, task, rng):
        if not any(task in tasks for tasks in self.splits.values()):
            raise TaskError(f"No coin {task!r}.")
        self.side, self.said = ("heads", "tails")[int(task) % 2], ""
        return HINT

    def act(self, command):
        if command not in ("heads", "tails"):
            return Turn("Heads or tails?", valid=False)
        self.said = command
        return Turn("Yes." if command == self.side else "No.", solved=command == self.side)

    def state(self):
        return [self.side, self.said]

    def plan(self):
        return [self.side]

    def commands(self):
        return ["heads", "tails"]

HINT = "A coin."
gymnasium.register("toy/Coin-v0", entry_point=Coin)
gymnasium.register("toy/HashCoin-v0", entry_point=lambda: type("HashCoin", (Coin,), {
    "state": lambda self: [self.side, self.said, hash(self.side)],
})())
'''  # fmt: skip


@pytest.fixture
def coin_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Name of an importable module with a good environment, and one that leans on `hash`."""
    (tmp_path / "coin_module.py").write_text(ENV_MODULE)
    monkeypatch.syspath_prepend(tmp_path)
    return "coin_module"


def test_a_good_environment_of_a_module_passes_every_check(coin_module: str) -> None:
    report = check_env(f"{coin_module}:toy/Coin-v0")
    assert [one for one in report.lines if one.status != "ok"] == []
    assert [one.name for one in report.lines] == list(CHECKS)
    assert report.ok and report.failed == ()


def test_keys_that_differ_between_processes_are_caught(coin_module: str) -> None:
    found = CHECKS["processes"](Subject(EnvRef(f"{coin_module}:toy/HashCoin-v0"), {"train": ("0",)}))
    assert found.status == "fail" and "PYTHONHASHSEED" in found.detail


def test_a_factory_that_no_process_can_import_is_warned_of() -> None:
    report = check_env(lambda: Guess(), junk_actions=50)
    assert line(report, "processes").status == "warn"
    assert "not checked" in line(report, "processes").detail
    assert report.ok


def test_rooms_passes_every_check() -> None:
    report = check_env("turngym/Rooms-v0", junk_actions=300, tasks_per_split=3)
    assert [one for one in report.lines if one.status != "ok"] == []


@pytest.mark.parametrize("name", [name for name in CHECKS if name != "processes"])
def test_the_good_toy_passes(name: str) -> None:
    found = find(name, Guess)
    assert (found.status, found.next_step) == ("ok", ""), found


# One broken environment for each thing that a check looks at. Methods take self as any method does.


def act_then(change: Callable[[Any, Turn], Turn]) -> Callable[[Any, str], Turn]:
    return lambda self, command: change(self, Guess.act(self, command))


def raise_on_empty(self: Any, command: str) -> Turn:
    if not command.strip():
        raise IndexError("string index out of range")
    return Guess.act(self, command)


def run_all(self: Any, command: str) -> Turn:
    turns = [Guess.act(self, part) for part in command.replace(" && ", "\n").split("\n")]
    return turns[-1]


def load_then(change: Callable[[Any, str, np.random.Generator], str]) -> Callable[..., str]:
    def load(self: Any, task: str, rng: np.random.Generator) -> str:
        Guess.load(self, task, rng)
        return change(self, task, rng)

    return load


def count_up(self: Any) -> JsonValue:
    self.ticks = getattr(self, "ticks", 0) + 1
    return [self.digit, self.said, self.ticks]


def remember_episodes(self: Any, task: str, rng: np.random.Generator) -> str:
    self.episodes = getattr(self, "episodes", 0) + 1
    return f"This is episode {self.episodes}."


def drawing_plan(self: Any) -> list[str]:
    self.np_random.random()
    return Guess.plan(self)


def lucky(self: Any, turn: Turn) -> Turn:
    return Turn(f"{turn.observation} Luck {self.np_random.integers(1000)}.", turn.score, turn.solved)


COUNTER = itertools.count()


def take_any_task(self: Any, task: str, rng: np.random.Generator) -> str:
    self.digit, self.said = task, ""
    return "I have chosen a digit."


def speak_three_letters(self: Any, **kwargs: Any) -> None:
    TurnEnv.__init__(self, **kwargs)
    self.observation_space = spaces.Text(3)


class Ledger:
    """State that a deep copy leaves behind."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def __deepcopy__(self, memo: Any) -> "Ledger":
        return self


def open_ledger(self: Any, task: str, rng: np.random.Generator) -> str:
    self.ledger = Ledger()
    return "I have chosen a digit."


def write_ledger(self: Any, turn: Turn) -> Turn:
    self.ledger.entries.append(turn.observation)
    return Turn(f"{turn.observation} {len(self.ledger.entries)}", turn.score, turn.solved, valid=turn.valid)


class DeafGuess(Guess):
    """Counts wrong guesses on a dial, so that the score can be anything."""

    max_score = 4.0
    points = 1.0

    def act(self, command: str) -> Turn:
        turn = super().act(command)
        return Turn(turn.observation, 4.0 if turn.solved else self.points, turn.solved, valid=turn.valid)


class EmptyInfo(Guess):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "lives": 3}


class NumpyScore(Guess):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "score": np.float64(0)}


class SetMessages(Guess):
    def _info(self) -> dict[str, Any]:
        return {**super()._info(), "messages": [{1, 2}]}


class Endless(Guess):
    def _outcome_after(self, turn: Turn) -> Any:
        return "won" if turn.solved else "running"


class EndsAsLimit(Guess):
    def _outcome_after(self, turn: Turn) -> Any:
        return "won" if turn.solved else "turn_limit"


class NeverOver(Guess):
    """Its episodes can be played on after the end."""

    def _info(self) -> dict[str, Any]:
        info = super()._info()
        self._outcome = "running"
        return info


class Generous(Guess):
    def _reward(self, solved: bool) -> float:
        return 0.5


class Lenient(Guess):
    def _refusal(self, command: str) -> str:
        return ""


def answer_none(self: Any, turn: Turn) -> Turn:
    return Turn(None) if not turn.valid else turn  # type: ignore[arg-type]


BROKEN: list[tuple[str, type[TurnEnv], dict[str, Any], str]] = [
    ("gymnasium", Guess, {"__init__": speak_three_letters}, "not within the observation space"),
    ("gymnasium", Guess, {"max_turns": 1, "metadata": {}, "seed": lambda self: None}, "`seed` function is dropped"),
    ("splits", Guess, {"splits": {"train": ["1"], "validation": ["2"]}}, "split 'test' has no tasks"),
    ("splits", Guess, {"splits": {"train": ["1"], "validation": ["2"], "test": []}}, "split 'test' has no tasks"),
    ("splits", Guess, {"splits": {"train": ["1", "2"], "validation": ["2"], "test": ["3"]}}, "'2' is in train and in valid"),
    ("splits", Guess, {"splits": {"train": [1], "validation": ["2"], "test": ["3"]}}, "holds 1, a int"),
    ("task ids", Guess, {"load": lambda self, task, rng: str(int(task))}, "ValueError while loading task 'no such task'"),
    ("task ids", Guess, {"load": take_any_task}, "load takes"),
    ("instructions", Guess, {"instructions": " "}, "has no instructions"),
    ("instructions", Guess, {"instructions": "Find my digit in 6 turns."}, "'6 turns'"),
    ("info", EmptyInfo, {}, "keys too many ['lives']"),
    ("info", NumpyScore, {}, "score is a float64"),
    ("info", SetMessages, {}, "JSON cannot hold it"),
    ("endings", Endless, {}, "still running after 6 turns"),
    ("endings", EndsAsLimit, {}, "truncated at turn 1 of 6"),
    ("endings", NeverOver, {}, "step after the end raised no ResetNeeded"),
    ("same start", Guess, {"load": load_then(lambda self, task, rng: f"Hi {self.np_random.integers(1000)}.")}, "depends on the seed"),
    ("same bytes", Guess, {"act": act_then(lambda self, turn: Turn(str(next(COUNTER))))}, "two instances differ at turn 1"),
    ("same bytes", Guess, {"load": load_then(remember_episodes)}, "differ"),
    ("looking", Guess, {"plan": drawing_plan, "act": act_then(lucky)}, "plan and commands were asked for differs"),
    ("looking", Guess, {"state": count_up}, "differs"),
    ("snapshot", Guess, {"load": load_then(open_ledger), "act": act_then(write_ledger)}, "restored to turn"),
    ("commands", Guess, {"commands": lambda self: ["peek", "peek"]}, "listed twice"),
    ("commands", Guess, {"commands": lambda self: ["dance", "peek"], "act": lambda self, command: Turn("?", valid=command == "peek")}, "'dance' is listed as admissible and refused"),
    ("commands", Guess, {"commands": lambda self: ["peek", *Guess.commands(self)[:-1]]}, "not sorted"),
    ("compound", Lenient, {"act": lambda self, command: Turn("Fine.")}, "was not refused"),
    ("compound", Guess, {"state": lambda self: [self.digit, self.said, self._turns]}, "refused, and yet state_key changed"),
    ("compound", Guess, {"act": run_all, "commands": lambda self: ["guess 0", "guess 1"], "plan": TurnEnv.plan, "inquire": TurnEnv.inquire, "compound_pattern": None}, "ran both commands in one turn"),
    ("junk", Guess, {"act": raise_on_empty}, "IndexError while playing"),
    ("junk", Guess, {"act": act_then(answer_none)}, "is a NoneType"),
    ("rewards", Generous, {}, "dense reward, turn 1: reward 0.5 instead of"),
    ("rewards", DeafGuess, {"points": 4.0}, "the score is full (4.0) and the task not solved"),
    ("rewards", DeafGuess, {"points": 5.0}, "score 5.0 with max_score 4.0"),
    ("rewards", DeafGuess, {"points": float("nan")}, "score nan"),
    ("expert", Guess, {"plan": lambda self: ["guess 0"]}, "not solved; '2' ended turn_limit after 6 of 6 turns, the last 'guess 0'"),
    ("expert", Guess, {"plan": TurnEnv.plan}, "no expert"),
    ("honesty", Guess, {"inquire": TurnEnv.inquire}, "the expert says 'guess 0', and nothing has shown '0'"),
    ("honesty", Guess, {"command_words": frozenset({"guess"}), "instructions": "Go."}, "the expert says 'peek'"),
    ("honesty", Guess, {"plan": TurnEnv.plan}, "no expert"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "env", "members", "detail"), BROKEN)
def test_a_broken_environment_is_caught(
    name: str, env: type[TurnEnv], members: dict[str, Any], detail: str
) -> None:
    found = find(name, env, **members)
    assert found.status in ("warn", "fail") and detail in found.detail, found
    assert found.next_step


def test_every_check_is_shown_to_fail() -> None:
    assert {name for name, *_ in BROKEN} | {"processes"} == set(CHECKS)


def test_a_full_score_is_allowed_where_the_class_says_so() -> None:
    assert find("rewards", DeafGuess, points=4.0, score_can_fill_unsolved=True).status == "ok"
    assert find("rewards", DeafGuess, points=-1.0).status == "ok"


def test_an_environment_of_one_turn_is_no_mistake() -> None:
    assert find("gymnasium", Guess, max_turns=1).status == "ok"


def test_an_environment_without_expert_is_warned_of_and_passes() -> None:
    report = check_env(type("Plain", (Guess,), {"plan": TurnEnv.plan}), junk_actions=50)
    assert report.ok
    assert line(report, "expert").status == line(report, "honesty").status == "warn"
    assert "SFT can make no demonstrations" in line(report, "expert").detail


def test_an_expert_that_these_arguments_take_away_is_told_as_such() -> None:
    found = find("expert", Guess, can_plan=False)
    assert found.status == "warn" and found.detail.startswith("no expert with these arguments")
    assert "Write plan()" not in found.next_step


def test_lines_are_told_one_by_one_and_counted() -> None:
    told: list[CheckLine] = []
    report = check_env(type("Plain", (Guess,), {"plan": TurnEnv.plan}), junk_actions=50, on_line=told.append)
    assert tuple(told) == report.lines
    # A new process cannot import a class made here: the third warning.
    assert report.summary() == f"Plain: {len(CHECKS) - 3} checks passed, 3 with a warning"
    failing = check_env(Generous, junk_actions=50, on_line=told.append)
    assert failing.summary().endswith("1 failed") and "warning" not in failing.summary()


def test_what_the_tasks_need_is_made_first_and_a_full_disk_is_no_fault_of_the_environment() -> None:
    prepared: list[str] = []

    def prepare(self: Guess, tasks: Sequence[str]) -> None:
        prepared.extend(tasks)

    check_env(type("Slow", (Guess,), {"prepare": prepare}), junk_actions=10)
    assert {"0", "5", "6", "7", "8", "9"} <= {*prepared}

    def fail(self: Guess, tasks: Sequence[str]) -> None:
        raise InfraError("The disk is full.")

    with pytest.raises(InfraError, match="disk is full"):
        check_env(type("Full", (Guess,), {"prepare": fail}))


def test_large_splits_are_said_to_be_compared_in_part() -> None:
    ranges = {name: TaskRange(f"{name}/", range(3000)) for name in SPLITS}
    assert "among" not in find("splits", Guess, splits=ranges).detail
    listed = {name: list(tasks) for name, tasks in ranges.items()}
    assert find("splits", Guess, splits=listed).detail.endswith("no task in two splits among 2000 of each")


def test_strict_shows_the_traceback() -> None:
    assert "Traceback" not in find("junk", Guess, act=raise_on_empty).detail
    found = find("junk", Guess, strict=True, act=raise_on_empty)
    assert "Traceback" in found.detail and "raise_on_empty" in found.detail


def test_a_fault_in_one_check_is_a_line_and_the_others_go_on() -> None:
    def plan(self: Any) -> list[str]:
        raise RecursionError("planner")

    report = check_env(type("Deep", (Guess,), {"plan": plan}), junk_actions=50, strict=True)
    assert "RecursionError while the check 'expert' ran: planner" in line(report, "expert").detail
    assert "Traceback" in line(report, "expert").detail
    assert line(report, "junk").status == "ok" and not report.ok


def test_an_environment_that_cannot_be_made_is_one_failed_line() -> None:
    def factory() -> TurnEnv:
        raise RuntimeError("no engine")

    report = check_env(factory)
    assert [(one.name, one.status) for one in report.lines] == [("made", "fail")]
    assert "no engine" in report.lines[0].detail


def test_an_unknown_id_raises() -> None:
    with pytest.raises(UnknownEnvError):
        check_env("turngym/Romos-v0")


def test_no_tasks_at_all_is_one_failed_line() -> None:
    report = check_env(type("Bare", (Guess,), {"splits": {}}))
    assert [(one.name, one.status) for one in report.lines] == [("splits", "fail")]


def test_arguments_reach_the_environment() -> None:
    report = check_env(Guess, kwargs={"max_turns": 1}, junk_actions=10)
    assert "of 1 turns" in line(report, "expert").detail


class Costly(Sequence[str]):
    """Cannot be listed at all, and says where its tasks lie."""

    def __init__(self, prefix: str, numbers: range) -> None:
        self._range = TaskRange(prefix, numbers)

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: Any) -> Any:
        raise AssertionError("costs too much")

    def covers(self) -> tuple[TaskRange, ...]:
        return (self._range,)


@pytest.mark.parametrize(
    ("one", "other", "shared"),
    [
        (TaskRange("a/", range(10**12)), TaskRange("a/", range(10**12, 10**13)), None),
        (TaskRange("a/", range(10**12)), TaskRange("a/", range(10**12 - 1, 10**13)), "a/999999999999"),
        (TaskRange("a/", range(10)), TaskRange("b/", range(10)), None),
        (TaskRange("a/", range(0, 20, 2)), TaskRange("a/", range(1, 20, 2)), None),
        (TaskRange("a/", range(0, 20, 2)), TaskRange("a/", range(1, 20, 3)), "a/4"),
        (TaskRange("a/", range(10)), ["x", "a/7"], "a/7"),
        (["x"], ["y"], None),
        (TaskRange("a/", range(0)), TaskRange("a/", range(5)), None),
        (TaskRange("a", range(10, 20)), TaskRange("a1", range(3)), "a10"),
        (Costly("a/", range(9)), TaskRange("a/", range(9, 12)), None),
        (["a/9", "b/3"], Costly("a/", range(9)), None),
        (Costly("a/", range(9)), Costly("b/", range(9)), None),
    ],
)
def test_shared_tasks_are_found(one: Any, other: Any, shared: str | None) -> None:
    started = time.perf_counter()
    assert shared_task(one, other) == shared
    assert time.perf_counter() - started < 1


def test_sampled_tasks_are_spread_from_first_to_last() -> None:
    assert sample_tasks(TaskRange("", range(101)), 5) == ("0", "25", "50", "75", "100")
    assert sample_tasks(["a", "b"], 5) == ("a", "b")
    assert sample_tasks(TaskRange("", range(9)), 1) == ("0",)


def test_difference_shows_where_two_plays_part() -> None:
    assert difference(["a", "b"], ["a", "b"]) == ""
    assert difference(["a", "same here"], ["a", "same there"]).startswith("turn 1: ...same here")
    assert difference(["a"], ["a", "b"]) == "1 answers against 2"
