"""The picture of a run."""

import sys
from pathlib import Path

import pytest

from turngym.errors import MissingExtraError
from turngym.plot import Bar, plot_run
from turngym.training.metrics import MetricValue

ROWS: list[dict[str, MetricValue]] = [
    {"stage": "sft", "time/total_s": 1.0, "loss/sft": 2.0},
    {
        "stage": "sft",
        "time/total_s": 2.0,
        "validation/greedy_success": 0.5,
        "validation/sampled_success": 0.25,
    },
    {"stage": "rl", "time/total_s": 3.5, "rollout/success": 0.3},
    {"stage": "rl", "time/total_s": 5.0, "rollout/success": 0.75, "validation/greedy_success": 1.0},
]
BARS = [
    Bar("random", 0.01, 0.0, 0.03),
    Bar("expert", 1.0, 0.98, 1.0),
    Bar("rl, greedy", 0.985, 0.957, 0.995),
    Bar("rl, sampled", 0.97, 0.955, 0.98),
]


def test_a_missing_matplotlib_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'turngym\[plot\]'"):
        plot_run(ROWS, tmp_path / "curve.png", title="", bars=BARS)
    assert not (tmp_path / "curve.png").exists()


def test_the_picture_shows_the_rows_and_the_bars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pyplot = pytest.importorskip("matplotlib.pyplot")
    monkeypatch.setattr(pyplot, "close", lambda figure: None)
    path = tmp_path / "new" / "curve.png"
    plot_run(ROWS, path, title="A run", bars=BARS)
    assert path.read_bytes().startswith(b"\x89PNG")
    figure = pyplot.gcf()
    monkeypatch.undo()
    left, right = figure.axes
    drawn = {line.get_label(): line.get_xydata().tolist() for line in left.lines}
    assert drawn["training rollouts (sampled)"] == [[3.5, 30.0], [5.0, 75.0]]
    assert drawn["validation, greedy"] == [[2.0, 50.0], [5.0, 100.0]]
    assert drawn["validation, sampled"] == [[2.0, 25.0]]
    assert [(text.get_text(), text.get_position()[0]) for text in left.texts] == [(" RL begins", 3.5)]
    assert [label.get_text() for label in right.get_yticklabels()] == [bar.label for bar in BARS]
    assert [text.get_text() for text in right.texts] == ["1.0 %", "100.0 %", "98.5 %", "97.0 %"]
    for text, bar in zip(right.texts, BARS, strict=True):
        assert text.get_position()[0] > 100 * bar.high
        assert text.get_window_extent().x1 < figure.bbox.x1
    assert max(right.get_xticks()) == 100
    pyplot.close(figure)


def test_a_run_without_figures_still_gives_a_picture(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    plot_run([], tmp_path / "curve.png", title="", bars=[])
    assert (tmp_path / "curve.png").stat().st_size > 0
