"""The result's file, tables and comparison."""

import json
from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

from turngym.benchmarks.report import (
    BenchResult,
    improvement,
    improvement_table,
    read_result,
    read_results,
    result_table,
    write_result,
    write_results,
)
from turngym.benchmarks.score import Played, score
from turngym.benchmarks.suite import MixedPanel, Panel, load_suite
from turngym.envs.pool import EnvRef
from turngym.errors import ConfigError, FileFormatError
from turngym.types import Episode, Outcome

MakeEpisode = Callable[..., Episode]
MakePanel = Callable[..., Panel]
MakeResult = Callable[..., BenchResult]


@pytest.fixture
def make_result(make_episode: MakeEpisode, make_panel: MakePanel) -> MakeResult:
    def make(agent: str, *outcomes: Outcome, tasks: str = "abcdefgh") -> BenchResult:
        played = zip(tasks, outcomes, strict=False)
        episodes = [make_episode(at, task, outcome) for at, (task, outcome) in enumerate(played)]
        return score(episodes, panel=make_panel(*tasks), played=Played(agent, "greedy", 1, seconds=1.5))

    return make


def text_of(table: Table, width: int = 160) -> str:
    console = Console(width=width, file=StringIO(), record=True)
    console.print(table)
    return console.export_text()


def test_a_result_comes_back_from_its_file_the_same(make_result: MakeResult, tmp_path: Path) -> None:
    result = make_result("one", *["won", "lost"] * 4)
    path = tmp_path / "new" / "result.json"
    write_result(result, path)
    assert read_result(path) == result
    assert [one.name for one in path.parent.iterdir()] == ["result.json"]


def test_the_file_has_a_fixed_order_of_keys_and_what_a_reader_needs(
    make_result: MakeResult, tmp_path: Path
) -> None:
    write_result(make_result("one", "won", "lost"), tmp_path / "a.json")
    write_result(make_result("two", "lost", "lost", "won"), tmp_path / "b.json")
    one, two = (json.loads((tmp_path / name).read_text()) for name in ("a.json", "b.json"))
    assert [*one] == [*two]
    assert [*one["outcomes"]] == [*two["outcomes"]]
    assert one["tasks"][0] == {"task": "a", "outcomes": ["won"], "returns": [1.0], "turns": [1]}
    assert {"suite", "panel_hash", "num_tasks", "agent", "mode", "success", "low", "high"} <= {*one}
    assert {"interval", "selected_on", "versions", "num_infra", "success_if_infra_fails", "incomplete"} <= {
        *one
    }
    assert {"turngym", "python", "numpy"} <= {*one["versions"]}


def test_a_file_of_another_kind_is_refused(make_result: MakeResult, tmp_path: Path) -> None:
    path = tmp_path / "result.json"
    with pytest.raises(FileFormatError, match="Cannot read"):
        read_result(path)
    path.write_text('{"loss": 1}')
    with pytest.raises(FileFormatError, match="No benchmark result"):
        read_result(path)
    write_result(make_result("one", "won"), path)
    path.write_text(path.read_text()[:-20])
    with pytest.raises(FileFormatError, match="No benchmark result"):
        read_result(path)


def test_a_failed_write_leaves_the_old_file(
    make_result: MakeResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "result.json"
    write_result(make_result("old", "won"), path)

    def fail(descriptor: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="disk full"):
        write_result(make_result("new", "lost"), path)
    assert read_result(path).agent == "old"
    assert [one.name for one in tmp_path.iterdir()] == ["result.json"]


def test_improvement_is_paired_on_the_panel(make_result: MakeResult) -> None:
    # 2 of 8 before, the same and 4 more after: +50 points.
    first = make_result("sft", *["won"] * 2, *["lost"] * 6)
    second = make_result("rl", *["won"] * 6, *["turn_limit"] * 2)
    got = improvement(first, second)
    assert (got.improvement.points, got.improvement.num_tasks, got.num_left_out) == (50.0, 8, 0)
    assert (got.first, got.second, got.improvement.is_improvement) == ("sft (greedy)", "rl (greedy)", True)


def test_tasks_lost_to_infra_leave_both_sides_and_are_counted(make_result: MakeResult) -> None:
    first = make_result("sft", "infra", *["lost"] * 7)
    second = make_result("rl", *["won"] * 3, *["lost"] * 5)
    got = improvement(first, second)
    assert got.improvement.points == pytest.approx(200 / 7)
    assert (got.improvement.num_tasks, got.num_left_out) == (7, 1)


def test_results_on_other_panels_are_not_compared(make_result: MakeResult) -> None:
    first, second = make_result("sft", "won", "lost"), make_result("rl", "won", "lost", tasks="abcx")
    with pytest.raises(ConfigError, match=f"{first.panel_hash}.*{second.panel_hash}"):
        improvement(first, second)
    with pytest.raises(ConfigError, match="stand in one result only"):
        improvement(first, make_result("rl", "won"))


def test_tables_show_figures_failures_and_warnings(make_result: MakeResult) -> None:
    first = make_result("sft[1]", "won", "lost", "turn_limit", "infra")
    shown = text_of(result_table([first]))
    for part in (
        "sft[1]",
        "33.3",
        "[6.1, 79.2]",
        "3 of 8",
        "lost 1, turn_limit 1, infra 1",
        "Incomplete: 3 of 8",
    ):
        assert part in shown
    assert "selected on nothing" in shown
    second = make_result("rl", *["won"] * 8)
    shown = text_of(improvement_table([improvement(make_result("sft", *["lost"] * 8), second)]))
    assert "+100.0" in shown
    assert "better" in shown


def test_the_parts_of_a_mixed_suite_have_rows_of_their_own(make_episode: MakeEpisode, tmp_path: Path) -> None:
    parts = (Panel("easy [x]", EnvRef("toy"), ("a", "b"), 1), Panel("hard", EnvRef("toy2"), ("c", "d"), 1))
    outcomes: dict[str, Outcome] = {"a": "won", "b": "won", "c": "lost", "d": "turn_limit"}
    episodes = [make_episode(at, task, outcome) for at, (task, outcome) in enumerate(outcomes.items())]
    result = score(episodes, panel=MixedPanel("mix", parts, 1), played=Played("one", "greedy", 1))
    assert (result.env_id, result.success) == ("toy, toy2", 0.5)
    rows = [line.split() for line in text_of(result_table([result])).splitlines() if "[" in line]
    assert [row[:3] for row in rows] == [
        ["greedy:", "all", "50.0"],
        ["easy", "[x]", "100.0"],
        ["hard", "0.0", "[0.0,"],
    ]
    write_result(result, tmp_path / "mix.json")
    assert read_result(tmp_path / "mix.json") == result


def test_rows_of_a_mixed_suite_fit_a_terminal_and_lose_no_letter(make_episode: MakeEpisode) -> None:
    names = [part.name for part in load_suite("textworld-mix").parts]
    parts = tuple(Panel(name, EnvRef("toy"), (f"{name} 1", f"{name} 2"), 1) for name in names)
    tasks = [task for part in parts for task in part.tasks]
    outcomes: tuple[Outcome, ...] = ("lost", "turn_limit")
    episodes = [make_episode(at, task, outcomes[at % 2]) for at, task in enumerate(tasks)]
    result = score(episodes, panel=MixedPanel("mix", parts, 1), played=Played("one", "greedy", 1))
    lines = text_of(result_table([result]), width=80).splitlines()
    assert "\n".join(lines).count("turn_limit") == len(names) + 1
    end = min(line.index("0.0 [") for line in lines if "0.0 [" in line)
    first_column = "".join("".join(line[:end].split()) for line in lines)
    assert [name for name in names if name.replace(" ", "") not in first_column] == []


def test_the_results_of_all_modes_share_one_file(make_result: MakeResult, tmp_path: Path) -> None:
    result = make_result("one", "won", "lost")
    write_results([result], tmp_path / "new" / "all.json")
    assert read_results(tmp_path / "new" / "all.json") == {result.mode: result}
    (tmp_path / "bad.json").write_text('{"greedy": {}}', encoding="utf-8")
    with pytest.raises(FileFormatError, match="No benchmark result"):
        read_results(tmp_path / "bad.json")
