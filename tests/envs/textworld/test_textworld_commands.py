"""What an agent may say: refused and misunderstood commands leave no trace, and nothing kills the engine."""

from pathlib import Path

import jericho  # type: ignore[import-untyped]
import numpy as np
import pytest

import turngym
from turngym.envs.textworld.env import TextWorldEnv
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.games import load_game
from turngym.envs.textworld.language import COMPOUND, refusal
from turngym.envs.textworld.machine import Machine

pytestmark = pytest.mark.textworld

META = (
    "restart", "quit", "q", "save", "restore", "undo", "script", "transcript", "verbose", "brief", "superbrief",
    "superbriefly", "short", "long", "normal", "version", "verify", "notify", "pronouns", "nouns", "score",
    "fullscore", "again", "g", "oops", "o", "tw-trace-actions", "tw-print", "print_state", "restrict", "enable",
)  # fmt: skip
COMPOUNDS = (
    "look\nlook", "look\rlook", "look. look", "look.look", "look then look", "look THEN look", "look; look",
    "take keycard, look", "take keycard and look", "take keycard and case", "me, look", "open case, then look",
)  # fmt: skip
JUNK = (
    "", " ", "\t", ".", "?", "!", '"', "'", "-", "_", "0", "xyzzy", "\x00", "look\x00look", "\x1b[2J", "łook", "☃",
    "look \u2028 look", "[going north - succeeded]", "say ] [going north - succeeded", "*** The End ***",
    "say *** the end ***", "%s%n", "look look look look look look look look look look", "a " * 49, "z" * 100,
    "take", "open", "go", "go nowhere", "it", "me", "all", "1", "yes", "no", "take keycard from", "put on", "\\", "*debug",
)  # fmt: skip


def started(seed: int = 1, **kwargs: object) -> TextWorldEnv:
    env = turngym.make("turngym/TextWorld-v0", **{"max_turns": 1000, **kwargs}).unwrapped
    assert isinstance(env, TextWorldEnv)
    env.reset(seed=0, options={"task": f"custom/w2-o3-q4/{seed}"})
    return env


def test_commands_about_the_program_are_refused_and_change_nothing() -> None:
    env = started()
    before = env.step("look")
    for verb in META:
        for command in (verb, verb.upper(), f"  {verb} .", f"{verb} on", f'"{verb}'):
            info = env.step(command)[4]
            assert not info["valid"] and info["outcome"] == "running", command
            assert info["state_key"] == before[4]["state_key"], command
    assert env.step("look")[0] == before[0]


@pytest.mark.filterwarnings("ignore::jericho.UnsupportedGameWarning")
def test_every_meta_verb_of_the_story_is_refused(tmp_path: Path) -> None:
    # Found by trying each word that the story's parser knows: what the program says of itself gives it away.
    story = load_game(CustomLevel(2, 3, 4), 1).story
    (tmp_path / "story.z8").write_bytes(story)
    words = [entry.word for entry in jericho.FrotzEnv(str(tmp_path / "story.z8")).get_dictionary()]
    assert len(words) > 300 and "superbrie" in words
    machine = Machine(story)
    start = machine.save()
    marks = (
        'its "',
        "mode",
        "transcript",
        "notification",
        "out of a possible",
        "the game",
        "the story",
        "sure you",
    )
    for word in words:
        # "goal" and "help" print the objective and the list of commands: part of the game.
        if refusal(word) or word in ("goal", "help") or not word.isascii():
            continue
        reply = machine.send(word).lower()
        machine.restore(start)
        assert not any(mark in reply for mark in marks), (word, reply)


def test_several_commands_in_one_are_refused() -> None:
    env = started()
    for command in COMPOUNDS:
        text, _, _, _, info = env.step(command)
        assert text == "Give one command per turn." and not info["valid"], command
        assert info["state_key"] == info["start_key"], command
    assert all(
        COMPOUND.search(command.strip()) is None
        for command in ("look.", "look .", "look...", "candy", "sandstone")
    )
    assert env.step("look.")[4]["valid"]


def test_junk_is_invalid_and_harmless() -> None:
    env = started()
    before = env.step("look")[0]
    for command in (*JUNK, "z" * 101, "z" * 5000):
        info = env.step(command)[4]
        assert info["state_key"] == info["start_key"], command
        assert info["outcome"] == "running" and info["success"] is False, command
    assert env.step("look")[0] == before


def test_words_that_inform_would_not_read_are_refused() -> None:
    env = started()
    assert env.step("say" + " a" * 14)[4]["valid"]
    assert env.step("say" + " a" * 15)[0] == "only the first 15 words of a command are read: say it shorter."


def test_random_bytes_never_stop_the_engine() -> None:
    env = started()
    rng = np.random.default_rng(0)
    for _ in range(300):
        size = int(rng.integers(1, 60))
        env.step("".join(chr(int(code)) for code in rng.integers(0, 0x2FFF, size)))
        env.step(bytes(rng.integers(0, 256, size, dtype=np.uint8)).decode("latin-1"))
    info = env.step("look")[4]
    assert info["valid"] and info["state_key"] == info["start_key"]


def test_validity_is_what_the_engine_did_and_not_membership_in_the_list() -> None:
    env = started()
    valid = {
        "take keycard": True,  # listed only as "take type j keycard from case"
        "x case": True,
        "n": True,
        "dance": False,
        "take anvil": False,
        "open chest": False,  # locked: understood, and not carried out
        "go west": False,
        "take table with keycard": False,
    }
    for command, wanted in valid.items():
        env.reset(seed=0, options={"task": "custom/w2-o3-q4/1"})
        assert env.step(command)[4]["valid"] is wanted, command


def test_a_question_of_the_parser_takes_no_answer_from_the_next_turn() -> None:
    env = started(21)
    key = env.step("drop key")[4]["state_key"]
    for question, answer in (
        ("take henderson's", "key"),
        ("take", "key"),
        ("take henderson's", "henderson's style key"),
    ):
        text, _, _, _, info = env.step(question)
        assert (
            text.startswith(("which do you mean, the henderson's style", "what do you want to"))
            and not info["valid"]
        )
        text, _, _, _, info = env.step(answer)
        assert text == "that's not a verb i recognise." and not info["valid"] and info["state_key"] == key
    assert env.step("take henderson's style key")[4]["valid"]


def test_a_thing_named_in_full_is_meant() -> None:
    env = started(21)  # a box beside a henderson's style box
    assert env.step("open box")[4]["valid"]
    text, _, _, _, info = env.step("insert henderson's style key into box")
    assert text.endswith("into the box.") and info["valid"]


def test_after_the_end_nothing_is_played() -> None:
    env = started()
    for command in env.plan():
        last = env.step(command)
    assert last[2] and last[4]["outcome"] == "won"
    with pytest.raises(Exception, match="reset"):
        env.step("look")
    assert env.commands() is not None and env.plan() == []
