"""Games: those of `tw-make`, kept whole in the cache, whatever two processes do at once."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import textworld
from textworld.generator import CouldNotCompileGameError

from turngym.envs.textworld import backend
from turngym.envs.textworld.families.custom import CustomLevel
from turngym.envs.textworld.games import game_path, load_card, load_game, prepare
from turngym.envs.textworld.levels import task_id
from turngym.envs.textworld.paraphrases import revealed
from turngym.errors import InfraError, TaskError

pytestmark = pytest.mark.textworld

SMALL = CustomLevel(2, 3, 4)


def made_by_the_command(seed: int, level: CustomLevel, folder: Path) -> tuple[bytes, dict[str, object]]:
    story = folder / f"{level.name}_{seed}.z8"
    command = [sys.executable, str(Path(sys.executable).with_name("tw-make")), "custom"]
    size = ["--world-size", level.rooms, "--nb-objects", level.objects, "--quest-length", level.quest_length]
    subprocess.run(
        [*command, *map(str, size), "--seed", str(seed), "--output", str(story), "--silent"], check=True
    )
    return story.read_bytes(), json.loads(story.with_suffix(".json").read_text())


@pytest.mark.parametrize("seed", [8])  # two quests: the library's own defaults give another game
def test_our_game_is_the_commands_game(seed: int, tmp_path: Path) -> None:
    story, game = made_by_the_command(seed, SMALL, tmp_path)
    ours = load_game(SMALL, seed)
    assert ours.story == story
    assert json.loads(json.dumps(ours.game)) == game  # the uuid is made of the options, so it is equal, too
    assert ours.card.num_quests == 2


OBJECTIVE = (
    "from turngym.envs.textworld import backend; from turngym.envs.textworld.levels import parse_task;"
    "print(backend.generate(*parse_task('custom/w2-o3-q4/8')).objective)"
)


def test_the_working_directory_changes_no_game(tmp_path: Path) -> None:
    package = Path(textworld.__file__).parent / "generator" / "data"
    (tmp_path / "other").mkdir()
    for part in ("logic", "text_grammars"):
        shutil.copytree(package / part, tmp_path / "other" / "textworld_data" / part)
    grammar = tmp_path / "other" / "textworld_data" / "text_grammars" / "house_instruction.twg"
    text = grammar.read_text(encoding="utf-8")
    assert "the" in text
    grammar.write_text(text.replace("the", "thy"), encoding="utf-8")
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    objectives = [
        subprocess.run([sys.executable, "-c", OBJECTIVE], cwd=cwd, env=environ, capture_output=True, check=True).stdout
        for cwd in (tmp_path, tmp_path / "other")
    ]  # fmt: skip
    assert objectives[0] == objectives[1] != b""


@pytest.mark.full
@pytest.mark.parametrize("seed", [1, 2, 3, 4, 30001])
def test_our_games_are_the_commands_games(seed: int, tmp_path: Path) -> None:
    for level in (SMALL, CustomLevel(4, 6, 8)):
        story, game = made_by_the_command(seed, level, tmp_path)
        ours = load_game(level, seed)
        assert ours.story == story and json.loads(json.dumps(ours.game)) == game


def test_the_card_names_the_games_things() -> None:
    card = load_card(SMALL, 1)
    assert dict(zip(card.names, card.types, strict=True)) == {
        "studio": "r", "spare room": "r", "type j chest": "c", "case": "c",
        "quote of the day calendar": "o", "type j keycard": "k",
    }  # fmt: skip
    assert len(card.walkthrough) == 4 and card.walkthrough[0] == "take type j keycard from case"


def test_paraphrases_differ_and_reveal_the_same() -> None:
    card = load_card(SMALL, 1)
    assert len(card.reworded) == 12 == len(set(card.reworded) - {card.objective})
    for text in card.reworded:
        assert revealed(text, card.names) == revealed(card.objective, card.names)
    assert revealed("go east with the type j keycard", card.names) == {
        "<type j keycard>",
        "type",
        "j",
        "keycard",
        "east",
    }


def test_prepare_makes_what_is_missing_and_no_more() -> None:
    tasks = [task_id(SMALL, seed) for seed in (40001, 40002)]
    assert prepare([*tasks, tasks[0]], processes=2, progress=False) == 2
    stamps = [game_path(SMALL, seed).stat().st_mtime_ns for seed in (40001, 40002)]
    assert prepare(tasks, processes=2, progress=False) == 0
    assert stamps == [game_path(SMALL, seed).stat().st_mtime_ns for seed in (40001, 40002)]
    with pytest.raises(TaskError):
        prepare(["custom/17"])


def test_two_processes_may_make_the_same_game_at_once() -> None:
    code = (
        "import hashlib; from turngym.envs.textworld.games import load_game\n"
        "from turngym.envs.textworld.families.custom import CustomLevel\n"
        "print(hashlib.sha256(load_game(CustomLevel(2, 3, 4), 40003).story).hexdigest())"
    )
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    both = [
        subprocess.Popen([sys.executable, "-c", code], env=environ, stdout=subprocess.PIPE, text=True)
        for _ in "ab"
    ]
    printed = [process.communicate()[0] for process in both]
    assert printed[0] == printed[1] and len(printed[0]) == 65
    left = [path.name for path in game_path(SMALL, 40003).parent.iterdir() if path.name.startswith(".")]
    assert left == []
    load_game(SMALL, 40003)


@pytest.mark.parametrize("part", ["card.json", "story.z8"])
def test_a_damaged_file_is_reported_once_and_made_again(
    part: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = load_game(SMALL, 1)
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    monkeypatch.setattr("turngym.envs.textworld.games.make_stored_game", lambda level, seed: stored)
    path = game_path(SMALL, 1)
    load_game(SMALL, 1)
    whole = path.read_bytes()
    for _ in range(2):
        data = bytearray(whole)
        data[whole.index(part.encode()) + len(part) + 500] ^= 0xFF
        path.write_bytes(data)
        assert load_game(SMALL, 1) == stored
        assert path.read_bytes() == whole
    data = bytearray(whole)
    data[-3] = 0x7F  # where the table of contents lies: beyond the file
    path.write_bytes(data)
    assert load_game(SMALL, 1) == stored
    path.write_bytes(whole[:1000])
    assert prepare([task_id(SMALL, 1)], processes=1, progress=False) == 1
    assert path.read_bytes() == whole
    assert [record.message.count("is damaged") for record in caplog.records] == [1]


def test_a_seed_at_which_textworld_fails_is_a_task_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(options: object) -> None:
        raise ValueError(
            "Not enough variation for '#storage_(s)#'. You can add more variation in the files of ..."
        )

    monkeypatch.setattr(backend, "make_game", fail)
    with pytest.raises(
        TaskError, match=r"custom/w2-o3-q4 with seed 1: Not enough variation .*\. Take another seed"
    ):
        backend.generate(SMALL, 1)


def test_a_failed_compile_and_a_full_disk_are_infra_errors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    stored = load_game(SMALL, 1)
    monkeypatch.setattr("turngym.envs.textworld.games.make_stored_game", lambda level, seed: stored)
    (tmp_path / "file").write_text("")
    with monkeypatch.context() as patch:
        patch.setenv("TURNGYM_CACHE", str(tmp_path / "file"))
        with pytest.raises(InfraError, match="TURNGYM_CACHE"):
            load_game(SMALL, 1)
    game = backend.generate(SMALL, 1)
    monkeypatch.setenv("INFORM_HOME", str(tmp_path))
    with pytest.raises(InfraError, match="Inform could not be run"):
        backend.compile_story(game)


def test_a_compile_without_room_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(game: object, options: object) -> None:
        raise CouldNotCompileGameError("inform6 died")

    monkeypatch.setattr(backend, "compile_game", fail)
    with pytest.raises(InfraError, match="inform6 died"):
        backend.compile_story(None)
    monkeypatch.setattr("shutil.disk_usage", lambda path: SimpleNamespace(free=1_000_000))
    with pytest.raises(InfraError, match=r"has 1 MB left\. Free that disk, or set TMPDIR"):
        backend.compile_story(None)
