"""Generated houses: size, length, variety, and names that are told in time."""

import json
import random
from collections import Counter

import pytest

from turngym.envs.honesty import Seen, words_of
from turngym.envs.rooms.env import RoomsEnv
from turngym.envs.rooms.names import draw_names
from turngym.envs.rooms.tasks import Level, build
from turngym.envs.rooms.text_large import LARGE
from turngym.envs.rooms.text_small import SMALL, small_words
from turngym.envs.rooms.world import OPPOSITE

LEVELS = ["w1-o1-q1", "w1-o1-q12", "w10-o20-q12", "w10-o1-q1", "w4-o6-q8", "w2-o3-q4", "w1-o20-q3"]


def names_of(env: RoomsEnv) -> list[str]:
    """Names of all items, containers and doors."""
    state = json.loads(json.dumps(env.state()))
    return [*state["places"], *state["latches"]]


@pytest.mark.parametrize("text", LEVELS)
def test_houses_have_the_size_of_their_level(text: str) -> None:
    level = Level.read(text)
    for seed in range(10):
        house = build(level, False, random.Random(seed))
        world = house.world
        assert len(world.exits) == level.rooms
        assert len(world.items) + len(world.containers) + len(world.supporters) >= level.objects
        assert len(house.plan) == level.quest
        for room, ways in enumerate(world.exits):
            assert len({way.direction for way in ways}) == len(ways)
            for way in ways:
                back = [
                    other for other in world.exits[way.room] if other.direction == OPPOSITE[way.direction]
                ]
                assert [(other.room, other.door) for other in back] == [(room, way.door)]


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
@pytest.mark.parametrize("level", LEVELS)
def test_no_two_things_have_one_name_and_a_key_has_the_colour_of_its_lock(level: str, text: object) -> None:
    pools = SMALL.pools if text is SMALL else LARGE.pools
    for seed in range(10):
        house = build(Level.read(level), False, random.Random(seed))
        names = draw_names(house.world, pools, random.Random(seed))
        every = [*names.rooms, *names.openables, *names.supporters, *names.items]
        assert len(set(every)) == len(every)
        for openable, key in enumerate(house.world.keys):
            if key >= 0:
                assert names.items[key] == f"{names.openables[openable].split()[0]} key"


def test_goals_and_verbs_vary() -> None:
    last: Counter[str] = Counter()
    verbs: Counter[str] = Counter()
    for seed in range(400):
        plan = build(Level.read("w2-o3-q4"), False, random.Random(seed)).plan
        last[plan[-1].verb] += 1
        verbs.update(action.verb for action in plan)
    assert set(last) == {"take", "put", "insert", "drop", "eat", "open", "close", "unlock", "lock", "go"}
    assert max(last.values()) < 80
    assert verbs["go"] > 300
    assert verbs["unlock"] > 100


@pytest.mark.parametrize(
    ("level", "vocabulary", "goal"),
    [
        ("w2-o3-q4", "small", "detailed"),
        ("w2-o3-q4", "small", "brief"),
        ("w2-o3-q4", "small", "none"),
        ("w2-o3-q4", "large", "brief"),
        ("w4-o6-q8", "small", "brief"),
        ("w10-o20-q12", "large", "none"),
        ("w1-o1-q1", "small", "brief"),
    ],
)
def test_honest_experts_solve_every_task_with_names_that_were_told(
    level: str, vocabulary: str, goal: str
) -> None:
    """Also stricter than the rule by words: the whole name of each thing has been told, in one piece."""
    env = RoomsEnv(level=level, vocabulary=vocabulary, goal=goal)  # type: ignore[arg-type]
    for number in range(20001, 20051):
        observation, info = env.reset(options={"task": f"{level}/{vocabulary}/{goal}/{number}"})
        seen, text = Seen(), f"{info['instructions']} {observation}".lower()
        seen.add(text)
        names = names_of(env)
        while info["outcome"] == "running":
            said = seen.honest_command(env.plan(), env.inquire(), env.command_words)
            assert seen.unseen(said, env.command_words) == []
            assert all(name in text for name in names if f" {name} " in f" {said} ")
            observation, _, _, _, info = env.step(said)
            seen.add(observation)
            text += f" {observation.lower()}"
        assert info["success"]


def test_small_vocabulary_is_closed_and_small() -> None:
    known = {word.lower() for word in small_words()}
    chance = random.Random(0)
    said: set[str] = set()
    for level in ("w2-o3-q4", "w4-o6-q8", "w10-o20-q12"):
        for goal in ("detailed", "brief", "none"):
            env = RoomsEnv(level=level, goal=goal)
            for number in range(1, 15):
                observation, info = env.reset(options={"task": f"{level}/small/{goal}/{number}"})
                texts = [str(info["instructions"]), observation]
                while info["outcome"] == "running":
                    texts += info["admissible"]
                    junk = [f"take {chance.choice(names_of(env))}", "fly", "unlock door", "go up", "a\nb"]
                    observation, _, _, _, info = env.step(chance.choice([*info["admissible"], *junk]))
                    texts.append(observation)
                said.update(word for text in texts for word in words_of(text))
    assert said - known == set()
    assert len([word for word in known if word.isalpha()]) <= 100


@pytest.mark.parametrize("text", [SMALL, LARGE], ids=["small", "large"])
def test_names_are_in_one_pool_and_are_no_other_words(text: object) -> None:
    vocabulary = SMALL if text is SMALL else LARGE
    pooled = Counter(word for group in vocabulary.pools.groups() for word in group)
    assert max(pooled.values()) == 1
    everything = Counter(word.lower() for word in vocabulary.words())
    base = "You have turn turns Give one command per turn That has characters at most are read key door note".lower()
    for word in pooled:
        assert everything[word] == 1
        assert word not in base.split()
        assert word not in RoomsEnv.command_words


def test_large_vocabulary_has_over_200_names() -> None:
    assert sum(len(group) for group in LARGE.pools.groups()) > 200
    assert all(len(set(wordings)) == len(wordings) for wordings in LARGE.messages.values())


def test_detailed_instructions_name_every_step_in_order() -> None:
    env = RoomsEnv(level="w4-o6-q8")
    for number in range(1, 20):
        _, info = env.reset(options={"task": f"w4-o6-q8/small/detailed/{number}"})
        at = 0
        for step in env.plan():
            at = str(info["instructions"]).find(step, at)
            assert at >= 0


def test_commands_of_plans_are_listed() -> None:
    env = RoomsEnv(level="w3-o4-q6")
    for number in range(1, 20):
        _, info = env.reset(options={"task": f"w3-o4-q6/small/detailed/{number}"})
        while info["outcome"] == "running":
            assert env.plan()[0] in info["admissible"]
            _, _, _, _, info = env.step(env.plan()[0])
