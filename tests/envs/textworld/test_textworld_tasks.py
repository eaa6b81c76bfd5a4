"""Splits: disjoint, lazy, of full length, and the shipped survey is true."""

from itertools import pairwise

import pytest

from turngym.envs.textworld import backend
from turngym.envs.textworld.lengths import full_length_seeds, measure_length, walkthrough_lengths
from turngym.envs.textworld.levels import Level, parse_level, parse_task, task_id
from turngym.envs.textworld.survey import RANGES
from turngym.envs.textworld.survey_table import read_table, shipped_length
from turngym.envs.textworld.tasks import splits_of
from turngym.errors import ConfigError, TaskError

pytestmark = pytest.mark.textworld

SMALL, LARGE = Level(2, 3, 4), Level(4, 6, 8)


@pytest.mark.parametrize("level", [SMALL, LARGE])
def test_splits_are_disjoint_and_need_no_game(level: Level, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "make_game", None)
    splits = splits_of(level)
    tasks = {name: list(split) for name, split in splits.items()}
    assert {name: len(split) for name, split in tasks.items()} == {
        "train": 1000,
        "validation": 90,
        "test": 350,
    }
    assert len(set().union(*tasks.values())) == 1440
    assert tasks["test"][0] == task_id(level, 1) and tasks["test"][100] == task_id(level, 30001)
    for name, first, last in (("train", 50001, 51100), ("validation", 20001, 20100)):
        seeds = [parse_task(task)[1] for task in tasks[name]]
        assert all(low < high for low, high in pairwise(seeds)) and first <= seeds[0] and seeds[-1] <= last
    assert splits["train"][-1] == tasks["train"][999] and splits["train"][2:4] == tuple(tasks["train"][2:4])
    with pytest.raises(IndexError):
        splits["train"][1000]


def test_the_survey_is_true_on_a_sample() -> None:
    short = read_table()["levels"]["w2-o3-q4"]["50001-51100"]
    for seed in (*short[::40], 50001, 51100, 20001):
        assert (measure_length(task_id(SMALL, seed)) == 4) == (shipped_length(SMALL, seed) == 4), seed
    assert shipped_length(SMALL, 51101) is None and shipped_length(Level(9, 9, 9), 50001) is None


@pytest.mark.full
def test_the_survey_is_true() -> None:
    for seeds in RANGES:
        measured = {seed: measure_length(task_id(SMALL, seed)) == 4 for seed in seeds[::7]}
        assert measured == {seed: shipped_length(SMALL, seed) == 4 for seed in seeds[::7]}


def test_seeds_of_another_level_are_found_on_demand_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    level = Level(1, 2, 2)
    seeds = list(full_length_seeds(level, 50001, 3))[:3]
    monkeypatch.setattr(backend, "make_game", None)
    assert all(walkthrough_lengths(level, seeds)[seed] == 2 for seed in seeds)


def test_a_level_without_full_length_games_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "turngym.envs.textworld.lengths.walkthrough_lengths", lambda level, seeds: dict.fromkeys(seeds, 1)
    )
    with pytest.raises(ConfigError, match="w3-o3-q9"):
        full_length_seeds(Level(3, 3, 9), 50001, 2)


def test_ids_and_levels_are_read_back() -> None:
    assert parse_task("custom/w2-o3-q4/0") == (SMALL, 0)
    assert parse_level("w12-o3-q4").name == "w12-o3-q4"
    with pytest.raises(TaskError, match="no level"):
        parse_task("custom/w2/17")
