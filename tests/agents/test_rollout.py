"""The one loop: order, schedule, faults and their ceiling."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from turngym.agents.base import Decision, Job, Reading
from turngym.agents.rollout import FAULT_WINDOW, FaultCeiling, play
from turngym.agents.scripted import ExpertAgent, NoisyExpertAgent, RandomAgent, ReplayAgent
from turngym.envs.base import TurnEnv
from turngym.envs.pool import Call, EnvRef, Fault, InlinePool, Reply
from turngym.errors import BalanceError, InfraError
from turngym.types import Episode, Turn


def jobs_of(ref: EnvRef, count: int, *, seed: int = 0) -> list[Job]:
    return [Job(number, number // 2, ref, f"vault/{number % 30}", seed) for number in range(count)]


def told(episodes: Sequence[Episode]) -> list[object]:
    """Episodes without what depends on the clock."""
    return [
        (one.number, one.task, one.outcome, one.attempt, [(turn.command, turn.observation, turn.reward) for turn in one.turns])
        for one in episodes
    ]  # fmt: skip


class ShufflingPool(InlinePool):
    """Answers in an order of its own, a few at a time, and repeats old replies."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._rng = np.random.default_rng(seed)
        self._held: list[Reply] = []
        self._given: list[Reply] = []

    def poll(self) -> list[Reply]:
        self._held += super().poll()
        self._rng.shuffle(self._held)
        count = int(self._rng.integers(1, len(self._held) + 1)) if self._held else 0
        replies, self._held = self._held[:count], self._held[count:]
        late = self._given[-2:]
        self._given += replies
        return late + replies


class Watched(NoisyExpertAgent):
    """Keeps which readings were decided together."""

    def __init__(self) -> None:
        super().__init__(noise=(0.4,))
        self.batches: list[list[tuple[int, int]]] = []
        self._batch: list[tuple[int, int]] = []

    def submit(self, reading: Reading) -> None:
        self._batch.append((reading.episode, reading.turn))
        super().submit(reading)

    def step(self) -> list[Decision]:
        self.batches.append(self._batch)
        self._batch = []
        return super().step()[::-1]


def test_episodes_come_in_the_order_of_the_jobs(vault: type[TurnEnv]) -> None:
    # Case 19: the last job finishes first, and its result must not be taken for the first one's.
    scripts: dict[int, Sequence[str]] = {number: ["read"] * (3 - number) + ["smash"] for number in range(4)}
    ended: list[int] = []
    jobs = jobs_of(EnvRef.of(vault), 4)
    episodes = play(
        jobs, pool=InlinePool(), agent=ReplayAgent(scripts), on_episode=lambda one: ended.append(one.number)
    )
    assert ended == [3, 2, 1, 0]
    assert [one.number for one in episodes] == [0, 1, 2, 3]
    assert [len(one.turns) for one in episodes] == [4, 3, 2, 1]
    assert [one.task for one in episodes] == [job.task for job in jobs]
    assert [one.number for one in play(jobs[::-1], pool=InlinePool(), agent=ReplayAgent(scripts))] == [
        3,
        2,
        1,
        0,
    ]


@pytest.mark.parametrize("slots", [1, 3, 64])
def test_the_number_of_slots_changes_no_episode(vault: type[TurnEnv], slots: int) -> None:
    jobs = jobs_of(EnvRef.of(vault), 12)
    wanted = play(jobs, pool=InlinePool(), agent=RandomAgent(), slots=12)
    assert told(play(jobs, pool=InlinePool(), agent=RandomAgent(), slots=slots)) == told(wanted)


def test_no_more_episodes_are_under_way_than_slots(vault: type[TurnEnv]) -> None:
    agent = Watched()
    play(jobs_of(EnvRef.of(vault), 12), pool=InlinePool(), agent=agent, slots=5)
    assert max(len(batch) for batch in agent.batches) == 5


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_answers_changes_neither_episodes_nor_batches(vault: type[TurnEnv], seed: int) -> None:
    jobs = jobs_of(EnvRef.of(vault), 10)
    calm, shuffled = Watched(), Watched()
    wanted = play(jobs, pool=InlinePool(), agent=calm, slots=4)
    got = play(jobs, pool=ShufflingPool(seed), agent=shuffled, slots=4)
    assert told(got) == told(wanted)
    assert shuffled.batches == calm.batches


def test_an_episode_records_all_that_was_played(vault: type[TurnEnv]) -> None:
    ref = EnvRef.of(vault, reward="dense")
    (episode,) = play([Job(5, 2, ref, "vault/3", 9)], pool=InlinePool(), agent=ExpertAgent())
    assert (episode.number, episode.group, episode.seed, episode.attempt) == (5, 2, 9, 0)
    assert (episode.env_id, episode.env_kwargs) == ("Vault", {"reward": "dense"})
    assert episode.instructions.endswith("You have 6 turns.")
    assert (episode.score, episode.max_score, episode.episode_return) == (2.0, 2.0, 1.0)
    assert len(episode.start_key) == 32 and episode.error == ""
    env = vault()
    assert env.reset(seed=9, options={"task": "vault/3"})[0] == episode.observation
    assert [env.step(turn.command)[0] for turn in episode.turns] == [
        turn.observation for turn in episode.turns
    ]


def test_jobs_must_have_numbers_of_their_own(vault: type[TurnEnv]) -> None:
    job = jobs_of(EnvRef.of(vault), 1)[0]
    with pytest.raises(BalanceError, match="share episode numbers"):
        play([job, job], pool=InlinePool(), agent=ExpertAgent())


def test_no_jobs_give_no_episodes() -> None:
    assert play([], pool=InlinePool(), agent=ExpertAgent()) == []


class GivesUp(ExpertAgent):
    """Ends its episode at the second turn."""

    def decide(self, reading: Reading) -> Decision:
        return Decision(reading.episode, "read", ending="token_limit" if reading.turn == 1 else None)


def test_an_agent_may_end_its_episode(vault: type[TurnEnv]) -> None:
    episodes = play(jobs_of(EnvRef.of(vault), 3), pool=InlinePool(), agent=GivesUp(), slots=2)
    assert [(one.outcome, len(one.turns), one.success) for one in episodes] == [("token_limit", 1, False)] * 3


# Faults. `smash` breaks the environment instead of losing.


def breaking(vault: type[TurnEnv], error: Callable[[], Exception | None]) -> EnvRef:
    def act(self: TurnEnv, command: str) -> Turn:
        broken = error() if command == "smash" else None
        if broken is not None:
            raise broken
        return vault.act(self, command)

    return EnvRef.of(type("Breaking", (vault,), {"act": act}))


def times(count: int, error: type[Exception]) -> Callable[[], Exception | None]:
    """Raises `count` times, then never again."""
    left = [count]

    def next_error() -> Exception | None:
        left[0] -= 1
        return error("broken") if left[0] >= 0 else None

    return next_error


def smash(ref: EnvRef, count: int = 1) -> list[Episode]:
    scripts: dict[int, Sequence[str]] = {number: ["read", "smash"] for number in range(count)}
    return play(jobs_of(ref, count), pool=InlinePool(), agent=ReplayAgent(scripts))


def test_a_bug_that_comes_again_is_the_environments(vault: type[TurnEnv]) -> None:
    (episode,) = smash(breaking(vault, lambda: ZeroDivisionError("lamp")))
    assert (episode.outcome, episode.attempt, episode.error) == ("env_fault", 0, "ZeroDivisionError: lamp")
    assert not episode.success and len(episode.turns) == 1


def test_a_failure_that_does_not_come_again_is_tried_again(vault: type[TurnEnv]) -> None:
    (episode,) = smash(breaking(vault, times(1, OSError)))
    assert (episode.outcome, episode.attempt, episode.error) == ("lost", 1, "")
    assert [turn.command for turn in episode.turns] == ["read", "smash"]


def test_an_infra_error_is_tried_again_twice_and_then_counted_apart(vault: type[TurnEnv]) -> None:
    # No replay is asked, so each attempt raises once.
    (second,) = smash(breaking(vault, times(1, InfraError)))
    assert (second.outcome, second.attempt) == ("lost", 1)
    (third,) = smash(breaking(vault, times(2, InfraError)))
    assert (third.outcome, third.attempt) == ("lost", 2)
    (never,) = smash(breaking(vault, lambda: InfraError("The sandbox died.")))
    assert (never.outcome, never.attempt, never.error) == ("infra", 2, "The sandbox died.")


def test_an_error_with_another_text_in_the_replay_is_not_the_same_fault(vault: type[TurnEnv]) -> None:
    count = iter(range(100))
    (episode,) = smash(breaking(vault, lambda: ValueError(f"at {next(count)}")))
    assert episode.outcome == "infra"


def test_a_bug_in_the_expert_is_the_environments_too(vault: type[TurnEnv]) -> None:
    def plan(self: TurnEnv) -> list[str]:
        raise KeyError("north")

    ref = EnvRef.of(type("Planless", (vault,), {"plan": plan}))
    (episode,) = play(jobs_of(ref, 1), pool=InlinePool(), agent=ExpertAgent())
    assert (episode.outcome, episode.turns) == ("env_fault", ())


def test_infra_failures_leave_the_other_episodes_as_they_are(vault: type[TurnEnv]) -> None:
    # Case 15: two wins, a loss and a dead sandbox are 2 of 3, with 1 of 4 counted beside it.
    ref = breaking(vault, lambda: InfraError("The sandbox died."))
    scripts: dict[int, Sequence[str]] = {2: [], 3: ["smash"]}
    for number in range(2):
        env = ref.make()
        env.reset(seed=0, options={"task": f"vault/{number}"})
        scripts[number] = env.plan()
    agent = ReplayAgent(scripts)
    episodes = play(jobs_of(ref, 4), pool=InlinePool(), agent=agent)
    assert [one.outcome for one in episodes] == ["won", "won", "turn_limit", "infra"]
    counted = [one for one in episodes if one.outcome != "infra"]
    assert sum(one.success for one in counted) / len(counted) == pytest.approx(2 / 3)
    assert (len(episodes) - len(counted)) / len(episodes) == 0.25


def test_a_fifth_fault_among_two_hundred_stops_the_run(vault: type[TurnEnv]) -> None:
    ref = breaking(vault, lambda: ZeroDivisionError("lamp"))
    assert [one.outcome for one in smash(ref, 4)] == ["env_fault"] * 4
    with pytest.raises(
        InfraError, match=r"^5 of the last 5 episodes .*ZeroDivisionError: lamp .*turngym check"
    ):
        smash(ref, 5)


def test_the_ceiling_looks_at_the_last_episodes_only() -> None:
    ceiling = FaultCeiling()
    for _ in range(3):
        for faulty in [True] * 4 + [False] * (FAULT_WINDOW - 4):
            ceiling.count(faulty, "broken")
    for _ in range(4):
        ceiling.count(True, "broken")
    with pytest.raises(InfraError):
        ceiling.count(True, "broken")


def test_a_ceiling_is_shared_between_rollouts(vault: type[TurnEnv]) -> None:
    ceiling = FaultCeiling()
    ref = breaking(vault, lambda: ZeroDivisionError("lamp"))
    agent = ReplayAgent({number: ["smash"] for number in range(3)})
    play(jobs_of(ref, 3), pool=InlinePool(), agent=agent, ceiling=ceiling)
    with pytest.raises(InfraError):
        play(jobs_of(ref, 3), pool=InlinePool(), agent=agent, ceiling=ceiling)


class LosingPool(InlinePool):
    """Forgets its calls."""

    def poll(self) -> list[Reply]:
        return []


def test_a_pool_that_loses_a_call_is_found_out(vault: type[TurnEnv]) -> None:
    with pytest.raises(BalanceError, match="lost 2 of 2 open calls"):
        play(jobs_of(EnvRef.of(vault), 2), pool=LosingPool(), agent=ExpertAgent())


class LatePool(InlinePool):
    """Fails the first attempt of each reset, and answers it late, beside the second attempt's reply."""

    def __init__(self) -> None:
        super().__init__()
        self._late: list[Reply] = []
        self._failed: list[Reply] = []

    def submit(self, call: Call) -> None:
        if call.key.attempt == 0 and call.key.turn == 0:
            super().submit(call)
            self._late += super().poll()
            self._failed.append(Reply(call.key, fault=Fault(infra=True, text="No answer in 1.0 s.")))
        else:
            super().submit(call)

    def poll(self) -> list[Reply]:
        failed, self._failed = self._failed, []
        return failed or [*self._late, *super().poll()]


def test_a_late_reply_of_an_attempt_given_up_is_never_applied(vault: type[TurnEnv]) -> None:
    (episode,) = play(jobs_of(EnvRef.of(vault), 1), pool=LatePool(), agent=ExpertAgent())
    assert (episode.outcome, episode.attempt, len(episode.turns)) == ("won", 1, 2)
