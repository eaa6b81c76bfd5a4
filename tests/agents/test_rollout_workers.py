"""The one loop over worker processes: the same episodes, and a run that goes on whatever the workers do."""

import os
import re
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

import turngym
from turngym.agents.base import Job, Reading
from turngym.agents.rollout import play
from turngym.agents.scripted import NoisyExpertAgent, ReplayAgent
from turngym.envs.pool import Call, EnvRef, Key, PoolCounts, PoolLimits, make_pool
from turngym.types import Episode

FAULTY = EnvRef("faulty_env:toy/Faulty-v0")
ROOMS = EnvRef("turngym/Rooms-v0", {"level": "w2-o3-q4"})
WIN = ["go", "go", "go"]


@pytest.fixture(autouse=True)
def faulty_env(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parents[1] / "envs" / "pool")


def jobs_of(ref: EnvRef, tasks: Sequence[str]) -> list[Job]:
    return [Job(number, number, ref, task, number) for number, task in enumerate(tasks)]


def told(episodes: Sequence[Episode]) -> list[object]:
    """Episodes without what depends on the clock, or on which process played."""
    return [
        (one.number, one.task, one.outcome, one.attempt, one.error, one.start_key,
         [(turn.command, turn.observation, turn.reward) for turn in one.turns])
        for one in episodes
    ]  # fmt: skip


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_number_of_workers_changes_nothing(workers: int) -> None:
    tasks = ROOMS.make().tasks("train")[:20]

    def rollout(workers: int) -> list[object]:
        pool = make_pool(workers=workers, envs=[ROOMS])
        try:
            agent = NoisyExpertAgent(noise=(0.4,))
            return told(play(jobs_of(ROOMS, tasks), pool=pool, agent=agent, slots=7))
        finally:
            pool.close()

    assert rollout(workers) == rollout(0)


def test_play_takes_workers() -> None:
    inline, in_workers = (
        turngym.play("Rooms-v0", agent="random", episodes=4, tasks="test", workers=n) for n in (0, 2)
    )
    assert told(inline) == told(in_workers) and len(inline) == 4


class Killer(ReplayAgent):
    """Kills the process of one episode's environment, once, when it has played a turn there."""

    def __init__(self, victim: int, scripts: dict[int, Sequence[str]]) -> None:
        super().__init__(scripts)
        self._victim = victim
        self._process = 0

    def submit(self, reading: Reading) -> None:
        found = re.search(r"process (\d+)", reading.observation)
        if reading.episode == self._victim and reading.attempt == 0:
            if found is not None:
                self._process = int(found[1])
            elif reading.turn == 1:
                os.kill(self._process, signal.SIGKILL)
        super().submit(reading)


@contextmanager
def faulty_rollout(
    scripts: dict[int, Sequence[str]], *, agent: ReplayAgent | None = None, limits: PoolLimits | None = None
) -> Iterator[tuple[list[Episode], PoolCounts]]:
    """Episodes of the faulty environment, and what happened to its two workers."""
    pool = make_pool(workers=2, envs=[FAULTY], limits=limits)
    try:
        jobs = jobs_of(FAULTY, [f"faulty/{number}" for number in scripts])
        episodes = play(jobs, pool=pool, agent=agent or ReplayAgent(scripts))
        assert pool.counts is not None
        yield episodes, pool.counts
    finally:
        pool.close()


def outcomes(episodes: Sequence[Episode]) -> list[tuple[str, int, int]]:
    return [(one.outcome, one.attempt, len(one.turns)) for one in episodes]


def test_a_killed_worker_costs_an_attempt_of_its_episodes_and_no_more() -> None:
    scripts: dict[int, Sequence[str]] = {number: WIN for number in range(4)}
    with faulty_rollout(scripts, agent=Killer(0, scripts)) as (episodes, counts):
        assert outcomes(episodes) == [("won", 1, 3), ("won", 0, 3), ("won", 1, 3), ("won", 0, 3)]
        assert (counts.died, counts.killed, counts.deadline_misses) == (1, 0, 0)


def test_a_hang_that_comes_again_is_the_environments_and_another_is_ours(tmp_path: Path) -> None:
    scripts: dict[int, Sequence[str]] = {
        0: ["go", "hang"],
        1: ["go", f"hang {tmp_path / 'once'}", "go", "go"],
        2: WIN,
        3: WIN,
    }
    with faulty_rollout(scripts, limits=PoolLimits(deadline_s=3.0)) as (episodes, counts):
        assert outcomes(episodes) == [("env_fault", 0, 1), ("won", 1, 4), ("won", 1, 3), ("won", 1, 3)]
        assert episodes[0].error == "No answer in 3 s (the deadline)."
        # The third is the replay of the hang that came again.
        assert (counts.deadline_misses, counts.killed, counts.died) == (3, 3, 0)


def test_an_environment_that_raises_or_dies_at_a_turn_is_found_out_by_replay() -> None:
    scripts: dict[int, Sequence[str]] = {0: ["go", "raise bug"], 1: ["go", "go", "die"], 2: WIN, 3: WIN}
    with faulty_rollout(scripts) as (episodes, counts):
        assert outcomes(episodes) == [("env_fault", 0, 1), ("env_fault", 0, 2), ("won", 0, 3), ("won", 1, 3)]
        assert [one.error for one in episodes[:2]] == [
            "ZeroDivisionError: lamp",
            "Its worker process ended (SIGSEGV).",
        ]
        assert counts.died == 2


def test_a_worker_that_grows_is_replaced_while_the_run_goes_on() -> None:
    scripts: dict[int, Sequence[str]] = {0: ["grow 180", *WIN], 1: WIN, 2: WIN}
    with faulty_rollout(scripts, limits=PoolLimits(memory_mb=200)) as (episodes, counts):
        assert [one.outcome for one in episodes] == ["won"] * 3
        assert {one.attempt for one in episodes} == {0}
        assert (counts.recycled, counts.killed) == (1, 0)


def test_a_sandbox_that_dies_is_tried_again_without_a_replay() -> None:
    with faulty_rollout({0: ["raise infra"]}) as (episodes, counts):
        assert outcomes(episodes) == [("infra", 2, 0)]
        assert counts.died == counts.killed == 0
        assert counts.started <= 3  # Two workers and a spare: no replay took one.


@pytest.mark.parametrize("workers", [0, 1])
def test_the_same_fault_may_name_another_address(workers: int) -> None:
    pool = make_pool(workers=workers, envs=[FAULTY])
    try:
        (episode,) = play(
            jobs_of(FAULTY, ["faulty/1"]), pool=pool, agent=ReplayAgent({0: ["go", "raise itself"]})
        )
    finally:
        pool.close()
    assert (episode.outcome, episode.attempt, len(episode.turns)) == ("env_fault", 0, 1)
    assert "0x" in episode.error


@pytest.mark.parametrize("workers", [0, 2])
def test_a_rollout_that_is_broken_off_leaves_the_pool_as_new(workers: int) -> None:
    def stop(episode: Episode) -> None:
        raise OSError("The disk is full.")

    pool = make_pool(workers=workers, envs=[FAULTY], limits=PoolLimits(episodes=4))
    jobs = jobs_of(FAULTY, [f"faulty/{number}" for number in range(4)])
    try:
        scripts: dict[int, Sequence[str]] = {0: WIN, 1: ["go"], 2: WIN, 3: WIN}
        with pytest.raises(OSError, match="disk is full"):
            play(jobs, pool=pool, agent=ReplayAgent(scripts), on_episode=stop)
        for number in range(4):  # None of them has an environment any more.
            pool.submit(Call(Key(number, 0, 9), FAULTY, command="go"))
        gone = [reply for reply in pool.poll() if reply.fault is not None and reply.fault.infra]
        assert len(gone) == 4
        again = play(jobs, pool=pool, agent=ReplayAgent(scripts | {1: WIN}))
    finally:
        pool.close()
    assert outcomes(again) == [("won", 0, 3)] * 4
