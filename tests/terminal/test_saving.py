"""A person's episode on disk."""

from pathlib import Path

import numpy as np
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.episode_file import read_episodes
from turngym.errors import EnvContractError, FileFormatError
from turngym.terminal.game import Game
from turngym.terminal.saving import save_game
from turngym.types import Turn


def played(env: type[TurnEnv], *commands: str) -> Game:
    game = Game(EnvRef.of(env), task="vault/7", split=None, seed=5)
    for command in commands:
        game.play(command)
    return game


def test_the_episode_is_the_one_that_was_played(vault: type[TurnEnv], tmp_path: Path) -> None:
    game = played(vault, "read", "fly", "read")
    for command in game.env.plan():
        game.play(command)
    saved = save_game(game, tmp_path / "new" / "mine.jsonl")
    assert read_episodes(tmp_path / "new" / "mine.jsonl") == [saved]
    assert (saved.outcome, saved.agent, saved.seed, saved.task) == ("won", "human", 5, "vault/7")
    assert [turn.command for turn in saved.turns] == game.commands
    assert {turn.author for turn in saved.turns} == {"human"}
    assert [turn.observation for turn in saved.turns] == [moment.observation for moment in game.moments[1:]]
    assert [turn.valid for turn in saved.turns] == [True, False, True, True, True]
    assert saved.episode_return == game.episode_return == 1


def test_an_episode_left_midway_has_no_end(vault: type[TurnEnv], tmp_path: Path) -> None:
    saved = save_game(played(vault, "read"), tmp_path / "mine.jsonl")
    assert (saved.outcome, saved.success, len(saved.turns)) == ("running", False, 1)


def test_help_that_was_had_is_told(vault: type[TurnEnv], tmp_path: Path) -> None:
    game = played(vault, "read", "smash")
    game.hint()
    game.hint()
    game.undo()
    assert save_game(game, tmp_path / "mine.jsonl").agent == "human (2 hints, 1 undone)"


def test_episodes_are_added_to_a_file_under_numbers_of_their_own(
    vault: type[TurnEnv], tmp_path: Path
) -> None:
    path = tmp_path / "mine.jsonl"
    for commands in (("read",), ("smash",), ("read", "read")):
        save_game(played(vault, *commands), path)
    assert [(one.number, len(one.turns)) for one in read_episodes(path)] == [(0, 1), (1, 1), (2, 2)]


@pytest.mark.parametrize("content", ["notes without an end", "notes\n", '{"format":1,"nu'])
def test_a_file_of_something_else_is_left_alone(content: str, vault: type[TurnEnv], tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(FileFormatError):
        save_game(played(vault, "read"), path)
    assert path.read_text(encoding="utf-8") == content


def test_an_environment_that_answers_otherwise_is_not_believed(vault: type[TurnEnv], tmp_path: Path) -> None:
    # Chance of its own, which no seed reaches.
    rng = np.random.default_rng(1)

    class Moody(vault):  # type: ignore[misc, valid-type]
        def act(self, command: str) -> Turn:
            return Turn(f"Mood {rng.random()}.")

    with pytest.raises(EnvContractError, match="np_random"):
        save_game(played(Moody, "read"), tmp_path / "mine.jsonl")
    assert not (tmp_path / "mine.jsonl").exists()
