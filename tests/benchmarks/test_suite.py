"""Suites, their panels and hashes."""

import hashlib
from pathlib import Path
from typing import Any

import gymnasium
import pytest

from turngym.benchmarks.suite import (
    MixedPanel,
    Panel,
    Suite,
    TaskChoice,
    load_suite,
    panel_of,
    suite_names,
    suite_text,
)
from turngym.envs.pool import EnvRef
from turngym.errors import ConfigError, TaskError, UnknownNameError

RANGE: dict[str, Any] = {"prefix": "t/", "start": 1, "count": 3}


def suite(**changes: Any) -> Suite:
    """A small suite with some settings changed."""
    return Suite.model_validate({"name": "small", "env": "toy", "tasks": RANGE, **changes})


def test_every_bundled_suite_loads_under_its_own_name() -> None:
    assert {"rooms-easy", "rooms-hard", "textworld-w2o3q4", "textworld-w2o3q4-wide"} <= {*suite_names()}
    for name in suite_names():
        loaded = load_suite(name)
        assert loaded.name == name
        assert loaded.description
        assert all(part.env in gymnasium.registry for part in loaded.environments)


def test_textworld_panels_need_no_textworld() -> None:
    panel = panel_of(load_suite("textworld-w2o3q4"))
    assert (len(panel.tasks), panel.tasks[0], panel.tasks[-1]) == (
        100,
        "custom/w2-o3-q4/1",
        "custom/w2-o3-q4/100",
    )
    wide = panel_of(load_suite("textworld-w2o3q4-wide"))
    assert (len(wide.tasks), wide.tasks[0], wide.tasks[-1]) == (
        250,
        "custom/w2-o3-q4/30001",
        "custom/w2-o3-q4/30250",
    )


def test_panels_of_bundled_suites_do_not_move() -> None:
    # A changed hash is a changed benchmark: give it a new name instead.
    assert panel_of(load_suite("textworld-w2o3q4")).hash == "28f1aa601ca8c02a"
    assert panel_of(load_suite("textworld-w2o3q4-wide")).hash == "ca1502e7b5fdf6d9"
    assert panel_of(load_suite("textworld-w4o6q8")).hash == "99c81e9743e0ee08"
    assert panel_of(load_suite("textworld-w4o6q8-wide")).hash == "e7e1e4191aebc562"
    assert panel_of(load_suite("textworld-w2o3q4-last")).hash == "e26eb5ddd1b23cfa"
    assert panel_of(load_suite("textworld-w8o12q12")).hash == "d126dd392568fc78"
    assert panel_of(load_suite("textworld-coin")).hash == "d9b96147af9af724"
    assert panel_of(load_suite("textworld-cooking")).hash == "e8a92bdb4b21a285"
    assert panel_of(load_suite("textworld-mix")).hash == "d4702f777cebc5b7"
    assert panel_of(load_suite("textworld-simple")).hash == "f33a2440e4fc1a4c"
    assert panel_of(load_suite("textworld-treasure")).hash == "9481560890f7d81e"


def test_panel_hash_is_sha256_of_canonical_json() -> None:
    panel = Panel("any", EnvRef("ns/E-v0", {"b": 1, "a": "x"}), ("t/1", "t/2"), 4)
    text = '{"env":"ns/E-v0","kwargs":{"a":"x","b":1},"tasks":["t/1","t/2"]}'
    assert panel.hash == hashlib.sha256(text.encode()).hexdigest()[:16]


def test_panel_hash_tells_tasks_arguments_and_environments_apart_but_not_names() -> None:
    base = panel_of(suite())
    others = [suite(env="toy2"), suite(kwargs={"level": 1}), suite(tasks={**RANGE, "count": 2})]
    assert base.hash not in {panel_of(one).hash for one in others}
    assert panel_of(suite(name="other", repeats=9, description="words")).hash == base.hash


def test_a_suite_is_found_by_path_and_can_be_copied_out(tmp_path: Path) -> None:
    copy = tmp_path / "mine.yaml"
    copy.write_text(suite_text("rooms-easy").replace("count: 200", "count: 7"))
    assert load_suite(copy).tasks == TaskChoice(split="test", start=0, count=7)
    assert load_suite(str(copy)) == load_suite(copy)


def test_an_unknown_suite_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match=r"No suite 'room-easy'\. Did you mean 'rooms-easy'\?"):
        load_suite("room-easy")
    with pytest.raises(ConfigError, match="Cannot read"):
        load_suite("no/such.yaml")


def test_a_mistyped_key_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(suite_text("rooms-easy").replace("repeats", "repeat"))
    with pytest.raises(ConfigError, match=r"repeat is not a setting\. Did you mean 'repeats'\?"):
        load_suite(path)


@pytest.mark.parametrize(
    ("tasks", "message"),
    [
        ({}, "exactly one of split, prefix or ids"),
        ({"split": "test", "prefix": "t/", "count": 1}, "exactly one"),
        ({"prefix": "t/"}, "set count"),
        ({"ids": ["a"], "start": 1}, "as listed"),
        ({"split": "test", "count": True}, "boolean"),
        ({"split": "tests"}, "split"),
    ],
)
def test_wrong_choices_of_tasks_are_refused(tasks: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        suite(tasks=tasks)


def test_listed_ids_are_played_as_listed_and_once() -> None:
    assert panel_of(suite(tasks={"ids": ["b", "a"]})).tasks == ("b", "a")
    with pytest.raises(ConfigError, match="task 'a' stands twice. List"):
        panel_of(suite(tasks={"ids": ["a", "a"]}))
    with pytest.raises(ConfigError, match="no task"):
        panel_of(suite(tasks={"ids": []}))


def test_a_split_is_cut_by_start_and_count(toy_id: str) -> None:
    assert panel_of(suite(env=toy_id, tasks={"split": "test", "start": 1, "count": 2})).tasks == ("t7", "t8")
    assert panel_of(suite(env=toy_id, tasks={"split": "test"})).tasks == ("t6", "t7", "t8", "t9")
    with pytest.raises(TaskError, match=r"tasks 1 to 4 of 'test', which has 4\. Lower start or count"):
        panel_of(suite(env=toy_id, tasks={"split": "test", "start": 1, "count": 4}))


PARTS: list[dict[str, Any]] = [
    {"name": "one", "env": "toy", "tasks": RANGE},
    {"name": "two", "env": "toy", "kwargs": {"level": 2}, "tasks": {"ids": ["b", "a"]}},
]


def test_a_suite_of_several_environments_has_their_tasks_one_after_another() -> None:
    panel = panel_of(Suite.model_validate({"name": "mix", "parts": PARTS, "repeats": 2}))
    assert isinstance(panel, MixedPanel)
    assert panel.tasks == ("t/1", "t/2", "t/3", "b", "a")
    assert [(part.suite, part.env.kwargs, part.repeats) for part in panel.parts] == [
        ("one", {}, 2),
        ("two", {"level": 2}, 2),
    ]
    text = (
        '{"parts":[{"env":"toy","kwargs":{},"tasks":["t/1","t/2","t/3"]},'
        '{"env":"toy","kwargs":{"level":2},"tasks":["b","a"]}]}'
    )
    assert panel.hash == hashlib.sha256(text.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parts": PARTS, "env": "toy"}, "give the one or the others"),
        ({"parts": PARTS, "tasks": RANGE}, "give the one or the others"),
        ({}, "name env and tasks, or parts"),
        ({"env": "toy"}, "name env and tasks, or parts"),
        ({"parts": [PARTS[0], PARTS[0]]}, "give each a name of its own"),
        ({"parts": [{"name": "one", "env": "toy"}]}, "tasks"),
    ],
)
def test_a_suite_has_one_environment_or_parts(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Suite.model_validate({"name": "mix", **changes})


def test_a_task_stands_once_in_all_parts() -> None:
    parts = [PARTS[0], {**PARTS[0], "name": "two", "kwargs": {"level": 2}}]
    with pytest.raises(ConfigError, match="Suite 'mix': task 't/1' stands twice, in 'one' and in 'two'"):
        panel_of(Suite.model_validate({"name": "mix", "parts": parts}))


def test_bundled_textworld_suites_are_of_the_size_they_say() -> None:
    sizes = {name: len(panel_of(load_suite(name)).tasks) for name in suite_names() if "textworld" in name}
    assert sizes == {
        "textworld-coin": 100,
        "textworld-cooking": 100,
        "textworld-mix": 100,
        "textworld-simple": 100,
        "textworld-treasure": 100,
        "textworld-w2o3q4": 100,
        "textworld-w2o3q4-last": 100,
        "textworld-w2o3q4-wide": 250,
        "textworld-w4o6q8": 100,
        "textworld-w4o6q8-wide": 250,
        "textworld-w8o12q12": 100,
    }


def test_the_hard_rooms_have_the_large_vocabulary() -> None:
    assert load_suite("rooms-hard").kwargs["vocabulary"] == "large"
