"""Which episodes of a file go on a page, and what is said of files that hold none."""

from collections.abc import Callable
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from turngym.episode_file import write_episodes
from turngym.errors import ConfigError, FileFormatError
from turngym.types import Episode
from turngym.viewer.sources import Keep, chosen_lines, file_source, hand_source


@pytest.mark.parametrize(
    ("keep", "lines"),
    [("newest", [8, 9, 10]), ("first", [1, 2, 3]), ("even", [1, 5, 10])],
)
def test_lines_are_chosen_as_asked(keep: Keep, lines: list[int]) -> None:
    assert list(chosen_lines(10, limit=3, keep=keep)) == lines


@given(st.integers(1, 500), st.integers(1, 500), st.sampled_from(get_args(Keep)))
def test_as_many_lines_as_allowed_each_once_and_rising(count: int, limit: int, keep: Keep) -> None:
    lines = list(chosen_lines(count, limit=limit, keep=keep))
    assert len(lines) == min(count, limit)
    assert lines == sorted(set(lines))
    assert lines[0] >= 1 and lines[-1] <= count


def test_a_wrong_choice_is_told() -> None:
    with pytest.raises(ConfigError, match="limit = 0"):
        chosen_lines(5, limit=0, keep="newest")
    with pytest.raises(ConfigError, match="keep = 'last' is not known. Choose newest, first or even"):
        chosen_lines(5, limit=1, keep="last")  # type: ignore[arg-type]


def test_only_the_chosen_lines_are_read(tmp_path: Path, make_episode: Callable[..., Episode]) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [make_episode(number) for number in range(4)])
    # The first line is damaged; nobody who asks for the newest two is bothered by it.
    path.write_bytes(b"{}\n" + path.read_bytes().partition(b"\n")[2])
    source = file_source(path, limit=2, keep="newest")
    assert [episode.number for episode in source.read()] == [2, 3]
    assert (source.num_episodes, list(source.lines)) == (4, [3, 4])
    with pytest.raises(FileFormatError, match="line 1"):
        list(file_source(path, limit=4, keep="newest").read())


def test_what_is_appended_later_is_not_on_the_page(
    tmp_path: Path, make_episode: Callable[..., Episode]
) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [make_episode(0)])
    source = file_source(path, limit=9, keep="newest")
    write_episodes(path, [make_episode(number) for number in range(3)])
    assert [episode.number for episode in source.read()] == [0]


def test_a_half_written_line_is_counted(tmp_path: Path, make_episode: Callable[..., Episode]) -> None:
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [make_episode(0)])
    with path.open("a", encoding="utf-8") as file:
        file.write('{"format":1,"num')
    source = file_source(path, limit=9, keep="newest")
    assert (source.num_episodes, source.half_lines, len(list(source.read()))) == (1, 1, 1)


@pytest.mark.parametrize(
    ("content", "needle"), [(b"", "holds nothing"), (b'{"format', "holds only a half-written line")]
)
def test_a_file_without_episodes_is_told(content: bytes, needle: str, tmp_path: Path) -> None:
    path = tmp_path / "episodes.jsonl"
    path.write_bytes(content)
    with pytest.raises(FileFormatError, match=needle):
        file_source(path, limit=9, keep="newest")


def test_a_folder_is_told_with_its_episode_files(tmp_path: Path) -> None:
    for name in ("rl/episodes.jsonl", "sft/demos.jsonl", "metrics.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    with pytest.raises(FileFormatError, match=r"is a folder\. Give one of.*episodes\.jsonl.*demos\.jsonl$"):
        file_source(tmp_path, limit=9, keep="newest")
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileFormatError, match=r"is a folder\. Give a file of episodes\."):
        file_source(tmp_path / "empty", limit=9, keep="newest")


def test_episodes_in_hand_are_chosen_alike(make_episode: Callable[..., Episode]) -> None:
    source = hand_source([make_episode(number) for number in range(5)], limit=2, keep="newest")
    assert [episode.number for episode in source.read()] == [3, 4]
    with pytest.raises(ConfigError, match="no episodes"):
        hand_source([], limit=2, keep="newest")
