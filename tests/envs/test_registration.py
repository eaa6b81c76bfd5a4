"""Environment ids: how they are found, made and misspelt."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.registration import env_ids, find_spec, make, make_turn_env, register_envs
from turngym.errors import ConfigError, UnknownEnvError

ROOT = Path(__file__).parents[2]


def test_gymnasium_makes_rooms_in_a_fresh_interpreter() -> None:
    code = (
        "import gymnasium as gym\n"
        "env = gym.make('turngym:turngym/Rooms-v0', level='w2-o3-q4')\n"
        "print(type(env.reset(seed=0)[0]).__name__, env.unwrapped.spec.id)"
    )
    run = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={"PYTHONPATH": str(ROOT / "src")}
    )
    assert run.stdout.split() == ["str", "turngym/Rooms-v0"], run.stderr


@pytest.mark.parametrize("env_id", ["Rooms-v0", "turngym/Rooms-v0", "turngym:turngym/Rooms-v0"])
def test_three_spellings_name_one_environment(env_id: str) -> None:
    assert find_spec(env_id).id == "turngym/Rooms-v0"
    assert make_turn_env(env_id).spec is not None


def test_no_wrapper_adds_a_turn_limit() -> None:
    env = make("turngym/Rooms-v0", max_turns=3)
    assert "TimeLimit" not in str(env)
    assert make_turn_env("turngym/Rooms-v0", max_turns=3).max_turns == 3


def test_registering_again_changes_nothing() -> None:
    before = dict(gymnasium.registry)
    register_envs()
    assert gymnasium.registry == before
    assert "turngym/Rooms-v0" in env_ids()


@pytest.mark.parametrize(
    ("env_id", "message"),
    [
        ("turngym/Romos-v0", "No environment 'turngym/Romos-v0'. Did you mean 'turngym/Rooms-v0'?"),
        ("rooms-v0", "No environment 'rooms-v0'. Did you mean 'turngym/Rooms-v0'?"),
        ("turngym:turngym/Rooms-v9", "No environment 'turngym:turngym/Rooms-v9'. Did you mean 'turngym/Rooms-v0'?"),
        ("turngym/Chess-v1", "No environment 'turngym/Chess-v1'. `turngym list envs` lists all of them."),
        (
            "no_such_module:my/Env-v0",
            "No module 'no_such_module' for environment 'no_such_module:my/Env-v0'. "
            "Run from its folder or install it.",
        ),
    ],
)  # fmt: skip
def test_an_unknown_id_is_named_with_a_suggestion(env_id: str, message: str) -> None:
    with pytest.raises(UnknownEnvError) as caught:
        find_spec(env_id)
    assert str(caught.value) == message


def test_a_module_that_fails_to_import_shows_its_own_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "module_with_gap.py").write_text("import library_that_is_not_there\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="library_that_is_not_there"):
        find_spec("module_with_gap:my/Env-v0")


def test_a_wrong_argument_is_named() -> None:
    with pytest.raises(ConfigError) as caught:
        make("turngym/Rooms-v0", levle="w2-o3-q4", reward="dense")
    assert str(caught.value).startswith("turngym/Rooms-v0 takes no argument 'levle'.")


@pytest.fixture
def broken_id() -> str:
    def broken(**kwargs: Any) -> TurnEnv:
        raise TypeError("'NoneType' object is not subscriptable")

    env_id = "toy/TypeError-v0"
    if env_id not in gymnasium.registry:
        gymnasium.register(env_id, entry_point=broken)
    return env_id


def test_a_type_error_of_the_class_itself_is_not_taken_for_a_wrong_argument(broken_id: str) -> None:
    with pytest.raises(TypeError, match="not subscriptable") as caught:
        make(broken_id)
    assert not isinstance(caught.value, ConfigError)


def test_an_environment_that_is_no_turn_env_is_refused() -> None:
    with pytest.raises(ConfigError, match="CartPoleEnv, not a TurnEnv"):
        make_turn_env("CartPole-v1")
