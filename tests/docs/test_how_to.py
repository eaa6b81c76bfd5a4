"""The how-to pages work as they stand: their files and commands are taken from the text and run."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ROOT / "docs" / "how-to"

BLOCK = re.compile(r"^```(?P<language>\w+)(?: title=\"(?P<name>[^\"]+)\")?\n(?P<text>.*?)^```$", re.M | re.S)


def run_page(page: str, folder: Path) -> str:
    """Writes the page's files into a folder and runs its commands there; returns what they printed."""
    printed = ""
    blocks = list(BLOCK.finditer((PAGES / page).read_text(encoding="utf-8")))
    assert {block["language"] for block in blocks} == {"python", "yaml", "sh"}
    for block in blocks:
        if block["name"]:
            (folder / block["name"]).write_text(block["text"], encoding="utf-8")
        elif block["language"] == "sh":
            for line in block["text"].splitlines():
                printed += run_line(line, folder)
    return printed


def run_line(line: str, folder: Path) -> str:
    program, *arguments = line.split()
    assert program == "turngym", f"{line!r} is no command of turngym"
    return run_python(folder, "-m", "turngym.cli", *arguments)


def run_python(folder: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done.stdout


def stages_of(run: Path) -> list[str]:
    rows = [json.loads(line) for line in (run / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    return [row["stage"] for row in rows]


@pytest.mark.slow  # two starts of the command line, which load torch, and the checker's own processes
def test_the_page_on_environments_works_as_it_stands(tmp_path: Path) -> None:
    printed = run_page("new-environment.md", tmp_path)
    assert "fail" not in printed and "warn" not in printed
    assert "ok   honesty" in printed
    assert stages_of(tmp_path / "runs" / "lamps") == ["sft"] * 40 + ["rl"] * 3
    assert (tmp_path / "runs" / "lamps" / "final" / "model.safetensors").exists()


@pytest.mark.slow  # a start of the command line, which loads torch
def test_the_page_on_estimators_works_as_it_stands(tmp_path: Path) -> None:
    run_page("new-estimator.md", tmp_path)
    assert stages_of(tmp_path / "runs" / "mine") == ["sft"] * 10 + ["rl"] * 2
    recipe = (tmp_path / "runs" / "mine" / "recipe.yaml").read_text(encoding="utf-8")
    assert "name: mine" in recipe and "share: 0.5" in recipe


def test_the_page_on_workers_works_as_it_stands(tmp_path: Path) -> None:
    page = (PAGES / "worker-processes.md").read_text(encoding="utf-8")
    blocks = {block["language"]: block["text"] for block in BLOCK.finditer(page)}
    assert "noisy-expert" in run_line(blocks["sh"].strip(), tmp_path)
    (tmp_path / "vector.py").write_text(blocks["python"], encoding="utf-8")
    # Episodes of three turns and a step of reset: two rounds of four parts' three turns in eight steps.
    assert run_python(tmp_path, "vector.py").split() == ["str", "24"]


def test_the_page_on_looking_at_episodes_works_as_it_stands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = (PAGES / "look-at-episodes.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    for block in BLOCK.finditer(text):
        if block["language"] == "python":
            exec(block["text"], {})
        else:
            for line in block["text"].splitlines():
                run_line(line, tmp_path)
    assert {path.name for path in tmp_path.glob("*.html")} == {"episodes.html", "random.html"}
    for image in re.findall(r"!\[.*?\]\((.*?)\)", text):
        assert (PAGES / image).is_file()
