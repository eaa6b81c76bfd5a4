"""Augmentations: other words, the same facts."""

import re
from dataclasses import replace

import numpy as np
import pytest

from turngym.envs.textworld.env import TextWorldEnv
from turngym.envs.textworld.families.cooking import CookingLevel
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.games import load_card
from turngym.envs.textworld.language import COMMAND_WORDS
from turngym.envs.textworld.levels import parse_task
from turngym.envs.textworld.vocabulary import FIXED_WORDS, all_words
from turngym.errors import ConfigError
from turngym.types import Demonstration

pytestmark = pytest.mark.textworld

WORD = re.compile(r"[a-z0-9]+(?:['-][a-z0-9]+)*")


@pytest.fixture(scope="module")
def env() -> TextWorldEnv:
    return TextWorldEnv()


@pytest.fixture(scope="module")
def demo(env: TextWorldEnv) -> Demonstration:
    observation, info = env.reset(seed=0, options={"task": "custom/w2-o3-q4/1"})
    observations, commands = [observation], ["goal", *env.plan()]
    for command in commands:
        observations.append(env.step(command)[0])
    return Demonstration(
        "custom/w2-o3-q4/1", info["instructions"], tuple(observations[:-1]), tuple(commands), ("expert",) * 5
    )


def texts_of(demo: Demonstration) -> tuple[str, ...]:
    return (demo.instructions, *demo.observations, *demo.commands)


def test_reword_changes_the_objective_wherever_it_stands(env: TextWorldEnv, demo: Demonstration) -> None:
    card = load_card(CustomLevel(2, 3, 4), 1)
    other = env.augment("reword", demo, np.random.default_rng(0))
    objective = other.instructions.removesuffix(" You have 12 turns.")
    assert objective in card.reworded and other.observations[1] == objective
    assert (other.commands, other.observations[2:]) == (demo.commands, demo.observations[2:])


@pytest.mark.parametrize("name", ["rename", "rename_wide"])
def test_renaming_is_one_to_one_and_word_by_word(env: TextWorldEnv, demo: Demonstration, name: str) -> None:
    words = [WORD.findall(text.lower()) for text in texts_of(demo)]
    present = set().union(*words)
    for seed in range(20):
        other = env.augment(name, demo, np.random.default_rng(seed))
        renamed = [WORD.findall(text.lower()) for text in texts_of(other)]
        pairs = {pair for old, new in zip(words, renamed, strict=True) for pair in zip(old, new, strict=True)}
        pairs = {(old, new) for old, new in pairs if {old, new} != {"a", "an"}}
        assert len(dict(pairs)) == len(pairs) == len({new for _, new in pairs})
        changed = {old: new for old, new in pairs if old != new}
        assert (
            set(changed) <= {"studio", "chest", "case", "quote", "calendar", "j", "keycard"}
            and len(changed) > 5
        )
        assert not set(changed.values()) & (present | FIXED_WORDS)
        assert len(changed["j"]) == 1


def test_articles_follow_the_new_word(env: TextWorldEnv) -> None:
    demo = Demonstration("custom/w2-o3-q4/1", "take a case in an attic", ("a type a chest",), ("take case",))
    for seed in range(30):
        other = env.augment("rename_wide", demo, np.random.default_rng(seed))
        article, word = other.instructions.split()[1:3]
        assert article == ("an" if word[0] in "aeiou" else "a")
        assert other.instructions.endswith("in an attic") and other.observations[0].startswith("a type a ")


def test_an_outline_is_goal_and_walkthrough(env: TextWorldEnv, demo: Demonstration) -> None:
    other = env.augment("outline", demo, np.random.default_rng(0))
    walkthrough = load_card(*parse_task(demo.task)).walkthrough
    assert other.instructions == demo.instructions and other.commands == walkthrough == demo.commands[1:]
    assert other.observations == ("",) * 4 and other.authors == ("expert",) * 4


def test_an_outline_never_names_what_the_goal_hides(env: TextWorldEnv) -> None:
    # "Unlock the box": with which key, only the inventory tells.
    task = "custom/w2-o3-q4/20003"
    observation, info = env.reset(seed=0, options={"task": task})
    assert "keycard" in env.plan()[0] and "keycard" not in info["instructions"]
    demo = Demonstration(task, info["instructions"], (observation,), ("inventory",), ("expert",))
    assert env.augment("outline", demo, np.random.default_rng(0)) == demo


def test_an_outline_says_what_inform_reads(
    env: TextWorldEnv, demo: Demonstration, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Inform takes "box" for the red box, too; of shelves and boxes in longer names of rooms it knows nothing.
    card = replace(
        load_card(CustomLevel(2, 3, 4), 1),
        walkthrough=("take key from box", "take pin from shelf", "take cup from red box"),
        names=("box", "red box", "key", "pin", "cup", "shelf", "shelf room"),
        types=("c", "c", "k", "o", "o", "s", "r"),
    )
    monkeypatch.setattr("turngym.envs.textworld.wording.load_card", lambda level, seed: card)
    told = replace(demo, instructions="box red key pin cup shelf")
    assert env.augment("outline", told, np.random.default_rng(0)).commands == (
        "take key",
        "take pin from shelf",
        "take cup from red box",
    )


def test_an_outline_needs_a_goal_that_tells_the_way() -> None:
    env, demo = demonstrated("custom/w2-o3-q4-last/1")
    assert env.augment("outline", demo, np.random.default_rng(0)) == demo


def demonstrated(task: str) -> tuple[TextWorldEnv, Demonstration]:
    family, level, _ = task.split("/")
    env = TextWorldEnv(family, level=level)
    observation, info = env.reset(seed=0, options={"task": task})
    observations, commands = [observation], env.plan()
    for command in commands:
        observations.append(env.step(command)[0])
    return env, Demonstration(task, info["instructions"], tuple(observations[:-1]), tuple(commands))


def test_names_that_tell_what_a_thing_is_for_stay() -> None:
    env, demo = demonstrated("cooking/r2-t1-open-cut-cook-go1/3")
    kept = {"kitchen", "cookbook", "knife", "oven", "stove", "meal", "cook"}
    said = set(WORD.findall(" ".join(texts_of(demo))))
    assert env.augment("reword", demo, np.random.default_rng(0)) == demo  # a fixed sentence
    for seed in range(5):
        other = env.augment("rename_wide", demo, np.random.default_rng(seed))
        renamed = set(WORD.findall(" ".join(texts_of(other))))
        assert renamed & kept == said & kept and len(renamed - said) > 5
        verbs = [command.split()[0] for command in demo.commands]
        assert [command.split()[0] for command in other.commands] == verbs
        assert other.commands[-2:] == ("prepare meal", "eat meal")


def test_doors_are_renamed_by_the_narrow_words_too() -> None:
    env, demo = demonstrated("simple/sparse-brief/2")
    for seed in range(5):
        other = env.augment("rename", demo, np.random.default_rng(seed))
        assert "wooden" not in " ".join(other.commands) and "stove" in other.commands[-1]


def test_every_family_has_its_words() -> None:
    for task in ("cooking/r2-t1-open-cut-cook-go1/3", "simple/sparse-brief/2", "coin/l103/3"):
        level, seed = parse_task(task)
        words = set(all_words(level))
        assert {word for name in load_card(level, seed).names for word in name.split()} <= words, task
    assert {"bbq", "grilled", "chop", "prepare"} <= set(all_words(CookingLevel(1, 1, (), 1)))


def test_augmenting_is_pure(env: TextWorldEnv, demo: Demonstration) -> None:
    for name in env.augmentations:
        first, second = (env.augment(name, demo, np.random.default_rng(5)) for _ in range(2))
        assert first == second != demo
        assert first.task == demo.task and len(first.authors) == len(first.commands)
    with pytest.raises(ConfigError, match="rename_wide"):
        env.augment("shout", demo, np.random.default_rng(0))


def test_the_vocabulary_holds_every_name(env: TextWorldEnv) -> None:
    words = all_words(CustomLevel(2, 3, 4))
    assert words == sorted(set(words)) and 400 < len(words) < 1000
    assert {"elderberry", "henderson's", "dish-pit", "keycard", "j", "7"} <= set(words)
    assert not set(words) & COMMAND_WORDS
    for seed in (1, 8, 12, 21):
        assert {word for name in load_card(CustomLevel(2, 3, 4), seed).names for word in name.split()} <= set(
            words
        )
