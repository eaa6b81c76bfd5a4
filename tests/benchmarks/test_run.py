"""Playing a suite."""

import logging
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from turngym.agents.base import Agent, Decision, Reading
from turngym.agents.scripted import ExpertAgent, RandomAgent, ScriptedAgent
from turngym.benchmarks.run import BenchOptions, bench, bench_jobs
from turngym.benchmarks.score import Played
from turngym.benchmarks.suite import MixedPanel, Panel, Suite
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, InlinePool, Wants
from turngym.episode_file import read_episodes
from turngym.errors import ConfigError, InfraError
from turngym.types import Segment


class FakePolicy:
    """Says the right digit where its stream of chance allows it: always when greedy, half the time when not."""

    wants = Wants(plan=True)
    weights_version = 3
    selected_on = "validation success"

    def __init__(self, *, greedy: bool) -> None:
        self.name = "fake"
        self.greedy = greedy
        self._ready: list[Decision] = []

    def submit(self, reading: Reading) -> None:
        right = self.greedy or reading.seed % 2 == 0
        self._ready.append(Decision(reading.episode, reading.plan[0] if right else "say nothing"))

    def step(self) -> list[Decision]:
        ready, self._ready = self._ready, []
        return ready

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        return ()


class SayAgent(ScriptedAgent):
    """Says the same on every turn."""

    name = "say"

    def __init__(self, **by_task: str) -> None:
        super().__init__()
        self.by_task = by_task

    def decide(self, reading: Reading) -> Decision:
        return Decision(reading.episode, self.by_task.get(reading.info.task, "hello"))


@pytest.fixture
def fake_loader(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Makes `load_agent` give the fake policy; the list holds what it was asked for."""
    loaded: list[bool] = []

    def load_agent(spec: str, *, greedy: bool, **rest: Any) -> Agent:
        loaded.append(greedy)
        return FakePolicy(greedy=greedy)

    monkeypatch.setattr("turngym.agents.load.load_agent", load_agent)
    return loaded


def test_the_expert_wins_every_task_in_one_figure(toy_panel: Panel) -> None:
    (got,) = bench(toy_panel, agent="expert")
    assert (got.success, got.mode, got.num_tasks, got.repeats, got.incomplete) == (
        1.0,
        "scripted",
        4,
        1,
        False,
    )
    assert (got.panel_hash, got.suite, got.mean_turns) == (toy_panel.hash, "toy", 1.0)
    assert [task.task for task in got.tasks] == ["t6", "t7", "t8", "t9"]


def test_an_agent_that_does_nothing_wins_nothing(toy_panel: Panel) -> None:
    # Case 38: no task of a suite may be solved by doing nothing.
    (got,) = bench(toy_panel, agent=SayAgent())
    assert (got.success, got.outcomes["turn_limit"], got.invalid_share, got.mean_turns) == (0.0, 4, 1.0, 3.0)


def test_ended_episodes_are_told_apart(toy_panel: Panel) -> None:
    (got,) = bench(toy_panel, agent=SayAgent(t6="say 6", t7="say 1", t8="fail"))
    assert {name: count for name, count in got.outcomes.items() if count} == {
        "won": 1, "lost": 1, "turn_limit": 1, "env_fault": 1,
    }  # fmt: skip
    assert got.success == 0.25


def test_infra_is_retried_and_then_outside_the_figure(toy_panel: Panel) -> None:
    (got,) = bench(toy_panel, agent=SayAgent(t6="say 6", t7="say 7", t8="say 1", t9="crash"))
    assert (got.success, got.num_infra, got.success_if_infra_fails, got.incomplete) == (2 / 3, 1, 0.5, True)
    one_task = Panel("toy", toy_panel.env, ("t9",), 1)
    with pytest.raises(InfraError, match="None of 1 episodes could be scored"):
        bench(one_task, agent=SayAgent(t9="crash"))


def test_a_policy_plays_greedy_once_and_sampled_often(toy_panel: Panel, fake_loader: list[bool]) -> None:
    greedy, sampled = bench(toy_panel, agent="runs/any")
    assert fake_loader == [True, False]
    assert (greedy.mode, greedy.repeats, greedy.num_episodes, greedy.success) == ("greedy", 1, 4, 1.0)
    assert (sampled.mode, sampled.repeats, sampled.num_episodes) == ("sampled", 4, 16)
    assert (greedy.pass_k, [one.k for one in sampled.pass_k]) == ((), [1, 2, 4])
    assert (greedy.selected_on, greedy.weights_version) == ("validation success", 3)


def test_the_same_seed_gives_the_same_result_whatever_else_is_played(
    toy_panel: Panel, fake_loader: list[bool]
) -> None:
    both = bench(toy_panel, agent="runs/any")[1]
    (alone,) = bench(toy_panel, agent="runs/any", modes=("sampled",))
    (few_slots,) = bench(toy_panel, agent="runs/any", modes=("sampled",), options=BenchOptions(slots=2))
    (other,) = bench(toy_panel, agent="runs/any", modes=("sampled",), options=BenchOptions(seed=1))
    assert both.tasks == alone.tasks == few_slots.tasks
    assert other.tasks != alone.tasks


def test_jobs_have_numbers_and_seeds_of_their_own(toy_panel: Panel) -> None:
    greedy = bench_jobs(toy_panel, Played("any", "greedy", 1))
    sampled = bench_jobs(toy_panel, Played("any", "sampled", 3))
    fewer = bench_jobs(toy_panel, Played("any", "sampled", 2), max_tasks=3)
    assert [job.number for job in greedy] == [0, 1, 2, 3]
    assert sorted(job.number for job in sampled) == list(range(4, 16))
    assert len({job.seed for job in sampled}) == 12
    assert {job.number: job for job in fewer}.items() <= {job.number: job for job in sampled}.items()
    for wrong in (Played("any", "sampled", 0), Played("any", "greedy", 2)):
        with pytest.raises(ConfigError, match="repeats"):
            bench_jobs(toy_panel, wrong)


def test_fewer_tasks_are_marked(toy_panel: Panel) -> None:
    (got,) = bench(toy_panel, agent=ExpertAgent(), options=BenchOptions(max_tasks=3))
    assert (got.num_tasks, got.num_panel, got.incomplete) == (3, 4, True)


def test_an_agent_in_hand_needs_its_one_mode(toy_panel: Panel) -> None:
    with pytest.raises(ConfigError, match="'fake' is made already"):
        bench(toy_panel, agent=FakePolicy(greedy=True))
    (got,) = bench(toy_panel, agent=FakePolicy(greedy=True), modes=("greedy",))
    assert got.mode == "greedy"


def test_a_panel_of_several_environments_has_a_figure_for_each(
    toy_panel: Panel, toy_env: type[TurnEnv], tmp_path: Path
) -> None:
    long, short = toy_panel.env, EnvRef("toy", {"max_turns": 2}, toy_env)
    parts = (Panel("long", long, ("t6", "t7"), 4), Panel("short", short, ("t8", "t9", "t1"), 4))
    panel = MixedPanel("mix", parts, 4)
    options = BenchOptions(episodes_path=tmp_path / "episodes.jsonl")
    (got,) = bench(panel, agent=SayAgent(t6="say 6", t7="say 7", t8="say 8"), options=options)
    assert (got.suite, got.env_id, got.env_kwargs, got.success, got.num_panel) == ("mix", "toy", {}, 0.6, 5)
    figures = [(one.name, one.success, one.num_tasks, one.mean_turns, one.env_kwargs) for one in got.parts]
    assert figures == [("long", 1.0, 2, 1.0, {}), ("short", 1 / 3, 3, 5 / 3, {"max_turns": 2})]
    assert [one.panel_hash for one in got.parts] == [part.hash for part in parts]
    assert got.panel_hash == panel.hash
    played = {
        episode.task: dict(episode.env_kwargs) for episode in read_episodes(options.episodes_path or Path())
    }
    assert played == {"t6": {}, "t7": {}} | dict.fromkeys(("t8", "t9", "t1"), {"max_turns": 2})
    (few,) = bench(panel, agent=ExpertAgent(), options=BenchOptions(max_tasks=3))
    assert [(one.name, one.num_tasks, one.incomplete) for one in few.parts] == [
        ("long", 2, False),
        ("short", 1, True),
    ]


def test_a_part_that_only_failed_by_infra_has_no_figure(toy_panel: Panel) -> None:
    parts = (Panel("one", toy_panel.env, ("t6",), 1), Panel("two", toy_panel.env, ("t9",), 1))
    (got,) = bench(MixedPanel("mix", parts, 1), agent=SayAgent(t6="say 6", t9="crash"))
    assert [one.name for one in got.parts] == ["one"] and got.incomplete


def test_a_single_environment_has_no_parts(toy_panel: Panel) -> None:
    assert bench(toy_panel, agent="expert")[0].parts == ()


def test_wrong_modes_are_refused(toy_panel: Panel) -> None:
    with pytest.raises(ConfigError, match="name greedy, sampled or both"):
        bench(toy_panel, agent="expert", modes=())
    with pytest.raises(ConfigError, match="name greedy, sampled or both"):
        bench(toy_panel, agent="expert", modes=("scripted",))


def test_episodes_are_saved_under_unique_numbers(
    toy_panel: Panel, fake_loader: list[bool], tmp_path: Path
) -> None:
    options = BenchOptions(episodes_path=tmp_path / "episodes.jsonl", repeats=2)
    _, sampled = bench(toy_panel, agent="runs/any", options=options)
    saved = read_episodes(tmp_path / "episodes.jsonl")
    assert sorted(episode.number for episode in saved) == list(range(12))
    assert sum(episode.success for episode in saved[4:]) == sampled.outcomes["won"]
    with pytest.raises(ConfigError, match="has episodes already"):
        bench(toy_panel, agent="runs/any", options=options)


def test_progress_and_log_tell_each_task(toy_panel: Panel, caplog: pytest.LogCaptureFixture) -> None:
    console = Console(file=StringIO(), force_terminal=True, width=100, record=True)
    with caplog.at_level(logging.INFO, logger="turngym.benchmarks.run"):
        bench(toy_panel, agent="expert", console=console)
    assert "toy expert scripted: won 4 of 4" in console.export_text()
    assert caplog.text.count("won in 1 turns") == 4


def test_a_suite_plays_a_registered_environment(toy_id: str) -> None:
    suite = Suite.model_validate({"name": "mine", "env": toy_id, "tasks": {"split": "validation"}})
    (got,) = bench(suite, agent=RandomAgent())
    assert (got.num_panel, got.agent, got.mode) == (2, "random", "scripted")
    assert got.outcomes["won"] + got.outcomes["lost"] == 2


def test_a_pool_that_was_given_stays_open(toy_panel: Panel, toy_env: type[TurnEnv]) -> None:
    closed: list[bool] = []

    class Pool(InlinePool):
        def close(self) -> None:
            closed.append(True)

    panel = Panel("toy", EnvRef("toy", {}, toy_env), toy_panel.tasks, 1)
    bench(panel, agent="expert", pool=Pool())
    assert not closed
