"""Renamed and reworded demonstrations: the same facts, structure and length."""

import numpy as np
import pytest

from turngym.envs.rooms.env import RoomsEnv
from turngym.envs.rooms.text_large import LARGE
from turngym.envs.rooms.text_small import SMALL
from turngym.types import Author, Demonstration

CASES = [(vocabulary, goal) for vocabulary in ("small", "large") for goal in ("detailed", "brief", "none")]


def demonstration(env: RoomsEnv, number: int) -> Demonstration:
    observation, info = env.reset(options={"task": f"w3-o5-q6/{env.vocabulary}/{env.goal}/{number}"})
    observations, commands = [observation], []
    while info["outcome"] == "running":
        commands.append(env.plan()[0])
        observation, _, _, _, info = env.step(commands[-1])
        observations.append(observation)
    authors: tuple[Author, ...] = tuple("expert" for _ in commands)
    return Demonstration(str(info["task"]), env.told(), tuple(observations), tuple(commands), authors)


def texts(demo: Demonstration) -> list[str]:
    return [demo.instructions, *demo.observations, *demo.commands]


def pools(vocabulary: str) -> tuple[tuple[str, ...], ...]:
    return (SMALL if vocabulary == "small" else LARGE).pools.groups()


def words(text: str) -> list[str]:
    return [word.strip(".,:;?") for word in text.lower().split()]


@pytest.mark.parametrize(("vocabulary", "goal"), CASES)
def test_renaming_maps_each_name_to_one_of_its_pool(vocabulary: str, goal: str) -> None:
    env = RoomsEnv(level="w3-o5-q6", vocabulary=vocabulary, goal=goal)  # type: ignore[arg-type]
    group_of = {word: number for number, group in enumerate(pools(vocabulary)) for word in group}
    for number in range(1, 15):
        demo = demonstration(env, number)
        renamed = env.augment("rename", demo, np.random.default_rng(number))
        new: dict[str, str] = {}
        for before, after in zip(texts(demo), texts(renamed), strict=True):
            for one, other in zip(words(before), words(after), strict=True):
                assert new.setdefault(one, other) == other
                assert group_of.get(one) == group_of.get(other)
                assert one in group_of or one == other
        assert len(set(new.values())) == len(new)
        assert (renamed.task, renamed.authors) == (demo.task, demo.authors)
        again = env.augment("rename", demo, np.random.default_rng(number))
        assert again == renamed


@pytest.mark.parametrize(("vocabulary", "goal"), CASES)
def test_rewording_keeps_names_and_changes_only_the_goal(vocabulary: str, goal: str) -> None:
    env = RoomsEnv(level="w3-o5-q6", vocabulary=vocabulary, goal=goal)  # type: ignore[arg-type]
    named = {word for group in pools(vocabulary) for word in group} | {
        "key",
        "door",
        "north",
        "south",
        "east",
        "west",
    }
    changed = 0
    for number in range(1, 25):
        demo = demonstration(env, number)
        reworded = env.augment("reword", demo, np.random.default_rng(number))
        changed += reworded != demo
        assert reworded.observations == demo.observations
        assert reworded.commands == demo.commands
        before, after = ([w for w in words(d.instructions) if w in named] for d in (demo, reworded))
        assert sorted(before) == sorted(after)
        assert reworded.instructions.endswith(" You have 12 turns.")
    assert changed > 5 if goal != "none" else changed == 0


@pytest.mark.parametrize("vocabulary", ["small", "large"])
def test_rewording_can_be_read_again(vocabulary: str) -> None:
    env = RoomsEnv(level="w3-o5-q6", vocabulary=vocabulary)  # type: ignore[arg-type]
    for number in range(1, 15):
        demo = demonstration(env, number)
        # The same draws give the same words, so nothing of the steps was lost on the way.
        for draw in range(5):
            reworded = env.augment("reword", demo, np.random.default_rng(draw))
            twice = env.augment("reword", reworded, np.random.default_rng(draw))
            assert twice == reworded


def test_foreign_instructions_stay() -> None:
    env = RoomsEnv()
    demo = Demonstration("t", "Be good. You have 8 turns.", ("a",), ())
    assert env.augment("reword", demo, np.random.default_rng(0)) == demo
    empty = Demonstration("t", "", ("a",), ())
    assert env.augment("reword", empty, np.random.default_rng(0)) == empty
