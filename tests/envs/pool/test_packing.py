"""What worker processes need to make an environment, and what they cannot be given."""

import importlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import Call, EnvPool, EnvRef, InlinePool, Key, ProcessPool, Reply, make_pool
from turngym.errors import ConfigError

ROOMS = EnvRef("turngym/Rooms-v0", {"level": "w2-o3-q4"})


@pytest.fixture(scope="module")
def pool() -> Iterator[ProcessPool]:
    """One worker, which these tests leave alive."""
    pool = ProcessPool(1)
    yield pool
    pool.close()


def ask(pool: EnvPool, ref: EnvRef) -> Reply:
    """The answer to a reset, without what depends on the clock."""
    pool.submit(Call(Key(0, 0, 0), ref, task="faulty/1", seed=7))
    (reply,) = pool.poll()
    return replace(reply, latency_s=0.0)


def test_a_factory_is_found_by_its_name(pool: ProcessPool) -> None:
    ref = EnvRef.of(importlib.import_module("faulty_env").make_faulty)
    reply = ask(pool, ref)
    assert reply.fault is None and reply.observation.startswith("Start")


def test_what_cannot_be_imported_by_name_is_refused_at_the_start(vault: type[TurnEnv]) -> None:
    def local() -> TurnEnv:
        return vault()

    in_script = type("Scripted", (vault,), {"__module__": "__main__"})
    for factory in (local, lambda: vault()):
        with pytest.raises(ConfigError, match="top level of a module, or set workers to 0"):
            make_pool(workers=1, envs=[EnvRef.of(factory)])
    with pytest.raises(ConfigError, match="Scripted stands in the script that runs"):
        make_pool(workers=1, envs=[EnvRef.of(in_script)])


def test_an_id_registered_in_this_process_alone_is_the_same_environment_there(
    pool: ProcessPool,
) -> None:
    module = importlib.import_module("faulty_env")
    gymnasium.register("local/Mine-v0", entry_point=module.Faulty)
    try:
        ref = EnvRef("local/Mine-v0")
        there, here = ask(pool, ref), ask(InlinePool(), ref)
    finally:
        del gymnasium.registry["local/Mine-v0"]
    # The start is drawn by the id, so it tells whether the worker knew it.
    assert there.observation.partition(", process")[0] == here.observation.partition(", process")[0]
    assert there.info == here.info


def test_a_made_environment_may_be_registered_anywhere(pool: ProcessPool) -> None:
    gymnasium.register("local/Made-v0", entry_point=importlib.import_module("faulty_env").Faulty)
    try:
        ref = EnvRef.of(gymnasium.make("local/Made-v0", max_turns=3))
        assert ref.env_id == "faulty_env:local/Made-v0"  # A module that does not register it.
        there, here = ask(pool, ref), ask(InlinePool(), ref)
    finally:
        del gymnasium.registry["local/Made-v0"]
    assert there.info == here.info


def test_a_module_that_fails_in_the_worker_alone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = tmp_path / "env_of_one_process.py"
    source.write_text(
        "from faulty_env import Faulty as Base\nclass Mine(Base):\n    pass\n", encoding="utf-8"
    )
    monkeypatch.syspath_prepend(tmp_path)
    ref = EnvRef.of(importlib.import_module("env_of_one_process").Mine)
    source.write_text("raise ZeroDivisionError('lamp')\n", encoding="utf-8")
    pool = make_pool(workers=1, envs=[ref])
    try:
        with pytest.raises(ConfigError, match="cannot import what .* ZeroDivisionError: lamp"):
            ask(pool, ref)
    finally:
        pool.close()


class Stubborn:
    """Cannot be pickled, and says so by an error of its own."""

    def __reduce__(self) -> str:
        raise RuntimeError("I stay here.")


def test_arguments_that_cannot_be_sent_are_refused_at_the_start() -> None:
    with pytest.raises(ConfigError, match=r"I stay here\..* or set workers to 0"):
        make_pool(workers=1, envs=[EnvRef("turngym/Rooms-v0", {"level": Stubborn()})])


def test_modules_are_searched_where_this_process_searches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "env_of_a_folder.py").write_text(
        "import gymnasium\n"
        "from turngym.envs.rooms.env import RoomsEnv\n"
        "class Mine(RoomsEnv):\n"
        "    instructions = 'Mine.'\n"
        "gymnasium.register('folder/Mine-v0', entry_point=Mine)\n",
        encoding="utf-8",
    )
    monkeypatch.syspath_prepend(tmp_path)
    ref = EnvRef("env_of_a_folder:folder/Mine-v0", {"level": "w2-o3-q4"})
    pool = make_pool(workers=1)
    try:
        pool.submit(Call(Key(0, 0, 0), ref, task=ROOMS.make().tasks("train")[0], seed=1))
        (reply,) = pool.poll()
    finally:
        pool.close()
    assert reply.fault is None, reply.fault
