"""RoomsEnv: ids, arguments, commands, scores, endings, and one golden episode."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from turngym.envs.checker import check_env
from turngym.envs.registration import make_turn_env
from turngym.envs.rooms.env import RoomsEnv
from turngym.envs.rooms.names import Names
from turngym.envs.rooms.parser import Parser
from turngym.envs.rooms.scoring import score
from turngym.envs.rooms.world import (
    CARRIED,
    CLOSED,
    FIRST_CONTAINER,
    FIRST_SUPPORTER,
    GONE,
    LOCKED,
    Action,
    Exit,
    Obstacle,
    State,
    World,
    apply,
    obstacle,
)
from turngym.errors import ConfigError, TaskError

ROOT = Path(__file__).parents[3]
GOLDEN = ROOT / "tests" / "golden" / "rooms_w2-o3-q4_small.jsonl"

# Hall (0) - north - cellar (1), with a locked red door between; a box and a locked blue chest in the hall, a
# table in the cellar.
HOUSE = World(
    exits=((Exit(0, 1, 2),), (Exit(1, 0, 2),)),
    containers=(0, 0),
    supporters=(1,),
    items=("key", "key", "food", "thing"),
    keys=(-1, 1, 0),
    doors=((0, 1),),
)
NAMES = Names(
    rooms=("hall", "cellar"),
    openables=("box", "blue chest", "red door"),
    supporters=("table",),
    items=("red key", "blue key", "green apple", "white cup"),
)
START = State(0, (0, FIRST_CONTAINER, CARRIED, FIRST_SUPPORTER), (CLOSED, LOCKED, LOCKED))


def play(state: State, *commands: str) -> State:
    parser = Parser(HOUSE, NAMES)
    for command in commands:
        action = parser.read(command, state)
        assert isinstance(action, Action), (command, action)
        assert obstacle(HOUSE, state, action) is None, (command, obstacle(HOUSE, state, action))
        state = apply(HOUSE, state, action)
    return state


def hindrance(state: State, command: str) -> str:
    action = Parser(HOUSE, NAMES).read(command, state)
    found = action if isinstance(action, Obstacle) else obstacle(HOUSE, state, action)
    return found.reason if found else ""


def test_every_verb_does_its_work() -> None:
    state = play(START, "look", "inventory", "examine box", "examine green apple", "take red key")
    assert state.places[0] == CARRIED
    state = play(state, "drop red key")
    assert state.places[0] == 0
    state = play(state, "take red key", "unlock red door with red key")
    assert state.latches[2] == CLOSED
    state = play(state, "lock red door with red key")
    assert state.latches[2] == LOCKED
    state = play(state, "unlock red door with red key", "open red door", "go north")
    assert state.room == 1
    state = play(state, "take white cup from table", "go south", "open box", "insert white cup into box")
    assert state.places[3] == FIRST_CONTAINER
    state = play(state, "take blue key from box", "close box")
    assert state.latches[0] == CLOSED
    state = play(state, "eat green apple")
    assert state.places[2] == GONE
    state = play(state, "go north", "put blue key on table")
    assert state.places[1] == FIRST_SUPPORTER


@pytest.mark.parametrize(
    "command",
    [
        "take key",
        "TAKE RED KEY",
        "get the red key",
        "  pick  up   red key ",
        "take red",
        "take key.",
        "grab key",
    ],
)
def test_variations_take_the_only_key_in_sight(command: str) -> None:
    assert play(START, command).places[0] == CARRIED


def test_short_ways_and_other_joints() -> None:
    state = play(START, "take key", "unlock door using key", "open door", "n")
    assert state.room == 1
    state = play(state, "take cup off table", "walk south", "open box", "put cup in box", "i", "l", "x box")
    assert state.places[3] == FIRST_CONTAINER
    assert play(state, "north").room == 1
    assert play(state, "go to the north").room == 1


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("go north", "locked"),
        ("go east", "no_exit"),
        ("go", "no_exit"),
        ("open red door", "locked"),
        ("open blue chest", "locked"),
        ("close box", "closed"),
        ("take blue key", "unseen"),
        ("take white cup", "unseen"),
        ("take green apple", "carried"),
        ("drop red key", "not_carried"),
        ("unlock red door with red key", "not_carried"),
        ("unlock red door", "which_key"),
        ("unlock box with red key", "cannot"),
        ("insert green apple into box", "closed"),
        ("put green apple on table", "unseen"),
        ("eat box", "cannot"),
        ("take box", "cannot"),
        ("open green apple", "cannot"),
        ("fly", "cannot"),
        ("take", "cannot"),
        ("", "cannot"),
        ("take dragon", "unseen"),
        ("examine table", "unseen"),
    ],
)
def test_impossible_commands_have_a_reason(command: str, reason: str) -> None:
    assert hindrance(START, command) == reason


def test_wrong_key_and_unclear_names() -> None:
    state = play(START, "take red key", "open box", "take blue key")
    assert hindrance(state, "unlock red door with blue key") == "wrong_key"
    assert hindrance(state, "drop key") == "unclear"
    assert hindrance(state, "unlock chest with key") == ""  # only one of the two fits
    assert hindrance(state, "take red key from box") == "carried"
    assert hindrance(play(state, "drop red key"), "take red key from box") == "elsewhere"


def test_score_by_definition() -> None:
    assert score(4, 4, 0.0) == 0.0
    assert score(4, 0, 3.0) == 4.0
    assert score(4, 6, 0.0) == -2.0
    assert score(4, None, 3.0) == 0.0
    assert score(4, None, -1.0) == -1.0


def test_expert_earns_a_point_each_turn_and_a_detour_costs_it() -> None:
    env = RoomsEnv(level="w2-o3-q4")
    for number in range(1, 30):
        _, info = env.reset(options={"task": f"w2-o3-q4/small/detailed/{number}"})
        assert info["max_score"] == 4.0
        assert len(env.plan()) == 4
        rewards = []
        while info["outcome"] == "running":
            _, reward, _, _, info = env.step(env.plan()[0])
            rewards.append(reward)
            assert info["score"] == len(rewards)
        assert rewards == [0.25] * 4
        assert info["success"]


def test_score_is_quest_length_less_plan_under_random_play() -> None:
    env = RoomsEnv(level="w3-o6-q6", goal="brief")
    chance = random.Random(1)
    for number in range(20001, 20041):
        _, info = env.reset(options={"task": f"w3-o6-q6/small/brief/{number}"})
        while info["outcome"] == "running":
            assert info["score"] == 6 - len(env.plan())
            _, _, _, _, info = env.step(chance.choice(info["admissible"]))


def test_eating_what_the_goal_needs_loses_and_pays_nothing_in_all() -> None:
    env = RoomsEnv(level="w1-o2-q3", goal="brief")
    lost = 0
    for number in range(1, 200):
        _, info = env.reset(options={"task": f"w1-o2-q3/small/brief/{number}"})
        rewards = []
        while info["outcome"] == "running":
            eat = [command for command in info["admissible"] if command.startswith("eat ")]
            _, reward, terminated, _, info = env.step(eat[0] if eat else env.plan()[0])
            rewards.append(reward)
        if info["outcome"] == "lost":
            lost += 1
            assert terminated
            assert env.plan() == []
            assert not info["success"]
            assert sum(rewards) == pytest.approx(0.0)
    assert lost > 10


def test_turn_limit_is_twice_the_quest() -> None:
    env = RoomsEnv(level="w1-o1-q3", goal="none")
    _, info = env.reset(seed=0)
    assert info["instructions"].endswith("You have 6 turns.")
    for turn in range(1, 7):
        *_, terminated, truncated, info = env.step("inventory")
        assert (terminated, truncated) == (False, turn == 6)
    assert info["outcome"] == "turn_limit"


@pytest.mark.parametrize("goal", ["detailed", "brief", "none"])
@pytest.mark.parametrize("vocabulary", ["small", "large"])
def test_checker_finds_nothing(vocabulary: str, goal: str) -> None:
    report = check_env(
        "turngym/Rooms-v0",
        kwargs={"vocabulary": vocabulary, "goal": goal},
        tasks_per_split=2,
        junk_actions=100,
    )
    assert [line for line in report.lines if line.status == "fail"] == []


@pytest.mark.parametrize(
    "command",
    ["take key. go north", "TAKE KEY THEN GO NORTH", "take key\ngo north", "take key; go north", "look.look"],
)
def test_compound_commands_are_refused(command: str) -> None:
    env = RoomsEnv()
    _, before = env.reset(seed=0)
    _, reward, _, _, info = env.step(command)
    assert (reward, info["valid"], info["state_key"]) == (0.0, False, before["state_key"])


def test_junk_raises_nothing() -> None:
    env = RoomsEnv(level="w2-o6-q4", vocabulary="large", max_turns=1001)
    env.reset(seed=0)
    chance = random.Random(0)
    words = [
        *env.command_words,
        *[
            "the",
            "key",
            "door",
            "red",
            "a",
            "in",
            ",",
            ".",
            "then",
            ".",
            ":",
            "x",
            "l",
            "i",
            "at",
            "up",
            "ééé",
            "漢",
            "\x00",
            "{",
            "}",
            "%s",
            "'",
        ],
    ]
    words.sort()
    for _ in range(1000):
        env.step(" ".join(chance.choices(words, k=chance.randrange(7))))


def test_listed_commands_are_valid_and_what_changes_is_listed() -> None:
    env = RoomsEnv(level="w3-o8-q5")
    chance = random.Random(2)
    for number in range(20001, 20021):
        _, info = env.reset(options={"task": f"w3-o8-q5/small/detailed/{number}"})
        assert info["admissible"] == sorted(info["admissible"])
        while info["outcome"] == "running":
            _, _, _, _, info = env.step(chance.choice(info["admissible"]))
            assert info["valid"]


@pytest.mark.parametrize(
    "level", ["w0-o3-q4", "w2-o0-q4", "w2-o3-q0", "w11-o3-q4", "w2-o21-q4", "w2-o3-q13", "easy"]
)
def test_impossible_levels_name_what_is_supported(level: str) -> None:
    with pytest.raises(ConfigError, match="w1-10, o1-20, q1-12"):
        RoomsEnv(level=level)


def test_wrong_arguments() -> None:
    with pytest.raises(ConfigError, match="vocabulary = 'tiny'"):
        RoomsEnv(vocabulary="tiny")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="goal = 'vague'"):
        RoomsEnv(goal="vague")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="q2 or more"):
        RoomsEnv(level="w1-o1-q1", goal="none")


@pytest.mark.parametrize(
    ("task", "named"),
    [
        ("w2-o3-q5/small/detailed/1", "level 'w2-o3-q5'"),
        ("w2-o3-q4/large/detailed/1", "vocabulary 'large'"),
        ("w2-o3-q4/small/brief/1", "goal 'brief'"),
        ("w2-o3-q4/small/detailed/0", "number"),
        ("w2-o3-q4/small/detailed/01", "number"),
        ("w2-o3-q4/small/detailed/1001", "number"),
        ("w2-o3-q4/small/detailed/x", "number"),
        ("17", "look like"),
        ("", "look like"),
    ],
)
def test_wrong_ids_name_the_mismatch(task: str, named: str) -> None:
    with pytest.raises(TaskError, match=named):
        RoomsEnv().reset(options={"task": task})


def test_splits_are_disjoint_and_lazy() -> None:
    env = RoomsEnv()
    sizes = {split: len(env.tasks(split)) for split in ("train", "validation", "test")}
    assert sizes == {"train": 1_000_000, "validation": 1000, "test": 1000}
    for task in (*env.tasks("test"), *env.tasks("validation")):
        assert task not in env.tasks("train")
    assert not set(env.tasks("test")) & set(env.tasks("validation"))


def test_note_is_read_first_and_tells_the_goal() -> None:
    env = RoomsEnv(goal="none")
    for number in range(1, 40):
        env.reset(options={"task": f"w2-o3-q4/small/none/{number}"})
        assert env.plan()[0] == "examine note"
        observation, *_ = env.step("examine note")
        assert observation.startswith("note : ")


def test_golden_episode(update_golden: bool) -> None:
    """An expert's episode, with wrong turns before it."""
    env = make_turn_env("turngym/Rooms-v0", level="w2-o3-q4", goal="brief")
    observation, info = env.reset(seed=0, options={"task": "w2-o3-q4/small/brief/8"})
    lines = [{"command": info["instructions"], "observation": observation, "reward": 0.0}]
    for command in ("inventory", "fly", "look", ""):
        observation, reward, _, _, info = env.step(command or env.plan()[0])
        lines.append({"command": command or "(plan)", "observation": observation, "reward": reward})
    while info["outcome"] == "running":
        command = env.plan()[0]
        observation, reward, _, _, info = env.step(command)
        lines.append({"command": command, "observation": observation, "reward": reward})
    text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
    if update_golden:
        GOLDEN.write_text(text, encoding="utf-8")
    assert text == GOLDEN.read_text(encoding="utf-8")


_DIGEST = """
import hashlib, turngym.envs
from turngym.envs.registration import make_turn_env
out = []
for vocabulary in ("small", "large"):
    env = make_turn_env("turngym/Rooms-v0", level="w4-o6-q8", vocabulary=vocabulary)
    for number in range(1, 6):
        observation, info = env.reset(options={"task": f"w4-o6-q8/{vocabulary}/detailed/{number}"})
        out += [observation, str(info["instructions"]), info["start_key"], *env.plan(), *env.commands()]
print(hashlib.sha256("|".join(out).encode()).hexdigest())
"""


def test_same_bytes_under_other_hash_seeds() -> None:
    digests = set()
    for seed in ("1", "2"):
        environment = os.environ | {"PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT / "src")}
        done = subprocess.run(
            [sys.executable, "-c", _DIGEST], env=environment, capture_output=True, text=True, check=True
        )
        digests.add(done.stdout)
    assert len(digests) == 1
