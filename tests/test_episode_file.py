"""Episodes on disk: what is written is read back, and damage is named or counted."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.episode_file import EpisodeFile, EpisodeWriter, read_episodes, write_episodes
from turngym.errors import FileFormatError
from turngym.types import Episode, PlayedTurn, Segment, Span


def episode(
    number: int = 0, *, log_probs: Iterable[float] = (0.0, -0.5, -1.25), num_turns: int = 1, **more: Any
) -> Episode:
    played = tuple(
        PlayedTurn("go north", "A wall.\r\n", 0.1 + turn, 0.5, True, "policy", "hm", "stop", 0.001)
        for turn in range(num_turns)
    )
    log_probs = tuple(log_probs)
    ids = tuple(range(5, 5 + len(log_probs)))
    spans = (Span(0, 1, -1, "template"), Span(1, len(ids), 0, "policy"))
    values: dict[str, Any] = {
        "number": number,
        "group": number // 2,
        "env_id": "turngym/Rooms-v0",
        "env_kwargs": {"level": "w2", "limit": None},
        "task": "w2/7",
        "seed": 2**62 + 1,
        "attempt": 0,
        "agent": "policy",
        "instructions": "Find the key.",
        "observation": "A room. \u2028 é \x0b 'quoted' \"twice\"",
        "turns": played,
        "outcome": "lost",
        "score": 0.5,
        "max_score": 1.0,
        "start_key": "ab12",
        "segments": (Segment(ids, log_probs, spans),),
        "weights_version": 3,
        "error": "",
    }
    return Episode(**(values | more))


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "new" / "folder" / "episodes.jsonl"
    episodes = [episode(0), episode(1, num_turns=0, segments=(), outcome="env_fault", error="Boom: x")]
    with EpisodeWriter(path) as writer:
        for one in episodes:
            writer.write(one)
    assert read_episodes(path) == episodes


FLOAT32 = st.floats(width=32, allow_nan=False, allow_infinity=False, max_value=0.0)
TEXT = st.text(st.characters(codec="utf-8"), max_size=8)


@given(log_probs=st.lists(FLOAT32, min_size=1, max_size=4), observation=TEXT, command=TEXT)
def test_log_probs_come_back_to_the_last_bit_of_a_float32(
    tmp_path_factory: pytest.TempPathFactory, log_probs: list[float], observation: str, command: str
) -> None:
    path = tmp_path_factory.mktemp("episodes") / "e.jsonl"
    turn = PlayedTurn(command, observation, 0.1 + 0.2, 1 / 3, False, "noise")
    written = episode(log_probs=log_probs, observation=observation, turns=(turn,))
    write_episodes(path, [written])
    [read] = read_episodes(path)
    got = np.array(read.segments[0].log_probs, dtype=np.float32)
    assert got.tobytes() == np.array(log_probs, dtype=np.float32).tobytes()
    assert (read.turns, read.observation) == (written.turns, observation)


def test_every_line_has_the_same_columns_of_the_same_kinds(tmp_path: Path) -> None:
    # What `datasets.load_dataset("json")` needs: free-form values are text, and no column comes or goes.
    path = tmp_path / "e.jsonl"
    with EpisodeWriter(path) as writer:
        for one in (
            episode(0),
            episode(1, num_turns=0, segments=(), env_kwargs={}),
            episode(2, env_kwargs={"a": [1]}),
        ):
            writer.write(one)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").split("\n")[:-1]]
    assert len(lines) == 3
    assert {tuple(line) for line in lines} == {tuple(lines[0])}
    assert all(
        {key: type(line[key]) for key in line} == {key: type(lines[0][key]) for key in line} for line in lines
    )
    assert [line["format"] for line in lines] == [1, 1, 1]
    assert [json.loads(line["env_kwargs"]) for line in lines] == [
        {"level": "w2", "limit": None},
        {},
        {"a": [1]},
    ]
    assert lines[0]["segments"][0]["spans"] == [[0, 1, -1, "template"], [1, 3, 0, "policy"]]


def test_a_half_written_last_line_is_dropped_and_counted(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode(0), episode(1)])
    whole = path.read_bytes()
    path.write_bytes(whole[:-20])
    file = EpisodeFile(path)
    for _ in range(2):
        assert [one.number for one in file] == [0]
        assert file.half_lines == 1
    with EpisodeWriter(path) as writer:
        writer.write(episode(1))
    assert path.read_bytes() == whole
    assert list(file) == read_episodes(path)
    assert file.half_lines == 0


def test_a_file_that_is_only_half_a_line_is_empty(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    path.write_bytes(b'{"format": 1')
    assert read_episodes(path) == []
    with EpisodeWriter(path) as writer:
        writer.write(episode(4))
    assert [one.number for one in read_episodes(path)] == [4]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"outcome": "winning"}, "outcome"),
        ({"turns": 3}, "turns"),
        ({"score": "high"}, "score"),
        ({"number": True}, "number"),
        ({"more": 1}, "more"),
        ({"env_kwargs": "{"}, "env_kwargs"),
    ],
)
def test_a_damaged_line_is_named_by_file_line_and_field(
    tmp_path: Path, change: dict[str, Any], named: str
) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode(0), episode(1), episode(2)])
    lines = path.read_text(encoding="utf-8").split("\n")
    lines[1] = json.dumps(json.loads(lines[1]) | change)
    path.write_text("\n".join(lines), encoding="utf-8")
    with pytest.raises(FileFormatError) as caught:
        read_episodes(path)
    text = str(caught.value)
    assert text.startswith(f"{path} line 2: ") and named in text and text.endswith("the file.")


@pytest.mark.parametrize("line", ["", "{", "[]", "7", '"text"', '{"format": 1}'])
def test_a_line_that_is_no_episode_is_an_error(tmp_path: Path, line: str) -> None:
    path = tmp_path / "e.jsonl"
    path.write_text(f"{line}\n", encoding="utf-8")
    with pytest.raises(FileFormatError, match="line 1: "):
        read_episodes(path)


@pytest.mark.parametrize("more", [{}, {"columns_of_tomorrow": 1}])
def test_a_foreign_format_is_named_before_its_fields(tmp_path: Path, more: dict[str, Any]) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode()])
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"format": 2} | more) + "\n")
    with pytest.raises(
        FileFormatError, match=r"line 1: format 2 is not 1\. Use the turngym version that wrote it\."
    ):
        read_episodes(path)


def test_a_text_that_is_no_unicode_does_not_stop_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode(observation="half \ud83d of a pair")])
    assert read_episodes(path)[0].observation == "half ? of a pair"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="Cannot read .*none.jsonl: No such file"):
        read_episodes(tmp_path / "none.jsonl")


def test_a_new_file_appears_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "e.jsonl"
    write_episodes(path, [episode(0)])

    def breaks() -> Iterable[Episode]:
        yield episode(1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_episodes(path, breaks())
    assert [one.number for one in read_episodes(path)] == [0]
    write_episodes(path, [episode(2)])
    assert [one.number for one in read_episodes(path)] == [2]


def test_only_asked_lines_are_read(tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [episode(0), episode(1), episode(2)])
    path.write_bytes(b"damaged\n" + path.read_bytes())
    file = EpisodeFile(path, lines={2, 4, 9})
    assert [one.number for one in file] == [0, 2]


@pytest.mark.parametrize(("tail", "half_lines"), [(b"", 0), (b'{"form', 1), (b"no episode\n", 0)])
def test_lines_are_counted_without_being_read(tail: bytes, half_lines: int, tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [episode(0), episode(1)])
    path.write_bytes(path.read_bytes() + tail)
    file = EpisodeFile(path)
    assert (file.count(), file.half_lines) == (2 + tail.endswith(b"\n"), half_lines)
    path.write_bytes(b"")
    assert (file.count(), file.half_lines) == (0, 0)
    with pytest.raises(FileFormatError, match="Cannot read"):
        EpisodeFile(tmp_path / "none.jsonl").count()


def test_a_person_s_turns_are_read_back(tmp_path: Path) -> None:
    typed = PlayedTurn("look", "A wall.", 0.0, 0.0, True, "human")
    write_episodes(tmp_path / "mine.jsonl", [episode(turns=(typed,), outcome="running", agent="human")])
    (read,) = read_episodes(tmp_path / "mine.jsonl")
    assert (read.turns, read.outcome, read.success) == ((typed,), "running", False)
