"""The conversation in the terminal, with lines from a list, a pipe and a terminal."""

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.episode_file import read_episodes
from turngym.terminal.game import Game
from turngym.terminal.play import Conversation
from turngym.types import Turn

ROOT = Path(__file__).parents[2]

Talk = Callable[..., str]


@pytest.fixture
def talk(vault: type[TurnEnv]) -> Talk:
    """What is shown for some lines in a game of the vault; `env` takes its place."""

    def run(*lines: str, env: type[TurnEnv] = vault) -> str:
        console = Console(file=StringIO(), width=100, record=True)
        conversation = Conversation(Game(EnvRef.of(env), task="vault/7", split=None, seed=0), console)
        conversation.begin()
        for line in lines:
            if not conversation.answer(line):
                break
        conversation.end()
        return console.export_text()

    return run


def test_the_beginning_tells_task_commands_and_instructions(talk: Talk) -> None:
    shown = talk()
    for needle in ("task vault/7, seed 0", "save FILE", "Open the vault.", "[turn 0 of 6, score 0 of 2]"):
        assert needle in shown
    assert shown.endswith("Left after 0 turns.\n")


def test_a_turn_shows_observation_score_reward_and_whether_it_counted(talk: Talk) -> None:
    shown = talk("read", "fly")
    assert "The lamp flickers" in shown
    assert "[turn 1 of 6, score 0 of 2, reward +0]" in shown
    assert "Nothing happens.\n[turn 2 of 6, score 0 of 2, reward +0, not carried out]" in shown
    assert shown.endswith("Left after 2 turns. It was not saved.\n")


def test_what_is_admissible_is_listed_and_costs_no_turn(talk: Talk) -> None:
    assert "read\nturn blue\nturn green\nturn red\n" in talk("?")
    assert "Left after 0 turns." in talk("?", "", "  ", "hint")


def test_hints_lead_to_the_end(talk: Talk, vault: type[TurnEnv]) -> None:
    plan = Game(EnvRef.of(vault), task="vault/7", split=None, seed=0).env.plan()
    shown = talk("hint", plan[0], "hint", plan[1], "read", "hint")
    assert shown.count(f"\n{plan[0]}\n") == shown.count(f"\n{plan[1]}\n") == 1
    assert "Won after 2 turns, return 1." in shown
    assert "The episode is over: undo takes" in shown


def test_undo_is_told_and_shows_where_one_is(talk: Talk) -> None:
    shown = talk("undo", "smash", "undo", "read")
    assert "There is no turn to take back." in shown
    assert "Lost after 1 turns" in shown
    assert "Taken back: smash\nA vault with three wheels: red, blue and green.\n[turn 0 of 6" in shown
    assert "The lamp flickers" in shown


def test_a_backslash_sends_any_line_to_the_environment(talk: Talk) -> None:
    assert "[turn 1 of 6, score 0 of 2, reward +0, not carried out]" in talk("\\hint")
    assert "[turn 1 of 6, score 0 of 2, reward +0]" in talk("\\read")


def test_the_rest_is_not_read_after_quit(talk: Talk) -> None:
    assert talk("quit", "read").endswith("Left after 0 turns.\n")


def test_saving_is_told_with_what_stands_in_the_way(talk: Talk, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    path = tmp_path / "my file.jsonl"
    shown = talk(
        f"save {path}", "read", "save", f"save {tmp_path}", f"save {tmp_path}/notes.txt",
        f"save {tmp_path}/notes.txt/x.jsonl", f"save {path}",
    )  # fmt: skip
    for needle in (
        "no turn to save",
        "Name a file",
        "Is a directory",
        "holds no episodes",
        "Cannot write",
    ):
        assert needle in shown
    assert f"Saved as episode 0 of {path}: running, by human." in shown.replace("\n", "")
    assert shown.endswith("Left after 1 turn.\n")
    assert [turn.command for turn in read_episodes(path)[0].turns] == ["read"]


def test_no_text_steers_the_terminal_or_the_markup(talk: Talk, vault: type[TurnEnv]) -> None:
    class Loud(vault):  # type: ignore[misc, valid-type]
        def act(self, command: str) -> Turn:
            return Turn("\x1b[2J\x07[bold]loud[/bold]\r\nnext")

    shown = talk("read", env=Loud)
    assert "\ufffd[2J\ufffd[bold]loud[/bold]\nnext\n" in shown


def command_line(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "turngym.cli", "play", "Rooms-v0", *arguments]


def test_a_pipe_plays_and_its_end_is_the_person_s(tmp_path: Path) -> None:
    done = subprocess.run(
        command_line("level=w2-o2-q2", "--split", "test", "--seed", "4"),
        input="look\nhint\nsave mine.jsonl\nlook", text=True, capture_output=True, cwd=tmp_path, timeout=120,
        env={"PYTHONPATH": str(ROOT / "src")},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert "> look\n" in done.stdout and "Left after 2 turns. It was not saved.\n" in done.stdout
    (episode,) = read_episodes(tmp_path / "mine.jsonl")
    assert episode.agent == "human (1 hint)" and episode.env_kwargs == {"level": "w2-o2-q2"}
    assert f"task {episode.task}, seed 4" in done.stdout


def test_a_terminal_has_a_prompt_and_a_history_and_ctrl_d_leaves(tmp_path: Path) -> None:
    pytest.importorskip("readline")
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        command_line(), stdin=theirs, stdout=theirs, stderr=theirs, cwd=tmp_path, close_fds=True,
        env={"PYTHONPATH": str(ROOT / "src"), "TERM": "xterm", "PATH": os.environ["PATH"]},
    )  # fmt: skip
    os.close(theirs)
    shown, place = "", 0

    def read_until(*needles: str) -> None:
        nonlocal shown, place
        for needle in needles:
            while needle not in shown[place:]:
                shown += os.read(ours, 4096).decode()
            place = shown.index(needle, place) + len(needle)

    # Keys wait for the prompt: before it stands, the terminal itself would take an arrow or Ctrl-D for its own.
    read_until("> ")
    os.write(ours, b"inventory\n")
    read_until("[turn 1 of", "> ")
    os.write(ours, b"\x1b[A\n")  # The arrow up brings the last line again.
    read_until("[turn 2 of", "> ")
    os.write(ours, b"\x04")
    read_until("Left after 2 turns.")
    assert process.wait(timeout=60) == 0
    os.close(ours)
    assert "Traceback" not in shown
