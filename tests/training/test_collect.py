"""Which tasks are drawn, how episodes are numbered, and what is kept of what was played."""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from turngym.agents.rollout import FaultCeiling
from turngym.agents.scripted import ReplayAgent
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, InlinePool
from turngym.errors import ConfigError
from turngym.training.collect import (
    TaskSource,
    TaskStream,
    collect,
    group_jobs,
    task_sources,
    validation_sources,
)
from turngym.training.ledger import Ledger
from turngym.training.settings import EnvSettings, Recipe, RunSettings, TaskSlice
from turngym.types import Segment, Span, TaskRange, Turn

TOY = EnvSettings(id="toy_env:toy/Signs-v0")


def source(name: str, count: int, weight: float = 1.0) -> TaskSource:
    return TaskSource(EnvRef(name), TaskRange(f"{name}/", range(count)), weight)


def drawn(stream: TaskStream, updates: range, count: int) -> list[list[str]]:
    return [[task for _, task in stream.draw(update, count)] for update in updates]


# Case 53: eight tasks, two a time, stopped after the sixth update, in the middle of the second epoch.
def test_resumed_in_the_second_epoch_the_rest_is_that_of_the_uninterrupted_run() -> None:
    sources = [source("a", 8)]
    whole = drawn(TaskStream(sources, 1, "rl", {}), range(8), 2)
    first = TaskStream(sources, 1, "rl", {})
    before = drawn(first, range(6), 2)
    after = drawn(TaskStream(sources, 1, "rl", first.cursors), range(6, 8), 2)
    assert before + after == whole
    for epoch in (whole[:4], whole[4:]):
        assert sorted(sum(epoch, [])) == [f"a/{i}" for i in range(8)]
    assert whole[:4] != whole[4:]


def test_an_epoch_ends_in_the_middle_of_an_update() -> None:
    tasks = sum(drawn(TaskStream([source("a", 5)], 1, "rl", {}), range(5), 3), [])
    assert Counter(tasks) == {f"a/{i}": 3 for i in range(5)}


def test_every_stop_resumes_to_the_same_tasks_over_several_environments() -> None:
    sources = [source("a", 3), source("b", 5, 2.0)]
    whole = drawn(TaskStream(sources, 7, "rl", {}), range(9), 4)
    stream = TaskStream(sources, 7, "rl", {})
    for update in range(9):
        stream = TaskStream(sources, 7, "rl", stream.cursors)
        assert drawn(stream, range(update, update + 1), 4) == [whole[update]]


def test_cursors_of_the_caller_are_not_changed() -> None:
    cursors = {"0": 2}
    TaskStream([source("a", 8)], 1, "rl", cursors).draw(0, 3)
    assert cursors == {"0": 2}


def test_other_seeds_and_stages_draw_in_another_order() -> None:
    sources = [source("a", 30)]
    orders = {
        tuple(drawn(TaskStream(sources, seed, stage, {}), range(1), 30)[0])
        for seed in (1, 2)
        for stage in ("x", "y")
    }
    assert len(orders) == 4


def test_environments_share_the_tasks_by_weight() -> None:
    stream = TaskStream([source("a", 10, 3.0), source("b", 10, 1.0)], 1, "rl", {})
    counts = Counter(env.env_id for update in range(100) for env, _ in stream.draw(update, 8))
    # 800 draws at 3 : 1 have mean 600 and standard deviation 12.2.
    assert abs(counts["a"] - 600) < 4 * 12.2 and counts["a"] + counts["b"] == 800


def test_a_stage_sees_its_slice_of_the_split() -> None:
    [got] = task_sources([TOY], "train", TaskSlice(start=2, count=3))
    assert list(got.tasks) == ["signs/2", "signs/3", "signs/4"]
    [rest] = task_sources([TOY], "train", TaskSlice(start=38))
    assert list(rest.tasks) == ["signs/38", "signs/39"]
    [validation] = task_sources([TOY], "validation", TaskSlice())
    assert len(validation.tasks) == 12


@pytest.mark.parametrize(
    ("part", "asked"),
    [(TaskSlice(start=38, count=3), "3 from number 38"), (TaskSlice(start=40), "all from number 40")],
)
def test_a_slice_beyond_the_split_names_the_setting(part: TaskSlice, asked: str) -> None:
    with pytest.raises(ConfigError) as caught:
        task_sources([TOY], "train", part, setting="rl.tasks")
    assert str(caught.value) == (
        f"toy_env:toy/Signs-v0 has 40 train tasks, and rl.tasks asks for {asked} on. Lower rl.tasks."
    )


def test_too_many_validation_tasks_name_their_setting() -> None:
    stages = [{"sft": {"steps": 1}}]
    values = {"envs": [TOY.model_dump()], "stages": stages, "validation": {"tasks": 13}}
    with pytest.raises(ConfigError, match=r"has 12 validation tasks, .* Lower validation\.tasks\."):
        validation_sources(Recipe.model_validate(values))


def test_episode_numbers_groups_and_seeds_are_unique_over_a_stage() -> None:
    env = EnvRef("a")
    jobs = [
        job
        for update in range(3)
        for job in group_jobs([(env, "t"), (env, "t")], group_size=4, update=update, seed=1, stage="rl")
    ]
    assert [job.number for job in jobs] == list(range(24))
    assert [job.group for job in jobs] == [number // 4 for number in range(24)]
    assert len({job.seed for job in jobs}) == 24
    other = group_jobs([(env, "t")], group_size=4, update=0, seed=1, stage="rl-2")
    assert {job.seed for job in other}.isdisjoint(job.seed for job in jobs)


class Marked(ReplayAgent):
    """Replays commands, and claims to have written two tokens a turn in the episodes named."""

    def __init__(self, commands: dict[int, Sequence[str]], writers: set[int]) -> None:
        super().__init__(commands)
        self._writers = writers

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        if episode not in self._writers:
            return ()
        spans = (Span(0, 2, 0, "env"), Span(2, 4, 0, "policy"))
        return (Segment((1, 2, 3, 4), (0.0,) * 4, spans),)


class Breaks(TurnEnv):
    """Fails by its own fault when told `break`, and is won by anything else."""

    instructions = "Do not say break."
    max_turns = 2
    splits = {"train": TaskRange("", range(4))}

    def load(self, task: str, rng: np.random.Generator) -> str:
        return "Well?"

    def act(self, command: str) -> Turn:
        if command == "break":
            raise ZeroDivisionError("broken")
        return Turn("Good.", solved=True)

    def state(self) -> str:
        return "same"


# Case 15: what failed by no fault of the agent is no episode of reward 0.
def test_faults_and_episodes_without_tokens_are_dropped_and_counted() -> None:
    env, ledger = EnvRef.of(Breaks), Ledger()
    jobs = group_jobs([(env, "0")], group_size=4, update=0, seed=1, stage="rl")
    agent = Marked({0: ["go"], 1: ["go"], 2: ["break"], 3: ["go"]}, writers={0, 1, 2})
    collected = collect(jobs, InlinePool(), agent, RunSettings(), FaultCeiling(), ledger)
    assert [one.number for one in collected.played] == [0, 1, 2, 3]
    assert [one.number for one in collected.usable] == [0, 1]
    assert dict(ledger.episodes) == {
        "asked": 4,
        "played": 4,
        "dropped_env_fault": 1,
        "dropped_no_action_tokens": 1,
    }
    assert ledger.tokens["played"] == 6 and ledger.tokens["dropped_env_fault"] == 2
    ledger.add("trained", len(collected.usable), 4)
    ledger.check()
