"""TurnEnv: five values, rewards, outcomes, limits, keys, refusals and snapshots."""

import re
import threading
from typing import Any

import numpy as np
import pytest
from gymnasium.error import ResetNeeded

from turngym.envs.base import Reward, TurnEnv
from turngym.errors import ConfigError, EnvContractError, TaskError
from turngym.types import JsonValue, TaskRange, Turn, TurnInfo

TASK = {"task": "vault/3"}


class Meter(TurnEnv):
    """Each command is the score to show; "solve", "lose" and "keep" do what they say."""

    instructions = "Set the meter."
    max_turns = 10
    max_score = 10.0
    splits = {"train": TaskRange("", range(5)), "validation": TaskRange("", range(5, 7)), "test": ["7"]}
    begin = 0.0

    def load(self, task: str, rng: np.random.Generator) -> str:
        self.start_at(self.begin)
        self.shown = str(rng.integers(1000))
        return f"Meter {self.shown}."

    def act(self, command: str) -> Turn:
        self.shown = command
        if command in ("solve", "lose"):
            return Turn("Done.", over=True, solved=command == "solve")
        return Turn("Same.") if command == "keep" else Turn("Set.", score=float(command))

    def state(self) -> JsonValue:
        return {"shown": self.shown}


class FillableMeter(Meter):
    score_can_fill_unsolved = True


class StartedMeter(Meter):
    begin = 4.0


def rewards(env: TurnEnv, *commands: str) -> list[float]:
    env.reset(seed=0)
    return [env.step(command)[1] for command in commands]


def test_step_returns_gymnasiums_five_values(vault: type[TurnEnv]) -> None:
    env = vault()
    observation, info = env.reset(seed=0, options=TASK)
    assert observation == "A vault with three wheels: red, blue and green."
    assert info["tools"] == [] and info["messages"] == []
    observation, reward, terminated, truncated, info = env.step("fly")
    assert (observation, reward, terminated, truncated) == ("Nothing happens.", 0.0, False, False)
    assert "instructions" not in info and not info["valid"]


def test_dense_pays_progress_and_takes_it_back() -> None:
    # progress .3, .8, .8, .5, 1 -> differences
    got = rewards(Meter(), "3", "8", "keep", "5", "solve")
    np.testing.assert_allclose(got, [0.3, 0.5, 0.0, -0.3, 0.5], atol=1e-12)


def test_dense_counts_progress_from_the_starting_score() -> None:
    # Of the 6 points from 4 to 10: 3, then -3, then all.
    got = rewards(StartedMeter(), "7", "1", "solve")
    np.testing.assert_allclose(got, [0.5, -1.0, 1.5], atol=1e-12)


def test_dense_caps_an_unsolved_full_score_where_it_can_fill() -> None:
    np.testing.assert_allclose(rewards(FillableMeter(), "5", "10", "lose"), [0.5, 0.4, 0.0], atol=1e-12)
    np.testing.assert_allclose(rewards(FillableMeter(), "10", "solve"), [0.9, 0.1], atol=1e-12)


def test_sparse_pays_one_on_the_turn_that_solves() -> None:
    assert rewards(Meter(reward="sparse"), "8", "3", "solve") == [0.0, 0.0, 1.0]
    assert rewards(Meter(reward="sparse"), "8", "lose") == [0.0, 0.0]


@pytest.mark.parametrize("reward", ["dense", "sparse"])
def test_solved_episodes_return_one_and_others_less(reward: Reward) -> None:
    assert sum(rewards(Meter(reward=reward), "9", "2", "7", "solve")) == pytest.approx(1, abs=1e-12)
    assert sum(rewards(Meter(reward=reward), "9", "lose")) < 1
    assert sum(rewards(FillableMeter(reward=reward), "10")) < 1


# Case 23: won, over and cut are three things.
@pytest.mark.parametrize(
    ("commands", "outcome", "flags"),
    [
        (["solve"], "won", (True, True, False)),
        (["lose"], "lost", (False, True, False)),
        (["1"] * 10, "turn_limit", (False, False, True)),
        (["1"] * 9 + ["solve"], "won", (True, True, False)),
        (["1"] * 9, "running", (False, False, False)),
    ],
)
def test_ending_is_not_winning(commands: list[str], outcome: str, flags: tuple[bool, bool, bool]) -> None:
    env = Meter()
    env.reset(seed=0)
    for command in commands:
        _, _, terminated, truncated, info = env.step(command)
    assert info["outcome"] == outcome
    assert (info["success"], terminated, truncated) == flags


def test_full_score_alone_does_not_win() -> None:
    env = Meter()
    env.reset(seed=0)
    assert env.step("10")[4]["outcome"] == "running"


def test_turn_limit_is_an_argument_and_told_to_the_agent() -> None:
    env = Meter(max_turns=1)
    assert env.reset(seed=0)[1]["instructions"] == "Set the meter. You have 1 turn."
    assert env.step("1")[3]


def test_nothing_is_played_before_reset_or_after_the_end() -> None:
    env = Meter()
    with pytest.raises(ResetNeeded):
        env.step("1")
    with pytest.raises(ResetNeeded):
        env.snapshot()
    env.reset(seed=0)
    env.step("lose")
    with pytest.raises(ResetNeeded):
        env.step("1")
    env.reset(seed=0)
    assert env.step("1")[4]["turn"] == 1


@pytest.mark.parametrize("name", ["reset", "step"])
def test_reset_and_step_are_final(name: str) -> None:
    with pytest.raises(EnvContractError, match=f"Bad.{name}: {name} is final"):
        type("Bad", (Meter,), {name: lambda self: None})


@pytest.mark.parametrize("turns", [0, -1, True, 2.5])
def test_max_turns_is_a_whole_number_from_one(turns: Any) -> None:
    with pytest.raises(ConfigError, match="max_turns"):
        Meter(max_turns=turns)


def test_an_unknown_reward_is_refused() -> None:
    with pytest.raises(ConfigError, match="'shaped' is not known"):
        Meter(reward="shaped")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tsak": "vault/3"}, ConfigError, r"\['tsak'\] are not known"),
        ({"split": "dev"}, ConfigError, "No split 'dev'"),
        ({"task": "vault/99"}, TaskError, "'vault/99'"),
        ({"task": 3}, TaskError, "'vault/0'"),
    ],
)
def test_wrong_options_are_named(
    vault: type[TurnEnv], options: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        vault().reset(seed=0, options=options)


def test_a_task_that_fails_to_load_leaves_no_episode(vault: type[TurnEnv]) -> None:
    env = vault()
    env.reset(seed=0, options=TASK)
    with pytest.raises(TaskError):
        env.reset(seed=0, options={"task": "vault/99"})
    with pytest.raises(ResetNeeded):
        env.step("read")


def test_a_split_without_tasks_is_named() -> None:
    env = type("Bare", (Meter,), {"splits": {"train": ["1"]}})()
    with pytest.raises(ConfigError, match="Bare has no tasks for 'test'"):
        env.tasks("test")


def test_options_pick_the_split_and_the_seed_the_task(vault: type[TurnEnv]) -> None:
    env = vault()
    picked = {env.reset(seed=seed, options={"split": "test"})[1]["task"] for seed in range(30)}
    assert picked <= set(env.tasks("test")) and len(picked) > 3
    assert len({env.reset(seed=4)[1]["task"] for _ in range(3)}) == 1
    assert env.reset(seed=0)[1]["task"] in env.tasks("train")


def test_chance_is_the_same_whether_the_task_was_named_or_picked(vault: type[TurnEnv]) -> None:
    env = vault()
    task = env.reset(seed=5)[1]["task"]
    picked = env.step("read")[0]
    env.reset(seed=5, options={"task": task})
    assert env.step("read")[0] == picked


def test_the_task_fixes_the_start_and_the_seed_only_later_chance(vault: type[TurnEnv]) -> None:
    env = vault()
    starts, readings = set(), set()
    for seed in range(20):
        starts.add(env.reset(seed=seed, options=TASK)[1]["start_key"])
        readings.add(env.step("read")[0])
    assert len(starts) == 1 and len(readings) > 10


def test_keys_tell_states_apart_and_nothing_else(vault: type[TurnEnv]) -> None:
    env = vault()
    start = TurnInfo.read(env.reset(seed=0, options=TASK)[1])
    read = TurnInfo.read(env.step("read")[4])
    turned = TurnInfo.read(env.step(env.plan()[0])[4])
    assert start.state_key == start.start_key == read.state_key == turned.start_key
    assert turned.state_key != start.state_key
    assert re.fullmatch("[0-9a-f]{32}", start.state_key)


def test_admissible_commands_are_listed_while_the_episode_runs_and_if_asked(vault: type[TurnEnv]) -> None:
    env = vault()
    assert env.reset(seed=0)[1]["admissible"] == ["read", "turn blue", "turn green", "turn red"]
    assert env.step("smash")[4]["admissible"] is None
    assert vault(list_commands=False).reset(seed=0)[1]["admissible"] is None
    assert Meter().reset(seed=0)[1]["admissible"] is None


# Case 21: one line, two commands.
@pytest.mark.parametrize("line", ["{}. {}", "{} THEN {}", "{}\n{}", "{}; {}", "{}\r\n{}", "{}.\n{}"])
def test_compound_commands_are_refused_with_the_state_untouched(vault: type[TurnEnv], line: str) -> None:
    env = vault()
    key = env.reset(seed=0, options=TASK)[1]["state_key"]
    observation, reward, terminated, _, info = env.step(line.format(*env.plan()))
    assert (observation, reward, terminated) == ("Give one command per turn.", 0.0, False)
    assert (info["valid"], info["state_key"], info["turn"]) == (False, key, 1)


@pytest.mark.parametrize("line", ["{}.", "{}", " {}\n", "{} ."])
def test_one_command_with_loose_ends_is_carried_out(vault: type[TurnEnv], line: str) -> None:
    env = vault()
    env.reset(seed=0, options=TASK)
    observation, reward, _, _, info = env.step(line.format(env.plan()[0]))
    assert (observation, reward, info["valid"]) == ("Click.", 0.5, True)


def test_over_long_commands_are_refused() -> None:
    env = Meter()
    key = env.reset(seed=0)[1]["state_key"]
    observation, *_, info = env.step("9" * 501)
    assert "501 characters; at most 500" in observation
    assert not info["valid"] and info["state_key"] == key


# Case 24: the engine decides what is valid, not the list of admissible commands.
def test_a_phrasing_that_is_not_listed_is_valid_where_the_environment_takes_it(vault: type[TurnEnv]) -> None:
    env = vault()
    env.reset(seed=0, options=TASK)
    valid = {said: env.step(said)[4]["valid"] for said in ("READ", "Turn Red.", "read", "fly", "open key")}
    assert valid == {"READ": True, "Turn Red.": True, "read": True, "fly": False, "open key": False}


@pytest.mark.parametrize("action", [None, 3, b"read", ["read"]])
def test_an_action_that_is_no_str_raises(vault: type[TurnEnv], action: Any) -> None:
    env = vault()
    env.reset(seed=0)
    with pytest.raises(TypeError, match="An action is a str"):
        env.step(action)


@pytest.mark.parametrize(
    ("methods", "message"),
    [
        ({"act": lambda self, command: "Done."}, "act returned 'Done.'"),
        ({"load": lambda self, task, rng: None}, "load returned None"),
        ({"begin": 10.0}, "must exceed the start's score 10.0"),
    ],
)
def test_a_broken_class_is_told_what_is_wrong(methods: dict[str, Any], message: str) -> None:
    env = type("Broken", (Meter,), methods)()
    with pytest.raises(EnvContractError, match=re.escape(message)):
        env.reset(seed=0)
        env.step("1")


def tail(env: TurnEnv, *commands: str) -> list[Any]:
    return [env.step(command) for command in commands]


def make_uncopyable(vault: type[TurnEnv]) -> TurnEnv:
    env = vault()
    env.lock = threading.Lock()  # type: ignore[attr-defined]
    return env


@pytest.mark.parametrize("copyable", [True, False], ids=["by copy", "by replay"])
@pytest.mark.parametrize("seed", [7, None])
def test_a_snapshot_can_be_restored_any_number_of_times(
    vault: type[TurnEnv], copyable: bool, seed: int | None
) -> None:
    env = vault() if copyable else make_uncopyable(vault)
    env.reset(seed=seed)
    right = env.plan()[0]
    tail(env, "read", right)
    moment = env.snapshot()
    assert (moment.saved is not None) == copyable
    onward = ("read", right, "read", "read")  # The same wheel again closes the vault.
    first = tail(env, *onward)
    env.restore(moment)
    solved = tail(env, env.plan()[0])
    assert solved[0][4]["success"]
    env.restore(moment)
    assert tail(env, *onward) == first


def test_restore_forgets_what_the_episode_added_later() -> None:
    class Hoarder(Meter):
        def act(self, command: str) -> Turn:
            if command == "1":
                self.extra = "late"
            return Turn(getattr(self, "extra", "none"))

    env = Hoarder()
    env.reset(seed=0)
    moment = env.snapshot()
    assert env.step("1")[0] == "late"
    env.restore(moment)
    assert env.step("2")[0] == "none"


def test_a_snapshot_holds_when_the_environment_goes_on_to_another_task(vault: type[TurnEnv]) -> None:
    env = make_uncopyable(vault)
    env.reset(seed=3, options=TASK)
    env.step("read")
    moment = env.snapshot()
    later = env.step("read")
    env.reset(seed=8, options={"task": "vault/44"})
    env.restore(moment)
    assert env.step("read") == later


def test_an_environment_without_plan_says_so(vault: type[TurnEnv]) -> None:
    assert vault().can_plan and not Meter().can_plan
    assert Meter().plan() == [] and Meter().inquire() == ""
