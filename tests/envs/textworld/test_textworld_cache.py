"""The cache of games: bounded, whole files only, and clear words on a full disk."""

import errno
import logging
import os
import resource
import time
from pathlib import Path

import pytest

from turngym.envs.textworld import cache
from turngym.errors import ConfigError, InfraError

HOUR_S = 3600.0


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TURNGYM_CACHE", str(tmp_path))
    monkeypatch.setenv("TURNGYM_CACHE_BYTES", "10_000")
    return tmp_path / "textworld" / "1.7.0" / "custom" / "w2-o3-q4"


def old_game(folder: Path, seed: int, *, hours: float, size: int = 1000) -> Path:
    """A file of a game that was last used so many hours ago."""
    path = folder / f"{seed}.zip"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - hours * HOUR_S,) * 2)
    return path


def seeds_in(folder: Path) -> list[int]:
    return sorted(int(path.stem) for path in folder.glob("*.zip"))


def test_beyond_the_limit_the_least_recently_used_games_go(folder: Path) -> None:
    for seed in range(1, 10):
        old_game(folder, seed, hours=100 - seed)
    cache.touch(folder / "1.zip")
    cache.write(folder / "10.zip", b"y" * 1000)
    assert seeds_in(folder) == [*range(1, 11)]  # 10,000 bytes: at the limit
    cache.write(folder / "11.zip", b"y" * 1000)
    assert seeds_in(folder) == [1, *range(4, 12)]  # 95 % of the limit is left


def test_games_of_this_process_are_never_removed(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    paths = [old_game(folder, seed, hours=200 - seed) for seed in range(1, 21)]
    cache.keep(paths[:12])
    cache.make_room(1000)
    cache.make_room(1000)
    assert seeds_in(folder) == [*range(1, 13)]
    assert [record.message for record in caplog.records] in (
        [],  # said before, by another test of this process
        [
            "Games take about 0 MB, more than TURNGYM_CACHE_BYTES = 10000: this run needs them, "
            "or they are not ours to remove."
        ],
    )


def test_room_is_made_for_games_of_other_versions_and_families_alike(folder: Path) -> None:
    other = old_game(folder.parents[2] / "1.6.0" / "coin" / "l5", 1, hours=999)
    mine = old_game(folder, 1, hours=5)
    cache.make_room(8500)
    assert not other.exists() and mine.exists()


def test_no_limit_and_wrong_limits(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old_game(folder, 1, hours=9, size=20_000)
    monkeypatch.setenv("TURNGYM_CACHE_BYTES", "0")
    cache.write(folder / "2.zip", b"y" * 20_000)
    assert seeds_in(folder) == [1, 2]
    for wrong in ("4GB", "-1", "1__0", "_1", "1e9", "²"):
        monkeypatch.setenv("TURNGYM_CACHE_BYTES", wrong)
        with pytest.raises(ConfigError, match="Give a whole number of bytes, such as 4000000000"):
            cache.write(folder / "3.zip", b"y")
    monkeypatch.delenv("TURNGYM_CACHE_BYTES")
    assert cache.cache_limit() == cache.DEFAULT_BYTES


def test_a_full_disk_leaves_no_trace_and_says_what_to_do(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old_game(folder, 1, hours=1)

    def fail(self: Path, data: bytes) -> int:
        with self.open("wb") as file:
            file.write(data[:10])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", fail)
    with pytest.raises(InfraError, match="The disk is full: .*TURNGYM_CACHE to a folder on another disk"):
        cache.write(folder / "2.zip", b"y" * 1000)
    assert [path.name for path in folder.iterdir()] == ["1.zip"]


@pytest.mark.parametrize("times", [1, 3])
def test_a_folder_deleted_meanwhile_is_made_again(
    times: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_bytes, deleted = Path.write_bytes, list[Path]()

    def late(self: Path, data: bytes) -> int:
        if len(deleted) < times:
            deleted.append(folder)
            folder.rmdir()
        return write_bytes(self, data)

    monkeypatch.setattr(Path, "write_bytes", late)
    if times == 1:
        cache.write(folder / "1.zip", b"y")
        assert seeds_in(folder) == [1]
    else:
        with pytest.raises(InfraError, match="cannot be written"):
            cache.write(folder / "1.zip", b"y")


def test_a_folder_that_can_only_be_read_is_told_and_breaks_nothing_else(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    games = [old_game(folder, seed, hours=9, size=9000) for seed in (1, 2)]

    def fail(self: Path, *args: object, **kwargs: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", fail)
    cache.make_room(1000)
    assert all(path.exists() for path in games)
    monkeypatch.setattr(Path, "open", fail)
    with pytest.raises(
        InfraError, match=r"lengths\.txt may not be written\. Set TURNGYM_CACHE to a folder that"
    ):
        cache.append(folder / "lengths.txt", "1 4\n")


def test_half_a_line_is_taken_back_where_the_disk_is_full(folder: Path) -> None:
    path = folder / "lengths.txt"
    cache.append(path, "1 4\n")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (7, hard))
    try:
        with pytest.raises(InfraError, match="The disk is full: .*lengths.txt"):
            cache.append(path, "2 44\n")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    cache.append(path, "3 4\n")
    assert path.read_text() == "1 4\n3 4\n"


def test_the_folder_may_be_told_from_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("TURNGYM_CACHE", "~/games")
    assert cache.cache_root() == Path("/home/somebody/games/textworld")


def test_files_left_by_a_killed_process_are_removed_in_time(folder: Path) -> None:
    old_game(folder, 1, hours=1)
    for name, hours in ((".2.zip.123.4", 30.0), (".3.zip.123.4", 1.0)):
        (folder / name).write_bytes(b"half")
        os.utime(folder / name, (time.time() - hours * HOUR_S,) * 2)
    (folder / "lengths.txt").write_text("1 4\n")
    cache.make_room()
    assert {path.name for path in folder.iterdir()} == {"1.zip", ".3.zip.123.4", "lengths.txt"}


def test_use_is_noted_by_the_hour(folder: Path) -> None:
    fresh, stale = old_game(folder, 1, hours=0.5), old_game(folder, 2, hours=1.5)
    before = fresh.stat().st_mtime_ns
    cache.touch(fresh)
    cache.touch(stale)
    cache.touch(folder / "absent.zip")
    assert fresh.stat().st_mtime_ns == before
    assert time.time() - stale.stat().st_mtime < HOUR_S


def test_a_warning_is_given_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        cache.report_once("test of reporting", "first")
        cache.report_once("test of reporting", "second")
    assert [record.message for record in caplog.records] == ["first"]
