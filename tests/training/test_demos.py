"""Demonstrations: played by an honest expert with slips, saved once, filtered as the recipe says."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, InlinePool
from turngym.episode_file import read_episodes, write_episodes
from turngym.errors import ConfigError, FileFormatError
from turngym.training.collect import TaskSource
from turngym.training.demos import demonstrations
from turngym.training.settings import DemoSettings
from turngym.types import Episode, TaskRange, Turn

Demonstrate = Callable[..., list[Episode]]


@pytest.fixture
def demonstrate(vault: type[TurnEnv], tmp_path: Path) -> Demonstrate:
    """Plays demonstrations of five vaults."""

    def play(
        settings: Mapping[str, Any], *, env: type[TurnEnv] = vault, seed: int = 1, **more: Any
    ) -> list[Episode]:
        sources = [TaskSource(EnvRef.of(env), TaskRange("vault/", range(5)), 1.0)]
        return demonstrations(
            sources,
            DemoSettings.model_validate(settings),
            InlinePool(),
            seed=seed,
            stage="sft",
            saved=tmp_path / "sft" / "demos.jsonl",
            slots=3,
            **more,
        )

    return play


def test_each_task_is_played_once_per_entry_of_noise(demonstrate: Demonstrate) -> None:
    episodes = demonstrate({"noise": [0.0, 0.5]})
    assert [one.task for one in episodes] == [f"vault/{i}" for i in range(5)] * 2
    assert [one.number for one in episodes] == list(range(10))
    assert len({one.seed for one in episodes}) == 10
    authors = [{turn.author for turn in one.turns} for one in episodes]
    assert all(authors[i] == {"expert"} for i in range(5))
    assert any("noise" in one for one in authors[5:])
    assert all(one.success for one in episodes[:5])


def test_what_was_played_is_saved_and_used_again(demonstrate: Demonstrate, tmp_path: Path) -> None:
    episodes = demonstrate({"noise": [0.5]})
    saved = tmp_path / "sft" / "demos.jsonl"
    assert read_episodes(saved) == episodes
    assert demonstrate({"noise": [0.5]}, seed=99) == episodes
    saved.unlink()
    again = demonstrate({"noise": [0.5]})
    assert [one.turns[0].command for one in again] == [one.turns[0].command for one in episodes]


def test_only_won_demonstrations_are_kept_where_asked(demonstrate: Demonstrate) -> None:
    everything = demonstrate({"noise": [0.9], "keep": "all"})
    won = demonstrate({"noise": [0.9], "keep": "won"})
    assert 0 < len(won) < len(everything)
    assert won == [one for one in everything if one.success]


def test_demonstrations_come_from_files(demonstrate: Demonstrate, tmp_path: Path) -> None:
    episodes = demonstrate({"noise": [0.0]})
    write_episodes(tmp_path / "a.jsonl", episodes[:2])
    write_episodes(tmp_path / "b.jsonl", episodes[3:])
    files = [str(tmp_path / "a.jsonl"), str(tmp_path / "b.jsonl")]
    assert demonstrate({"files": files}) == episodes[:2] + episodes[3:]
    with pytest.raises(FileFormatError, match="Cannot read"):
        demonstrate({"files": ["none.jsonl"]})


class Loser(TurnEnv):
    """Cannot be won, though it has an expert."""

    instructions = "Lose."
    max_turns = 1
    splits = {"train": TaskRange("vault/", range(5))}

    def load(self, task: str, rng: np.random.Generator) -> str:
        return "Lost?"

    def act(self, command: str) -> Turn:
        return Turn("Lost.", over=True)

    def state(self) -> str:
        return "lost"

    def commands(self) -> list[str]:
        return ["lose"]


class HopelessExpert(Loser):
    """A loser with a plan."""

    def plan(self) -> list[str]:
        return ["lose"]


def test_an_environment_without_an_expert_is_refused(demonstrate: Demonstrate) -> None:
    with pytest.raises(ConfigError, match=r"Loser has no expert .* Write plan\(\), or give demos\.files\."):
        demonstrate({}, env=Loser)


def test_nothing_left_to_imitate_is_an_error(demonstrate: Demonstrate) -> None:
    with pytest.raises(ConfigError, match=r"No demonstration is left of 5 with keep: won\. Use keep: all\."):
        demonstrate({"noise": [0.0], "keep": "won"}, env=HopelessExpert)


def test_progress_counts_every_episode(demonstrate: Demonstrate) -> None:
    seen: list[tuple[int, int]] = []
    demonstrate({"noise": [0.0, 0.3]}, on_progress=lambda done, total: seen.append((done, total)))
    assert seen == [(done, 10) for done in range(1, 11)]
