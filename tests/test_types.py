"""Records that cross a layer."""

import dataclasses
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.envs.base import TurnEnv
from turngym.types import Episode, Outcome, PlayedTurn, TaskRange, TurnInfo

RANGES = st.builds(
    range, st.integers(-50, 50), st.integers(-50, 50), st.integers(-7, 7).filter(lambda step: step != 0)
)
PREFIXES = st.sampled_from(["", "w2/", "7", "a/-"])
SLICES = st.slices(30)


def listed(tasks: TaskRange) -> list[str]:
    return [f"{tasks.prefix}{number}" for number in tasks.numbers]


@given(PREFIXES, RANGES)
def test_task_range_is_the_list_of_its_ids(prefix: str, numbers: range) -> None:
    tasks = TaskRange(prefix, numbers)
    assert list(tasks) == listed(tasks)
    assert len(tasks) == len(listed(tasks))
    assert list(reversed(tasks)) == listed(tasks)[::-1]
    assert [tasks[i] for i in range(-len(tasks), len(tasks))] == listed(tasks) * 2
    with pytest.raises(IndexError):
        tasks[len(tasks)]


@given(PREFIXES, RANGES, SLICES)
def test_task_range_slices_like_a_list(prefix: str, numbers: range, part: slice) -> None:
    tasks = TaskRange(prefix, numbers)
    assert isinstance(tasks[part], TaskRange)
    assert list(tasks[part]) == listed(tasks)[part]


@given(PREFIXES, RANGES, st.one_of(st.integers(-60, 60).map(str), st.text(max_size=6)))
def test_task_range_contains_what_its_list_contains(prefix: str, numbers: range, tail: str) -> None:
    tasks = TaskRange(prefix, numbers)
    assert (f"{prefix}{tail}" in tasks) == (f"{prefix}{tail}" in listed(tasks))
    assert (tail in tasks) == (tail in listed(tasks))


@pytest.mark.parametrize(
    "task", ["w2/007", "w2/٣", "w2/-0", "w2/ 3", "w2/3\n", "w2/", "3", "W2/3", "w2/" + "9" * 5000, 3]
)
def test_task_range_holds_each_number_in_one_spelling(task: object) -> None:
    assert task not in TaskRange("w2/", range(10))


def test_task_range_is_lazy() -> None:
    tasks = TaskRange("", range(10**15))
    assert str(10**15 - 1) in tasks
    assert tasks[-1] == "999999999999999"


def test_turn_info_reads_both_infos_of_an_environment(vault: type[TurnEnv]) -> None:
    env = vault()
    at_reset = TurnInfo.read(env.reset(seed=0, options={"task": "vault/3"})[1])
    at_step = TurnInfo.read(env.step("read")[4])
    assert at_reset.instructions == "Open the vault. Say `read`, or `turn` and a colour. You have 6 turns."
    assert at_step.instructions is None
    assert (at_step.task, at_step.turn, at_step.outcome) == ("vault/3", 1, "running")
    assert at_step.admissible == ("read", "turn blue", "turn green", "turn red")


def test_turn_info_refuses_an_info_with_a_missing_key(vault: type[TurnEnv]) -> None:
    info = vault().reset(seed=0)[1]
    for key in (
        field.name for field in dataclasses.fields(TurnInfo) if field.name not in ("instructions", "tools")
    ):
        with pytest.raises(KeyError, match=key):
            TurnInfo.read({name: value for name, value in info.items() if name != key})


def episode(outcome: Outcome, *rewards: float) -> Episode:
    turns = tuple(PlayedTurn("go", "ok", reward, 0.0, True, "policy") for reward in rewards)
    return Episode(0, 0, "toy", {}, "t", 0, 0, "hand", "", "", turns, outcome, 0.0, 1.0, "")


@pytest.mark.parametrize("outcome", get_args(Outcome))
def test_only_won_is_a_success(outcome: Outcome) -> None:
    assert episode(outcome).success == (outcome == "won")


def test_return_is_the_sum_of_the_turn_rewards() -> None:
    assert episode("won").episode_return == 0
    assert episode("lost", 0.5, -0.25, 0.5).episode_return == 0.75
