"""Playing: the plan wins, dense rewards telescope, the same seed and commands give the same bytes."""

import hashlib
import os
import subprocess
import sys

import pytest

import turngym
from turngym.envs.honesty import Seen
from turngym.envs.textworld.env import TextWorldEnv
from turngym.errors import ConfigError, TaskError

pytestmark = pytest.mark.textworld

ONE_QUEST, TWO_QUESTS, HIDDEN_KEY, NESTED_NAMES = 1, 8, 12, 21
LARGE = "w4-o6-q8"


def made(**kwargs: object) -> TextWorldEnv:
    env = turngym.make("turngym/TextWorld-v0", **kwargs).unwrapped
    assert isinstance(env, TextWorldEnv)
    return env


def started(seed: int, **kwargs: object) -> TextWorldEnv:
    env = made(**kwargs)
    env.reset(seed=0, options={"task": f"custom/{env.level.name}/{seed}"})
    return env


@pytest.mark.parametrize("seed", [ONE_QUEST, TWO_QUESTS, NESTED_NAMES])
def test_the_plan_wins_and_dense_rewards_sum_to_one(seed: int) -> None:
    env = started(seed)
    rewards = []
    for command in env.plan():
        _, reward, terminated, truncated, info = env.step(command)
        rewards.append(reward)
        assert info["valid"] and not truncated
    assert terminated and info["success"] and info["score"] == info["max_score"] == 4
    assert rewards == pytest.approx([0.25] * 4)
    assert env.plan() == []


def test_leaving_the_way_costs_what_coming_back_pays() -> None:
    env = started(2)  # its first planned command is "go east"
    rewards = [env.step(command)[1] for command in ("go east", "go west", "go east")]
    assert rewards == pytest.approx([0.25, -0.25, 0.25])


def test_sparse_pays_on_the_solving_turn_only() -> None:
    env = started(ONE_QUEST, reward="sparse", list_commands=False)
    steps = [env.step(command) for command in env.plan()]
    assert [step[1] for step in steps] == [0, 0, 0, 1]
    assert [step[4]["score"] for step in steps] == [0, 0, 0, 4]
    assert steps[-1][4]["outcome"] == "won" and steps[0][4]["admissible"] is None


def test_a_large_game_with_doors_is_won_by_its_plan() -> None:
    env = started(1, level=LARGE)
    assert env.max_turns == 24
    while env.plan():
        info = env.step(env.plan()[0])[4]
    assert info["outcome"] == "won" and info["turn"] == 8


def test_the_plan_follows_an_agent_that_takes_out_with_get() -> None:
    # Inform reports "get keycard" as taking from the floor; TextWorld's own tracking misses it.
    env = started(ONE_QUEST)
    info = env.step("get type j keycard")[4]
    assert info["score"] == 1
    assert env.plan()[0] == "unlock type j chest with type j keycard"
    assert "drop type j keycard" in info["admissible"]


def test_the_plan_follows_an_agent_that_enters_a_door_by_its_name() -> None:
    # Inform has an event of its own for that; TextWorld's own tracking misses it, too.
    env = started(4, level=LARGE)
    for command in env.plan()[:5]:
        env.step(command)
    assert env.plan()[0] == "go east"
    for command, score, other in (("enter hatch", 6, "go west"), ("go through the hatch", 5, "go east")):
        info = env.step(command)[4]
        assert info["valid"] and info["score"] == score and other in info["admissible"], command
    assert env.plan()[0] == "go east"


def test_admissible_commands_are_sorted_lower_case_and_all_work() -> None:
    for seed in (ONE_QUEST, NESTED_NAMES):
        env = started(seed)
        commands = env.commands()
        assert commands == sorted(commands) and all(command == command.lower() for command in commands)
        for command in commands:
            moment = env.snapshot()
            assert env.step(command)[4]["valid"], command
            env.restore(moment)


def test_the_state_is_where_things_are_and_not_how_one_came_there() -> None:
    env = started(ONE_QUEST)
    start = env.step("look")[4]["start_key"]
    keys = [env.step(command)[4]["state_key"] for command in ("take keycard", "put keycard in case")]
    assert keys[0] != start and keys[1] == start
    door = started(4, level=LARGE)  # Inform moves doors along with whoever sees them
    keys = [door.step(command)[4]["state_key"] for command in ("look", "inventory")]
    assert keys[0] == keys[1] == door.step("examine me")[4]["start_key"]


def test_text_is_clean_and_lower_case() -> None:
    env = made()
    observation, info = env.reset(seed=0, options={"task": "custom/w2-o3-q4/1"})
    assert observation.startswith("-= studio =- you find yourself in a studio.")
    assert observation.endswith("you should try going north.")
    assert info["instructions"].endswith("and if you do that, you're the winner! You have 12 turns.")
    assert "$" not in info["instructions"]
    texts = [observation] + [env.step(command)[0] for command in env.plan()]
    assert texts[-1].endswith("your score has just gone up by one point.")
    for text in texts:
        assert text == " ".join(text.split()).lower()
        assert ">" not in text and "[" not in text and "***" not in text


def honest_unseen(env: TextWorldEnv, seed: int) -> list[str]:
    """Words that the honest expert says without having been shown them, over a won episode."""
    observation, info = env.reset(seed=0, options={"task": f"custom/w2-o3-q4/{seed}"})
    seen, unseen = Seen(), list[str]()
    seen.add(info["instructions"])
    seen.add(observation)
    while info["outcome"] == "running":
        command = seen.honest_command(env.plan(), env.inquire(), env.command_words)
        unseen += seen.unseen(command, env.command_words)
        observation, _, _, _, info = env.step(command)
        seen.add(observation)
    assert info["outcome"] == "won"
    return unseen


def test_an_unnamed_key_is_in_the_inventory() -> None:
    env = started(HIDDEN_KEY)
    assert env.plan()[0] == "unlock locker with keycard" and "keycard" not in env.instructions
    assert env.step(env.inquire())[0] == "you are carrying: a keycard."
    assert honest_unseen(env, HIDDEN_KEY) == []


@pytest.mark.full
def test_the_honest_expert_says_nothing_unseen_in_forty_games() -> None:
    env = made()
    assert {seed: honest_unseen(env, seed) for seed in range(1, 41)} == {seed: [] for seed in range(1, 41)}


PLAY = """
import sys, turngym
env = turngym.make("turngym/TextWorld-v0").unwrapped
print(env.reset(seed=0, options={"task": "custom/w2-o3-q4/8"}))
for command in ("look", "get all", "xyzzy", "take canadian", "inventory", "go east", "open locker", "go west"):
    print(env.step(command), env.plan(), env.state())
"""


def test_two_processes_with_other_hash_seeds_play_the_same_bytes() -> None:
    digests = []
    for hash_seed in ("1", "2"):
        environ = {**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        played = subprocess.run([sys.executable, "-c", PLAY], env=environ, capture_output=True, check=True)
        digests.append(hashlib.sha256(played.stdout).hexdigest())
    assert digests[0] == digests[1]


def test_a_second_episode_and_a_snapshot_are_as_the_first() -> None:
    env = started(2)
    first = [env.step(command) for command in ("go east", "open basket")]
    moment = env.snapshot()
    env.step("take latchkey")
    env.restore(moment)
    assert env.plan()[0] == "take latchkey from basket"
    env.reset(seed=0, options={"task": "custom/w2-o3-q4/2"})
    assert [env.step(command) for command in ("go east", "open basket")] == first


def test_wrong_arguments_and_ids_say_so() -> None:
    with pytest.raises(ConfigError, match="Did you mean 'cooking'"):
        made(family="coking")
    assert made(family="coin").level.name == "l5"
    for level in ("w2", "w0-o3-q4", "w2-o3-q4 ", "W2-o3-q4"):
        with pytest.raises(ConfigError, match="is no level"):
            made(level=level)
    env = made()
    for task in (
        "",
        "17",
        "custom/w2-o3-q4/",
        "custom/w2-o3-q4/017",
        "custom/w2-o3-q4/-1",
        "custom/w2-o3-q4/1.0",
    ):
        with pytest.raises(TaskError, match="custom/w2-o3-q4/17"):
            env.reset(options={"task": task})
    for task in ("custom/w4-o6-q8/17", "custom/w2-o3-q4-last/17", "coin/l5/17", f"custom/w2-o3-q4/{2**32}"):
        with pytest.raises(TaskError):
            env.reset(options={"task": task})
        with pytest.raises(TaskError):
            env.prepare([task])  # at once, and not when the games of a wrong level are made


def test_importing_turngym_needs_no_textworld() -> None:
    code = "import sys, turngym; sys.exit('textworld' in sys.modules or 'jericho' in sys.modules)"
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    assert subprocess.run([sys.executable, "-c", code], env=environ, check=False).returncode == 0


def test_a_missing_textworld_names_the_extra() -> None:
    code = (
        "import sys; sys.modules['textworld'] = None\n"
        "import turngym; from turngym.errors import MissingExtraError\n"
        "try: turngym.make('turngym/TextWorld-v0')\n"
        "except MissingExtraError as error: print(error)"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    played = subprocess.run(
        [sys.executable, "-c", code], env=environ, capture_output=True, text=True, check=False
    )
    assert played.stdout.strip() == (
        "The TextWorld environments need textworld: pip install 'turngym[textworld]'"
    ), played.stderr
