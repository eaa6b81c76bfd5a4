"""The written page: where it goes, what it never replaces, and that it needs nothing from elsewhere."""

import base64
import hashlib
import inspect
import re
from collections.abc import Callable
from pathlib import Path

import pytest

import turngym
from turngym import cli
from turngym.agents.tiny import build_tokenizer
from turngym.episode_file import write_episodes
from turngym.errors import CheckpointError, ConfigError, FileFormatError
from turngym.types import Episode, Segment
from turngym.viewer import build
from turngym.viewer.view import DEFAULT_LIMIT, view

MakeEpisode = Callable[..., Episode]


@pytest.fixture
def file(tmp_path: Path, make_episode: MakeEpisode) -> Path:
    """A file of three episodes."""
    path = tmp_path / "episodes.jsonl"
    write_episodes(path, [make_episode(number) for number in range(3)])
    return path


def test_the_page_stands_beside_the_file(file: Path) -> None:
    assert view(file) == file.with_suffix(".html")
    assert [path.name for path in sorted(file.parent.iterdir())] == ["episodes.html", "episodes.jsonl"]


def test_the_page_goes_where_it_is_asked_and_replaces_an_older_one(file: Path) -> None:
    out = file.parent / "new" / "page.html"
    assert view([file, file], out=out) == out
    first = out.read_text(encoding="utf-8")
    assert view(str(file), out=str(out)) == out
    assert out.read_text(encoding="utf-8") != first


def test_another_file_is_never_replaced(file: Path) -> None:
    other = file.parent / "notes.html"
    other.write_text("mine", encoding="utf-8")
    with pytest.raises(ConfigError, match="is no page of turngym"):
        view(file, out=other)
    with pytest.raises(ConfigError, match="is no page of turngym"):
        view(file, out=file)
    with pytest.raises(ConfigError, match="is a folder"):
        view(file, out=file.parent)
    assert other.read_text(encoding="utf-8") == "mine"


def test_a_page_that_fails_leaves_the_old_one(file: Path) -> None:
    page = view(file)
    old = page.read_bytes()
    with file.open("a", encoding="utf-8") as more:
        more.write("{}\n")
    with pytest.raises(FileFormatError, match="line 4"):
        view(file)
    assert page.read_bytes() == old
    assert len(list(file.parent.iterdir())) == 2


def test_episodes_in_hand_need_a_name_for_their_page(tmp_path: Path, make_episode: MakeEpisode) -> None:
    with pytest.raises(ConfigError, match=r"out='episodes\.html'"):
        view([make_episode()])
    assert view([make_episode()], out=tmp_path / "page.html").is_file()
    with pytest.raises(ConfigError, match="no episodes to show"):
        view([], out=tmp_path / "page.html")


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(FileFormatError, match="Cannot read .*none.jsonl"):
        view(tmp_path / "none.jsonl")


def test_the_page_holds_all_it_needs(file: Path) -> None:
    text = view(file).read_text(encoding="utf-8")
    assert re.findall(r"(?:src|href|url)\s*[=(]\s*[\"']?(?!#|data:,)[^\"'\s)]+", text) == []
    assert "http:" not in text and "https:" not in text and "@import" not in text
    assert text.count("<script") == text.count("</script>")


def test_only_the_page_s_own_script_and_style_may_run(file: Path) -> None:
    text = view(file).read_text(encoding="utf-8")
    policy = re.findall(r'Security-Policy" content="([^"]+)"', text)[0]
    assert policy.startswith("default-src 'none';") and "unsafe" not in policy
    for kind, pattern in (
        ("style", r"<style>(.*?)</style>"),
        ("script", r'<script type="module">(.*?)</script>'),
    ):
        (part,) = re.findall(pattern, text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(part.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}'" in policy


def test_a_page_too_long_for_browsers_is_refused_with_a_limit(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build, "MAX_CHARS", 10)
    monkeypatch.setattr("turngym.viewer.columns.CHUNK_CHARS", 10)
    with pytest.raises(ConfigError, match=r"Show fewer: --limit 1"):
        view(file)


def test_a_wrong_tokenizer_is_refused(
    tmp_path: Path, make_episode: MakeEpisode, segment: Segment, tokenizer_folder: Path
) -> None:
    episodes = [make_episode(segments=(segment,))]
    build_tokenizer(("many", "other", "words", "of", "another", "game", *"pqr")).save_pretrained(
        tmp_path / "x"
    )
    with pytest.raises(ConfigError, match="is not that of the episodes"):
        view(episodes, out=tmp_path / "page.html", tokenizer=tmp_path / "x")
    with pytest.raises(CheckpointError, match="holds no tokenizer.json"):
        view(episodes, out=tmp_path / "page.html", tokenizer=tmp_path)
    assert view(episodes, out=tmp_path / "page.html", tokenizer=tokenizer_folder).is_file()
    # Episodes without tokens have nothing that the tokenizer could be wrong about.
    assert view([make_episode()], out=tmp_path / "page.html", tokenizer=tmp_path / "x").is_file()


def test_the_same_limit_stands_everywhere() -> None:
    for function in (turngym.view, cli.view):
        assert inspect.signature(function).parameters["limit"].default == DEFAULT_LIMIT
    text = (Path(__file__).parents[2] / "docs" / "how-to" / "look-at-episodes.md").read_text(encoding="utf-8")
    assert f"at most {DEFAULT_LIMIT:,} episodes" in text
    assert f"more than {build.MAX_CHARS // 1_000_000} MB" in text


def test_the_browser_is_opened_only_when_asked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", opened.append)
    view(file)
    assert opened == []
    page = view(file, show=True)
    assert opened == [page.resolve().as_uri()]
