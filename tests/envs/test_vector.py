"""`make_vec` against Gymnasium's own SyncVectorEnv, and what it does beyond it."""

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, SyncVectorEnv, VectorEnv

import turngym
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.envs.vector import AUTORESET_MODES, PoolVectorEnv, make_vec
from turngym.errors import ConfigError, EnvContractError, InfraError, TaskError

ROOMS: dict[str, Any] = {"level": "w2-o3-q4", "max_turns": 4}
NUM = 3
MODES = sorted(AUTORESET_MODES)

Maker = Callable[..., PoolVectorEnv]


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Maker]:
    """`make_vec`, closed at the end, with the faulty environment of the pool's tests at hand."""
    monkeypatch.syspath_prepend(Path(__file__).parent / "pool")
    made: list[PoolVectorEnv] = []

    def make_one(*arguments: Any, **more: Any) -> PoolVectorEnv:
        made.append(make_vec(*arguments, **more))
        return made[-1]

    yield make_one
    for envs in made:
        envs.close()


def rooms(make: Maker, mode: str, *, workers: int = 0) -> tuple[PoolVectorEnv, SyncVectorEnv[Any, Any]]:
    """The same environments from us and from Gymnasium."""
    gymnasiums = SyncVectorEnv(
        [lambda: turngym.make("Rooms-v0", **ROOMS) for _ in range(NUM)], autoreset_mode=AUTORESET_MODES[mode]
    )
    return make("Rooms-v0", NUM, workers=workers, autoreset_mode=mode, **ROOMS), gymnasiums


def assert_same(one: Any, other: Any, place: str = "") -> None:
    """Equal in values, kinds, types of arrays and order of keys."""
    assert type(one) is type(other), place
    if isinstance(one, dict):
        assert list(one) == list(other), place
        for key in one:
            assert_same(one[key], other[key], f"{place}.{key}")
    elif isinstance(one, np.ndarray):
        assert (one.dtype, one.shape) == (other.dtype, other.shape), place
        for i, (a, b) in enumerate(zip(one.tolist(), other.tolist(), strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    elif isinstance(one, tuple):
        assert len(one) == len(other), place
        for i, (a, b) in enumerate(zip(one, other, strict=True)):
            assert_same(a, b, f"{place}[{i}]")
    else:
        assert one == other, place


def chosen_actions(infos: dict[str, Any], turn: int) -> list[str]:
    """Admissible commands, junk, and for the second part a command too long to be read."""
    actions = []
    for i in range(NUM):
        listed = infos["admissible"][i] if "admissible" in infos else None
        actions.append(listed[(turn * 7 + i) % len(listed)] if listed else "nonsense")
    if turn % 5 == 3:
        actions[1] = "x" * 600
    return actions


def play_both(ours: VectorEnv[Any, Any], theirs: VectorEnv[Any, Any], steps: int) -> int:
    """Plays both, comparing all they answer; counts the episodes that ended."""
    answers = ours.reset(seed=11), theirs.reset(seed=11)
    assert_same(*answers, "reset")
    infos, ended = answers[0][1], 0
    disabled = ours.metadata["autoreset_mode"] is AutoresetMode.DISABLED
    for turn in range(steps):
        actions = chosen_actions(infos, turn)
        stepped = ours.step(actions), theirs.step(tuple(actions))
        assert_same(*stepped, f"step {turn}")
        over, infos = stepped[0][2] | stepped[0][3], stepped[0][4]
        ended += int(over.sum())
        if disabled and over.any():
            options = ({"reset_mask": over.copy()}, {"reset_mask": over.copy()})
            assert_same(ours.reset(options=options[0]), theirs.reset(options=options[1]), f"reset {turn}")
            assert "reset_mask" in options[0]  # The caller's own dict is left as it was.
    return ended


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("mode", MODES)
def test_every_answer_is_that_of_gymnasiums_vector_environment(mode: str, workers: int, make: Maker) -> None:
    ours, theirs = rooms(make, mode, workers=workers)
    assert play_both(ours, theirs, 14) >= 2 * NUM
    for name in ("num_envs", "metadata", "observation_space", "action_space", "single_observation_space"):
        assert getattr(ours, name) == getattr(theirs, name), name


@pytest.mark.parametrize("mode", MODES)
def test_seeds_and_options_mean_what_they_mean_to_gymnasium(mode: str, make: Maker) -> None:
    ours, theirs = rooms(make, mode)
    tasks = ours.reset(seed=0)[1]["task"]
    theirs.reset(seed=0)
    arguments: list[dict[str, Any]] = [
        {"seed": [5, None, 5]},
        {"options": {"split": "test"}},
        {"seed": 3, "options": {"task": str(tasks[0])}},
        {},
        {"seed": [1, 2, 3], "options": {"reset_mask": np.array([False, True, True])}},
        {"options": {"reset_mask": np.array([True, False, False]), "split": "validation"}},
    ]
    for one in arguments:
        copies = [{**one, "options": dict(one["options"])} if "options" in one else one for _ in range(2)]
        assert_same(ours.reset(**copies[0]), theirs.reset(**copies[1]), str(one))
        assert_same(ours.step(["look"] * NUM), theirs.step(["look"] * NUM), str(one))


def test_each_part_may_have_its_own_task(make: Maker) -> None:
    envs = make("Rooms-v0", NUM, **ROOMS)
    tasks = list(EnvRef("turngym/Rooms-v0", ROOMS).make().tasks("test")[4:7])
    _, infos = envs.reset(options={"task": tasks})
    assert infos["task"].tolist() == tasks
    assert envs.reset(options={"task": infos["task"]})[1]["task"].tolist() == tasks


def test_seeds_may_be_whole_numbers_of_numpy(make: Maker) -> None:
    envs = make("Rooms-v0", 2, **ROOMS)
    one = envs.reset(seed=[5, 6])[0]
    assert envs.reset(seed=np.int64(5))[0] == one  # type: ignore[arg-type]
    assert envs.reset(seed=np.array([5, 6]))[0] == one  # type: ignore[arg-type]


def test_a_reset_that_is_broken_off_leaves_nothing_behind(make: Maker) -> None:
    ours, theirs = rooms(make, "next_step", workers=1)
    with pytest.raises(TaskError):
        ours.reset(seed=1, options={"task": ["no", "such", "tasks"]})
    assert play_both(ours, theirs, 3) == 0


def test_strings_are_true_strings_of_any_length(make: Maker) -> None:
    envs = make("faulty_env:toy/Faulty-v0", 2, workers=1)
    observations, _ = envs.reset(seed=1)
    assert isinstance(observations, tuple)
    assert [type(one) for one in observations] == [str, str]
    for actions in (np.array(["go", "look"]), np.array(["go", "look"], dtype=object), ["go", "look"]):
        observations, rewards, _, _, infos = envs.step(actions)
        assert [type(one) for one in observations] == [str, str]
        assert [type(one) for one in infos["outcome"]] == [str, str]
    assert rewards.tolist() == pytest.approx([1 / 3, 0.0])


def test_what_is_handed_out_belongs_to_the_caller(make: Maker) -> None:
    envs = make("Rooms-v0", 2, **ROOMS)
    envs.reset(seed=1)
    first = envs.step(["look", "look"])
    first[1][:], first[2][:], first[4]["turn"][:] = 9.0, True, 9
    first[4]["admissible"][0].clear()
    second = envs.step(["look", "look"])
    assert second[1].tolist() == [0.0, 0.0] and second[4]["turn"].tolist() == [2, 2]
    assert second[4]["admissible"][0]
    assert first[2].all()  # A later step writes into no earlier answer.


def test_the_list_of_commands_is_filled_as_the_environment_was_asked(make: Maker) -> None:
    for listed in (True, False):
        _, infos = make("Rooms-v0", 1, list_commands=listed, **ROOMS).reset(seed=1)
        assert (infos["admissible"][0] is not None) is listed


def test_a_class_and_a_made_environment_are_taken_too(make: Maker, vault: type[TurnEnv]) -> None:
    observations, _ = make(vault, 2, max_turns=2).reset(seed=1)
    assert observations[0].startswith("A vault")
    made = turngym.make("Rooms-v0", **ROOMS)
    assert make(made, 1).reset(seed=4)[0] == make("Rooms-v0", 1, **ROOMS).reset(seed=4)[0]


WRONG: dict[str, tuple[Callable[[PoolVectorEnv], object], type[Exception], str]] = {
    "too few actions": (lambda envs: envs.step(["look"]), ValueError, "1 actions for 3"),
    "one str": (lambda envs: envs.step("abc"), TypeError, "one str"),
    "no str": (lambda envs: envs.step(["look", 3, "look"]), TypeError, "int 3"),  # type: ignore[list-item]
    "too few seeds": (lambda envs: envs.reset(seed=[1]), ValueError, "1 seeds for 3"),
    "a part of a seed": (lambda envs: envs.reset(seed=1.5), TypeError, "got 1.5"),  # type: ignore[arg-type]
    "too few tasks": (lambda envs: envs.reset(options={"task": ["a"]}), ValueError, "1 tasks for 3"),
    "mask of no array": (lambda envs: envs.reset(options={"reset_mask": [True] * 3}), TypeError, "array"),
    "mask of numbers": (lambda envs: envs.reset(options={"reset_mask": np.ones(3)}), TypeError, "bool"),
    "short mask": (
        lambda envs: envs.reset(options={"reset_mask": np.array([True])}), ValueError, "shape",
    ),
    "empty mask": (
        lambda envs: envs.reset(options={"reset_mask": np.zeros(3, bool)}), ValueError, "one True",
    ),
    "unknown option": (lambda envs: envs.reset(options={"tsk": "a"}), ConfigError, "not known"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_wrong_arguments_are_told_and_change_nothing(case: str, make: Maker) -> None:
    call, error, text = WRONG[case]
    envs = make("Rooms-v0", NUM, **ROOMS)
    envs.reset(seed=1)
    with pytest.raises(error, match=re.escape(text)):
        call(envs)
    if error is not ConfigError:
        assert envs.step(["look"] * NUM)[4]["turn"].tolist() == [1] * NUM


def test_wrong_ways_to_make_one_are_told() -> None:
    with pytest.raises(ConfigError, match="num_envs = 0"):
        make_vec("Rooms-v0", 0)
    with pytest.raises(ConfigError, match="autoreset_mode = 'never'"):
        make_vec("Rooms-v0", 1, autoreset_mode="never")
    with pytest.raises(ConfigError, match="autoreset_mode = 3"):
        make_vec("Rooms-v0", 1, autoreset_mode=3)  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="workers = '2'"):
        make_vec("Rooms-v0", 1, workers="2")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="no argument 'lvel'"):
        make_vec("Rooms-v0", 1, lvel="w2-o3-q4")


def test_a_step_needs_a_reset_before_it(make: Maker) -> None:
    envs = make("Rooms-v0", 2, autoreset_mode=AutoresetMode.DISABLED, level="w2-o3-q4", max_turns=1)
    with pytest.raises(ResetNeeded, match="No episode"):
        envs.step(["look", "look"])
    envs.reset(seed=1)
    envs.step(["look", "look"])
    with pytest.raises(ResetNeeded, match=r"parts \[0, 1\]"):
        envs.step(["look", "look"])


@pytest.mark.parametrize("workers", [0, 1])
def test_closed_ones_are_over(workers: int, make: Maker) -> None:
    envs = make("Rooms-v0", 1, workers=workers, **ROOMS)
    envs.reset(seed=1)
    envs.close()
    for use in (lambda: envs.step(["look"]), envs.reset):
        with pytest.raises(InfraError, match="This pool is closed"):
            use()


def test_options_that_cannot_be_sent_are_told_and_the_next_reset_is_as_ever(make: Maker) -> None:
    ours, theirs = rooms(make, "next_step", workers=1)
    with pytest.raises(ConfigError, match="cannot be sent"):
        ours.reset(options={"task": lambda: "w2-o3-q4/small/detailed/1"})
    assert play_both(ours, theirs, 3) == 0


# What breaks.


def steps(envs: PoolVectorEnv, *actions: Sequence[str]) -> list[Any]:
    envs.reset(seed=1)
    return [envs.step(one) for one in actions]


@pytest.mark.parametrize("mode", MODES)
def test_a_part_whose_worker_dies_is_truncated_and_begins_anew(mode: str, make: Maker) -> None:
    envs = make("faulty_env:toy/Faulty-v0", 2, workers=2, autoreset_mode=mode)
    _, died = steps(envs, ["go", "go"], ["go", "die"])
    observations, rewards, terminations, truncations, infos = died
    assert (rewards.tolist(), terminations.tolist()) == ([1 / 3, 0.0], [False, False])
    assert truncations.tolist() == [False, True]
    told = infos["final_info"] if mode == "same_step" else infos
    assert told["outcome"][1] == "infra"
    assert told["error"].tolist() == [None, "Its worker process ended (SIGSEGV)."]
    if mode == "disabled":
        envs.reset(options={"reset_mask": np.array([False, True])})
    elif mode == "next_step":
        infos = envs.step(["look", "ignored"])[4]
        assert infos["turn"].tolist() == [3, 0]
    observations, rewards, _, _, infos = envs.step(["go", "go"])
    assert (infos["final_info"] if mode == "same_step" else infos)["outcome"][0] == "won"
    assert infos["outcome"][1] == "running" and rewards[1] == 1 / 3


def test_a_part_that_hangs_is_truncated_at_the_deadline(make: Maker) -> None:
    envs = make("faulty_env:toy/Faulty-v0", 2, workers=2, deadline_s=3.0)
    (hung,) = steps(envs, ["hang", "go"])
    assert hung[3].tolist() == [True, False] and hung[1].tolist() == [0.0, 1 / 3]
    assert hung[4]["error"][0] == "No answer in 3 s (the deadline)."


def test_the_chance_after_a_lost_worker_comes_from_the_seed(make: Maker) -> None:
    observations = []
    for _ in range(2):
        envs = make("faulty_env:toy/Faulty-v0", 1, workers=1)
        steps(envs, ["die"])
        observations.append(envs.step(["ignored"])[0][0].partition(", process")[0])
    assert observations[0] == observations[1]


def test_a_part_that_can_never_be_reset_is_told(make: Maker) -> None:
    envs = make("faulty_env:toy/Faulty-v0", 1)
    with pytest.raises(turngym.TurngymError, match=r"Part 0 could not be reset: The sandbox died\."):
        envs.reset(options={"task": "raise/infra"})


@pytest.mark.parametrize("workers", [0, 1])
def test_an_environment_that_raises_is_told_with_its_traceback(workers: int, make: Maker) -> None:
    envs = make("faulty_env:toy/Faulty-v0", 1, workers=workers)
    envs.reset(seed=1)
    with pytest.raises(EnvContractError, match="Part 0 raised ZeroDivisionError: lamp") as caught:
        envs.step(["raise bug"])
    assert "in act" in caught.value.__notes__[0]
    envs.reset(seed=1)
    assert envs.step(["go"])[1].tolist() == [1 / 3]
