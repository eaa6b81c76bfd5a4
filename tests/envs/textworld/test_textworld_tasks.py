"""Splits: disjoint, lazy, of full length, and the shipped survey is true."""

import json
from collections.abc import Iterator, Sequence
from itertools import combinations, pairwise
from pathlib import Path

import pytest

from turngym.envs.textworld import backend
from turngym.envs.textworld.families.base import Level
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.lengths import (
    BLOCK,
    full_length_seeds,
    measure_length,
    seeds_in_blocks,
    walkthrough_lengths,
)
from turngym.envs.textworld.levels import FAMILIES, parse_level, parse_task, task_id
from turngym.envs.textworld.survey import extend_table, full_share
from turngym.envs.textworld.survey_table import TABLE_NAME, num_surveyed, read_table, shipped_length
from turngym.envs.textworld.tasks import FoundGames, splits_of
from turngym.errors import ConfigError, InfraError, TaskError
from turngym.types import TaskRange

pytestmark = pytest.mark.textworld

SMALL, LARGE = CustomLevel(2, 3, 4), CustomLevel(4, 6, 8)


@pytest.fixture
def no_games(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Making any game fails."""
    monkeypatch.setattr(backend, "make_game", None)
    monkeypatch.setattr(backend, "make_challenge", None)
    yield


@pytest.fixture
def odd_lengths(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Pretends that odd seeds give full walkthroughs of 4, and multiples of four no game; the list holds what was asked."""
    asked: list[int] = []

    def lengths(level: Level, seeds: Sequence[int]) -> dict[int, int]:
        asked.extend(seeds)
        return {seed: 4 if seed % 2 else 2 * (seed % 4 > 0) for seed in seeds}

    monkeypatch.setattr("turngym.envs.textworld.lengths.walkthrough_lengths", lengths)
    monkeypatch.setattr("turngym.envs.textworld.survey.walkthrough_lengths", lengths)
    return asked


@pytest.mark.parametrize("level", [SMALL, LARGE])
@pytest.mark.usefixtures("no_games")
def test_splits_are_disjoint_and_need_no_game(level: CustomLevel) -> None:
    splits = splits_of(level)
    tasks = {name: list(split) for name, split in splits.items()}
    train = len(tasks["train"])
    assert 1000 <= train <= 4000 and train % 100 == 0
    assert (len(tasks["validation"]), len(tasks["test"])) == (90, 350)
    assert len(set().union(*tasks.values())) == train + 440
    assert tasks["test"][0] == task_id(level, 1) and tasks["test"][100] == task_id(level, 30001)
    for name, first, last in (("train", 50001, 55000), ("validation", 20001, 20100)):
        seeds = [parse_task(task)[1] for task in tasks[name]]
        assert all(low < high for low, high in pairwise(seeds)) and first <= seeds[0] and seeds[-1] <= last
    assert splits["train"][-1] == tasks["train"][-1] and splits["train"][2:4] == tuple(tasks["train"][2:4])
    assert tasks["train"][999] == task_id(level, {SMALL: 51082, LARGE: 51047}[level])  # never moves
    with pytest.raises(IndexError):
        splits["train"][train]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.usefixtures("no_games")
def test_every_family_has_three_splits_apart(family: str) -> None:
    level = parse_level(family, FAMILIES[family].example)
    splits = splits_of(level)
    assert set(splits) == {"train", "validation", "test"} and len(splits["test"]) == 350
    ranges = {name: _ranges(split) for name, split in splits.items()}
    for one, other in combinations(ranges.values(), 2):
        assert not any(task in theirs for mine in one for theirs in other for task in (mine[0], mine[-1]))
    if not level.filtered:
        assert (len(splits["train"]), splits["train"][0]) == (4000, task_id(level, 50001))
        assert list(splits["test"])[99:101] == [task_id(level, 100), task_id(level, 30001)]


def _ranges(split: Sequence[str]) -> tuple[TaskRange, ...]:
    if isinstance(split, TaskRange):
        return (split,)
    if isinstance(split, FoundGames):
        return split.covers()
    level, _ = parse_task(split[0])
    prefix = task_id(level, 0).removesuffix("0")
    seeds = [parse_task(task)[1] for task in split]
    return tuple(TaskRange(prefix, range(seed, seed + 1)) for seed in seeds)


def test_a_place_of_an_unsurveyed_level_is_found_without_those_before_it(odd_lengths: list[int]) -> None:
    level = CustomLevel(3, 3, 4)
    train = splits_of(level)["train"]
    assert len(train) == 4000 and odd_lengths == []
    assert train[-1] == task_id(level, 50001 + 3999 * BLOCK)
    assert odd_lengths == [50001 + 3999 * BLOCK]
    assert train[1:3] == (task_id(level, 50001 + BLOCK), task_id(level, 50001 + 2 * BLOCK))
    assert task_id(level, 50001 + BLOCK) in train and task_id(level, 20001) not in train


def test_a_task_is_looked_up_without_most_others(odd_lengths: list[int]) -> None:
    level = CustomLevel(3, 3, 4)
    train = splits_of(level)["train"]
    last = 50001 + 3999 * BLOCK
    assert task_id(level, last) in train and task_id(level, last + 1) not in train
    assert task_id(level, 50003) not in train and "17" not in train
    assert 0 < len(odd_lengths) < 100


def test_tasks_are_listed_in_growing_pieces(odd_lengths: list[int]) -> None:
    level = CustomLevel(3, 3, 4)
    validation = splits_of(level)["validation"]
    assert next(iter(validation)) == validation[0] and len(odd_lengths) == 2
    assert tuple(validation) == validation[:] and len({*validation}) == 90


def test_a_broken_index_is_measured_again(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    monkeypatch.setattr("turngym.envs.textworld.lengths.measure_length", lambda task: 3)
    level = CustomLevel(1, 2, 3)
    path = tmp_path / "textworld" / backend.VERSION / "custom" / "w1-o2-q3" / "lengths.txt"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"1 2\n\xff\xfe 2\n3\n4 2 50\n" + b"5" * 5000 + b" 2\n6 -2\n")
    assert walkthrough_lengths(level, range(1, 7)) == {1: 2, **dict.fromkeys(range(2, 7), 3)}
    monkeypatch.setattr("turngym.envs.textworld.lengths.measure_length", None)
    assert walkthrough_lengths(level, [6]) == {1: 2, **dict.fromkeys(range(2, 7), 3)}
    path.unlink()
    path.mkdir()
    with pytest.raises(InfraError, match="cannot be read"):
        walkthrough_lengths(level, [1])


def test_the_first_game_of_a_block_counts(odd_lengths: list[int]) -> None:
    level = parse_level("treasure", "l7")  # quests of 4
    assert level.quest_length == 4
    assert seeds_in_blocks(level, [4, 32], full=True) == [5, 33]
    assert seeds_in_blocks(level, [4, 32, 6], full=False) == [5, 33, 6]
    assert splits_of(level)["test"][0] == task_id(level, 1)
    with pytest.raises(ConfigError, match="of 5 actions"):
        seeds_in_blocks(parse_level("treasure", "l10"), [1], full=True)


def test_the_survey_is_true_on_a_sample() -> None:
    ((text, short),) = [
        item for item in read_table()["levels"]["w2-o3-q4"].items() if item[0].startswith("50001-")
    ]
    last = int(text.split("-")[1])
    for seed in (short[0], short[40], 50001, last):
        assert (measure_length(task_id(SMALL, seed)) == 4) == (shipped_length(SMALL, seed) == 4), seed
    assert (
        shipped_length(SMALL, last + 1) is None
        and shipped_length(CustomLevel(2, 3, 4, last=True), 50001) is None
    )
    assert num_surveyed(SMALL, 50001) == last - 50000 - len(short)
    assert num_surveyed(CustomLevel(9, 9, 9), 50001) == num_surveyed(SMALL, 40000) == 0


@pytest.mark.full
def test_the_survey_is_true() -> None:
    for text in read_table()["levels"]["w2-o3-q4"]:
        first, last = map(int, text.split("-"))
        seeds = range(first, last + 1, 37)
        measured = {seed: measure_length(task_id(SMALL, seed)) == 4 for seed in seeds}
        assert measured == {seed: shipped_length(SMALL, seed) == 4 for seed in seeds}


def test_a_survey_adds_to_the_table_and_changes_nothing_in_it(tmp_path: Path, odd_lengths: list[int]) -> None:
    path = tmp_path / TABLE_NAME
    old = {"20001-20100": [20015], "50001-50020": [50003]}
    table = {
        "textworld": backend.VERSION,
        "levels": {"w2-o3-q4": old, "w9-o9-q9": {}},
        "words": {"k": ["key"]},
    }
    path.write_text(json.dumps(table))
    shares = extend_table(path, [SMALL], 50024)
    new = json.loads(path.read_text())
    assert new["words"] == {"k": ["key"]} and new["levels"]["w9-o9-q9"] == {}
    levels = new["levels"]["w2-o3-q4"]
    assert set(levels) == {"1-100", "20001-20100", "30001-30250", "50001-50024"}
    assert levels["20001-20100"] == [20015] and levels["50001-50024"] == [50003, 50022, 50024]
    assert odd_lengths == [*range(1, 101), *range(30001, 30251), *range(50021, 50025)]
    assert shares["w2-o3-q4"]["1-100"] == 0.5 == full_share({"1-4": [2, 4]})["1-4"]
    # A shorter range than the table has leaves it as it is.
    extend_table(path, [SMALL], 50010)
    assert json.loads(path.read_text()) == new


def test_seeds_of_another_level_are_found_on_demand_and_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    level = CustomLevel(1, 2, 2)
    seeds = list(full_length_seeds(level, 50001, 3))[:3]
    monkeypatch.setattr(backend, "make_game", None)
    assert all(walkthrough_lengths(level, seeds)[seed] == 2 for seed in seeds)


def test_objectives_of_one_action_leave_no_second_quest_untold() -> None:
    # Seed 8 has two quests.
    assert measure_length(task_id(SMALL, 8)) == 4
    assert measure_length(task_id(CustomLevel(2, 3, 4, last=True), 8)) == 0


def test_a_level_without_full_length_games_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "turngym.envs.textworld.lengths.walkthrough_lengths", lambda level, seeds: dict.fromkeys(seeds, 1)
    )
    with pytest.raises(ConfigError, match="w3-o3-q9"):
        full_length_seeds(CustomLevel(3, 3, 9), 50001, 2)
    with pytest.raises(ConfigError, match="w3-o3-q9"):
        seeds_in_blocks(CustomLevel(3, 3, 9), [50001], full=True)


def test_ids_and_levels_are_read_back() -> None:
    assert parse_task("custom/w2-o3-q4/0") == (SMALL, 0)
    for family, text in (
        ("custom", "w12-o3-q4"), ("custom", "w2-o3-q4-last"), ("coin", "l233"), ("treasure", "l30"),
        ("simple", "balanced-none"), ("cooking", "r3-t2-open-cut-cook-drop-go6"), ("cooking", "r1-t0-go12"),
    ):  # fmt: skip
        level = parse_level(family, text)
        assert level.name == text and parse_task(f"{family}/{text}/7") == (level, 7)
    with pytest.raises(TaskError, match="no level"):
        parse_task("custom/w2/17")


@pytest.mark.parametrize(
    ("family", "text", "message"),
    [
        ("custom", "w2-o3", "Write rooms, objects and quest length"),
        ("coin", "l0", "Write l1 to l150 or l201 to l233"),
        ("coin", "l301", "makes 1 to 300"),
        ("coin", "l151", "has 102 rooms"),
        ("coin", "5", "no level of 'coin'"),
        ("treasure", "l31", "makes 1 to 30"),
        ("simple", "dense", "one of dense, balanced, sparse and one of detailed, brief, none"),
        ("cooking", "r6-t1-go1", "number of ingredients, is 6"),
        ("cooking", "r2-t3-go1", "ingredients to find, is 3: TextWorld makes 0 to 2"),
        ("cooking", "r2-t1-go2", "1, 6, 9 or 12 rooms"),
        ("cooking", "r2-t1-cook-open-go1", "Write 'r2-t1-open-cook-go1'"),
        ("cooking", "r02-t1-go1", "Write 'r2-t1-go1'"),
        ("cooking", "r2-t1-cut-go9", "Add cook, or take 1 or 6 rooms"),
        ("cooking", "go1", "as in 'r3-t2-open-cut-cook-go6'"),
        ("cokking", "go1", "Did you mean 'cooking'"),
    ],
)
def test_wrong_levels_say_what_is_right(family: str, text: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_level(family, text)
