"""Long work in the terminal."""

from io import StringIO

import pytest
from rich.console import Console

from turngym.reporter import SpeedReporter, TrainingReporter
from turngym.training.metrics import MetricValue

RL_ROW: dict[str, MetricValue] = {
    "stage": "rl", "update": 3, "step": 13, "rollout/success": 0.25, "rollout/turns_per_episode": 2.04,
    "policy/grad_norm": 1.234, "episodes/trained": 16, "time/total_s": 71.4,
}  # fmt: skip


def reporter(*, terminal: bool = False) -> TrainingReporter:
    return TrainingReporter(Console(file=StringIO(), width=200, force_terminal=terminal, record=True))


def test_a_row_is_a_line_of_the_figures_that_it_holds() -> None:
    shown = reporter()
    shown.row(RL_ROW)
    assert shown.console.export_text() == "rl    3  success 0.250  turns 2.0  grad 1.23  trained 16  71 s\n"


def test_of_the_steps_of_sft_every_tenth_and_the_measured_ones_are_shown() -> None:
    shown = reporter()
    for update in range(1, 26):
        row: dict[str, MetricValue] = {
            "stage": "sft",
            "update": update,
            "loss/sft": 1.0,
            "time/total_s": update,
        }
        if update == 25:
            row["validation/greedy_success"] = 0.5
        shown.row(row)
    lines = shown.console.export_text().splitlines()
    assert [line.split()[1] for line in lines] == ["10", "20", "25"]


def test_a_bar_is_gone_when_its_work_is_done_or_stopped_and_may_come_again() -> None:
    hide, show = "\x1b[?25l", "\x1b[?25h"  # the cursor, while a bar is there
    shown, file = reporter(terminal=True), StringIO()
    shown.console.file = file
    with shown:
        shown.progress("demonstrations", 1, 2)
        assert (file.getvalue().count(hide), file.getvalue().count(show)) == (1, 0)
        shown.progress("demonstrations", 2, 2)
        assert file.getvalue().count(show) == 1
    with pytest.raises(KeyboardInterrupt), shown:
        shown.progress("demonstrations", 1, 3)
        raise KeyboardInterrupt
    assert file.getvalue().count(hide) == file.getvalue().count(show) == 2
    assert "demonstrations" in file.getvalue()


@pytest.mark.parametrize("terminal", [True, False])
def test_the_bar_of_speed_names_what_runs_on_a_terminal_alone(terminal: bool) -> None:
    file = StringIO()
    with SpeedReporter(Console(file=file, width=200, force_terminal=terminal)) as shown:
        shown.progress("round 1 of 2: train, inline", 0, 4)
        shown.progress("round 2 of 2: train, inline", 2, 4)
    assert ("round 2 of 2: train, inline" in file.getvalue()) == terminal
    assert bool(file.getvalue()) == terminal
