"""The entry textworld: its script, its players, and the whole of it in small, without any figure."""

import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from turngym import cli
from turngym.benchmarks.speed.textworld.entry import TextWorldSettings, plan
from turngym.errors import ConfigError

pytestmark = pytest.mark.textworld


@pytest.fixture(scope="module", autouse=True)
def games_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """One folder of games for all tests: each game costs over a second."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(tmp_path_factory.mktemp("turngym_cache")))
        yield


def test_scripts_are_fixed_and_end_where_episodes_do() -> None:
    from turngym.benchmarks.speed.textworld.script import draw_scripts
    from turngym.envs.registration import make_turn_env

    scripts = draw_scripts("w2-o3-q4", games=2, episodes=2, seed=1)
    assert scripts == draw_scripts("w2-o3-q4", games=2, episodes=2, seed=1)
    assert scripts != draw_scripts("w2-o3-q4", games=2, episodes=2, seed=2)
    env = make_turn_env("TextWorld-v0", level="w2-o3-q4")
    for script in scripts:
        assert script.task in env.tasks("train")
        for commands in script.episodes:
            env.reset(options={"task": script.task})
            ends = [env.step(command)[2:4] for command in commands]
            assert [any(end) for end in ends] == [False] * (len(commands) - 1) + [True]


def test_games_in_which_a_name_lies_within_another_are_left_out() -> None:
    from turngym.benchmarks.speed.textworld.script import has_nested_names
    from turngym.envs.textworld.card import Card

    def card(*names: str) -> Card:
        return Card("", (), (), names, tuple("o" for _ in names), 1)

    assert has_nested_names(card("safe", "red safe"))
    assert has_nested_names(card("big red safe", "red safe"))
    assert not has_nested_names(card("safe", "safer box", "keysafe"))
    assert not has_nested_names(card("box", "box"))


def test_too_few_games_are_told() -> None:
    from turngym.benchmarks.speed.textworld.script import fitting_tasks

    with pytest.raises(ConfigError, match="games = 3: the level has [01] games that fit"):
        fitting_tasks(["custom/w2-o3-q4/50001"], 3)


@pytest.mark.parametrize("workload", ["train", "list"])
def test_pool_and_bare_environments_do_the_same(workload: str, tmp_path: Path) -> None:
    from turngym.benchmarks.speed.textworld.play import make_player, measure

    settings = TextWorldSettings(games=2, episodes=2, workloads=(workload,), workers=(1,))
    (planned,) = plan(settings, tmp_path)
    peer, *ours = planned.sides
    assert peer.is_peer and [side.name for side in ours] == ["bare", "inline", "1 worker"]
    found = []
    for side in ours:
        job = json.loads(json.dumps(side.job))
        scripts = [game["episodes"] for game in job["games"]]
        found.append(measure(make_player(job), scripts, started=time.monotonic()))
    works = [measurement.work for measurement in found]
    assert works[0] == works[1] == works[2]
    timed = [commands for game in scripts for commands in game[1:]]
    assert works[0]["episodes"] == len(timed) == 4
    assert works[0]["steps"] == sum(len(commands) for commands in timed)
    assert ("commands" in works[0]) == (workload == "list")


def test_opening_games_plays_the_same_episodes(tmp_path: Path) -> None:
    from turngym.benchmarks.speed.textworld.play import make_player, measure

    settings = TextWorldSettings(games=2, episodes=2, workloads=("train", "open"), workers=())
    works = []
    for workload in plan(settings, tmp_path):
        side = next(side for side in workload.sides if side.name == "bare")
        job = json.loads(json.dumps(side.job))
        scripts = [game["episodes"] for game in job["games"]]
        works.append(measure(make_player(job), scripts, started=time.monotonic()).work)
    assert works[0] == works[1]
    assert [side.name for side in workload.sides] == ["textworld", "bare"]
    with pytest.raises(ConfigError, match="games = 1: the workload open"):
        plan(TextWorldSettings(games=1), tmp_path)


@pytest.mark.slow  # starts ten interpreters that import TextWorld
def test_the_command_line_measures_the_same_work_on_all_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    settings = ["games=2", "episodes=1", "workloads=[list,open]", "workers=[]"]
    options = ["--rounds", "2", "--peer-python", sys.executable, "--json", "-"]
    monkeypatch.setattr(sys, "argv", ["turngym", "speed", "textworld", *settings, *options])
    with pytest.raises(SystemExit) as leaving:
        cli.main()
    said = capsys.readouterr()
    assert leaving.value.code == 0, said.err
    report = json.loads(said.out)
    assert (report["entry"], report["num_rounds"]) == ("textworld", 2)
    assert report["command"].startswith("turngym speed textworld games=2 episodes=1")
    workload, opening = report["workloads"]
    assert [side["name"] for side in workload["sides"]] == ["textworld", "bare", "inline"]
    assert [(one["first"], one["second"]) for one in workload["ratios"]] == [
        ("bare", "textworld"), ("inline", "textworld"), ("inline", "bare"),
    ]  # fmt: skip
    assert [(one["first"], one["second"]) for one in opening["ratios"]] == [("bare", "textworld")]
    assert workload["work"]["episodes"] == opening["work"]["episodes"] == 2
    assert all(len(side["rounds"]) == 2 for side in workload["sides"])
    assert str(tmp_path) not in said.out


def test_an_unknown_level_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="'huge' is no level of 'custom'"):
        plan(TextWorldSettings(level="huge"), tmp_path)
