"""The only loop whose episodes are trained on, scored or saved."""

import logging
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from turngym.agents.base import Agent, Decision, Job, Reading
from turngym.envs.pool import Call, EnvPool, Fault, Key, Reply
from turngym.errors import BalanceError, InfraError
from turngym.types import Episode, Outcome, PlayedTurn, TurnInfo

logger = logging.getLogger(__name__)

INFRA_RETRIES = 2
FAULT_WINDOW = 200
FAULT_CEILING = 0.02


@dataclass(slots=True)
class _Playing:
    """An episode under way."""

    job: Job
    attempt: int = 0
    open: Key | None = None
    instructions: str = ""
    first_observation: str = ""
    start_key: str = ""
    info: TurnInfo | None = None
    turns: list[PlayedTurn] = field(default_factory=list)
    decision: Decision | None = None
    commands: list[str] = field(default_factory=list)


class FaultCeiling:
    """Stops a run in which more than 2 % of the last 200 episodes ended by a fault."""

    def __init__(self) -> None:
        self._recent: deque[bool] = deque(maxlen=FAULT_WINDOW)

    def count(self, faulty: bool, text: str) -> None:
        """Counts one ended episode.

        Raises:
            InfraError: the ceiling is passed.
        """
        self._recent.append(faulty)
        if sum(self._recent) > FAULT_CEILING * FAULT_WINDOW:
            raise InfraError(
                f"{sum(self._recent)} of the last {len(self._recent)} episodes failed by no fault of the agent "
                f"(ceiling {FAULT_CEILING:.0%} of {FAULT_WINDOW}). Last: {text} Run `turngym check` on the environment."
            )


def play(
    jobs: Iterable[Job],
    *,
    pool: EnvPool,
    agent: Agent,
    slots: int = 64,
    ceiling: FaultCeiling | None = None,
    on_episode: Callable[[Episode], None] | None = None,
) -> list[Episode]:
    """Plays all jobs and returns their episodes in the order of the jobs.

    The schedule is deterministic: in each round all open environment calls are answered, the agent reads
    them in the order of episode numbers, and decides; so which rows share a batch depends on episode
    numbers and tokens only, never on who answered first.

    Args:
        slots: most episodes under way at one time.
        on_episode: called with each episode as it ends.

    Raises:
        InfraError: too many episodes failed by no fault of the agent.
    """
    jobs = list(jobs)
    if len({job.number for job in jobs}) != len(jobs):
        raise BalanceError(f"{len(jobs)} jobs share episode numbers. Give each job a number of its own.")
    ended: dict[int, Episode] = {}
    playing: dict[int, _Playing] = {}
    try:
        for episode in _play(jobs, playing, pool, agent, slots, ceiling or FaultCeiling()):
            ended[episode.number] = episode
            if on_episode is not None:
                on_episode(episode)
    finally:
        for number in playing:  # Where the rollout is broken off: the pool may serve others.
            pool.release(number)
    if len(ended) != len(jobs):
        raise BalanceError(f"{len(jobs)} episodes asked, {len(ended)} ended.")
    return [ended[job.number] for job in jobs]


def _play(
    jobs: list[Job],
    playing: dict[int, _Playing],
    pool: EnvPool,
    agent: Agent,
    slots: int,
    ceiling: FaultCeiling,
) -> Iterator[Episode]:
    waiting = deque(jobs)
    while waiting or playing:
        while waiting and len(playing) < slots:
            job = waiting.popleft()
            playing[job.number] = _Playing(job)
            _reset(pool, agent, playing[job.number])
        for reply in _replies(pool, {now.open for now in playing.values() if now.open is not None}):
            now = playing[reply.key.episode]
            now.open = None
            episode = _read(reply, now, pool, agent)
            if episode is not None:
                del playing[now.job.number]
                ceiling.count(episode.outcome in ("infra", "env_fault"), episode.error)
                yield episode
        for decision in sorted(agent.step(), key=lambda decision: decision.episode):
            now = playing[decision.episode]
            if decision.ending is not None:
                del playing[decision.episode]
                episode = _end(now, pool, agent, decision.ending)
                ceiling.count(False, "")
                yield episode
                continue
            now.decision = decision
            now.commands.append(decision.command)
            now.open = Key(now.job.number, now.attempt, len(now.commands))
            pool.submit(Call(now.open, now.job.env, command=decision.command, wants=agent.wants))


def _reset(pool: EnvPool, agent: Agent, now: _Playing) -> None:
    job = now.job
    now.open = Key(job.number, now.attempt, 0)
    pool.submit(Call(now.open, job.env, task=job.task, seed=job.seed, wants=agent.wants))


def _replies(pool: EnvPool, wanted: set[Key]) -> list[Reply]:
    """The reply to each open call, in the order of episodes; late and doubled ones are dropped."""
    replies: dict[Key, Reply] = {}
    while len(replies) < len(wanted):
        arrived = pool.poll()
        if not arrived:
            raise BalanceError(f"The pool has lost {len(wanted) - len(replies)} of {len(wanted)} open calls.")
        for reply in arrived:
            if reply.key in wanted:
                replies.setdefault(reply.key, reply)
    return [replies[key] for key in sorted(replies)]


def _read(reply: Reply, now: _Playing, pool: EnvPool, agent: Agent) -> Episode | None:
    """Applies a reply: the episode when it ended by it, else None with the agent reading on."""
    if reply.fault is not None:
        return _fail(reply.fault, now, pool, agent)
    info = reply.info
    if info is None:
        raise BalanceError("A reply without fault must bring its info.")
    now.info = info
    if now.decision is None:
        now.instructions = info.instructions or ""
        now.first_observation = reply.observation
        now.start_key = info.start_key
    else:
        decision = now.decision
        now.turns.append(
            PlayedTurn(
                command=decision.command,
                observation=reply.observation,
                reward=reply.reward,
                score=info.score,
                valid=info.valid,
                author=decision.author,
                thought=decision.thought,
                finish_reason=decision.finish_reason,
                latency_s=reply.latency_s,
            )
        )
    if info.outcome != "running":
        return _end(now, pool, agent, info.outcome)
    job = now.job
    agent.submit(
        Reading(
            job.number, now.attempt, len(now.turns), job.seed, reply.observation, info,
            reply.plan, reply.inquiry, reply.command_words,
        )
    )  # fmt: skip
    return None


def _end(now: _Playing, pool: EnvPool, agent: Agent, outcome: Outcome, error: str = "") -> Episode:
    job, info = now.job, now.info
    last = now.turns[-1].observation if now.turns else now.first_observation
    segments = agent.finish(job.number, last)
    pool.release(job.number)
    return Episode(
        number=job.number,
        group=job.group,
        env_id=job.env.env_id,
        env_kwargs=dict(job.env.kwargs),
        task=job.task,
        seed=job.seed,
        attempt=now.attempt,
        agent=agent.name,
        instructions=now.instructions,
        observation=now.first_observation,
        turns=tuple(now.turns),
        outcome=outcome,
        score=info.score if info else 0.0,
        max_score=info.max_score if info else 0.0,
        start_key=now.start_key,
        segments=segments,
        weights_version=agent.weights_version,
        error=error,
    )


def _fail(fault: Fault, now: _Playing, pool: EnvPool, agent: Agent) -> Episode | None:
    """Judges a fault by replay, unless it is ours: the environment's own ends the episode, others are tried again."""
    job, turn = now.job, len(now.commands)
    again = None if fault.infra else pool.replay(job.env, job.task, job.seed, now.commands, agent.wants)
    if again is not None and again[0] == turn and again[1].is_like(fault):
        logger.warning("Task %s: the environment failed at turn %d, twice: %s", job.task, turn, fault.text)
        return _end(now, pool, agent, "env_fault", fault.text)
    if now.attempt >= INFRA_RETRIES:
        return _end(now, pool, agent, "infra", fault.text)
    logger.warning("Task %s: %s Trying again (attempt %d).", job.task, fault.text, now.attempt + 1)
    agent.finish(job.number, "")
    pool.release(job.number)
    now.attempt += 1
    now.turns, now.commands, now.decision, now.info = [], [], None, None
    _reset(pool, agent, now)
    return None
