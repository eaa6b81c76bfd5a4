"""A person's episode: turns, the way back, hints."""

from collections.abc import Callable

import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef
from turngym.errors import ConfigError, TaskError
from turngym.terminal.game import Game
from turngym.types import TaskRange, Turn

Start = Callable[..., Game]


@pytest.fixture
def start(vault: type[TurnEnv]) -> Start:
    """Starts a game of the vault: two of three wheels in an order that only `read` shows."""

    def make(task: str | None = "vault/7", split: str | None = None, seed: int = 1) -> Game:
        return Game(EnvRef.of(vault), task=task, split=split, seed=seed)

    return make


def solve(game: Game) -> None:
    for command in game.env.plan():
        game.play(command)


def test_the_start_is_that_of_the_task(start: Start) -> None:
    game = start()
    assert game.now.info.task == "vault/7" and game.now.info.turn == 0
    assert game.instructions.startswith("Open the vault.") and game.instructions.endswith("You have 6 turns.")
    assert not game.is_over and game.commands == []


@pytest.mark.parametrize(("split", "number"), [(None, range(30)), ("test", range(40, 50))])
def test_a_task_is_picked_from_the_split_by_the_seed(split: str | None, number: range, start: Start) -> None:
    tasks = {start(task=None, split=split, seed=seed).now.info.task for seed in range(6)}
    assert len(tasks) > 1
    assert {int(task.removeprefix("vault/")) for task in tasks} <= set(number)
    assert start(task=None, seed=3).now.info.task == start(task=None, seed=3).now.info.task


def test_wrong_choices_are_told(start: Start) -> None:
    with pytest.raises(TaskError, match="vault/99"):
        start("vault/99")
    with pytest.raises(ConfigError, match="No split 'tset'"):
        start(task=None, split="tset")
    with pytest.raises(ConfigError, match="name one of them"):
        start("vault/7", split="test")


def test_playing_brings_reward_and_an_end(start: Start) -> None:
    game = start()
    solve(game)
    assert game.is_over and game.now.info.success
    assert (game.episode_return, len(game.commands)) == (1.0, 2)


def test_undo_goes_back_in_state_score_and_chance(start: Start) -> None:
    game = start()
    game.play("read")
    first = game.play("read").observation
    before = game.now.info.state_key
    game.play(game.env.plan()[0])
    assert game.now.info.score == 1 and game.now.info.state_key != before
    assert game.undo() is not None
    assert (game.now.info.score, game.now.info.state_key, game.now.info.turn) == (0, before, 2)
    game.undo()
    # The lamp flickers a random number of times; taken back and read again it flickers the same.
    assert game.play("read").observation == first
    assert game.num_undone == 2


def test_undo_takes_back_the_end_itself(start: Start) -> None:
    game = start()
    game.play("smash")
    assert game.is_over
    assert game.undo() == "smash"
    assert not game.is_over and game.play("read").info.valid
    assert [game.undo(), game.undo()] == ["read", None]


def test_hints_are_those_of_the_honest_expert(start: Start) -> None:
    # Every wheel is named at the start, so nothing has to be read first.
    game = start()
    while not game.is_over:
        hint = game.hint()
        assert hint is not None
        game.play(hint)
    assert game.now.info.success and game.num_hints == len(game.commands) == 2


def test_a_hint_asks_first_for_what_nobody_has_shown(vault: type[TurnEnv]) -> None:
    class Hidden(vault):  # type: ignore[misc, valid-type]
        instructions = "Open the vault."

        def load(self, task: str, rng: object) -> str:
            super().load(task, rng)
            return "A vault with three wheels."

    game = Game(EnvRef.of(Hidden), task="vault/7", split=None, seed=0)
    assert [game.hint(), game.hint()] == ["read", "read"], "a hint alone shows nothing"
    game.play("read")
    assert game.hint() == game.env.plan()[0]


def test_an_environment_without_expert_gives_no_hint() -> None:
    class Plain(TurnEnv):
        max_turns = 3
        splits = {"train": TaskRange("", range(3))}

        def load(self, task: str, rng: object) -> str:
            return "Hello."

        def act(self, command: str) -> Turn:
            return Turn("Hm.")

        def state(self) -> int:
            return 0

    game = Game(EnvRef.of(Plain), task="1", split=None, seed=0)
    assert game.admissible() is None
    with pytest.raises(ConfigError, match="no expert"):
        game.hint()
    assert game.num_hints == 0


def test_commands_are_listed_as_they_are_now(start: Start) -> None:
    assert start().admissible() == ["read", "turn blue", "turn green", "turn red"]
