"""The pool of worker processes: a call that hangs or kills its worker costs that worker, and the run goes on."""

import itertools
import logging
import time
from collections.abc import Hashable, Sequence
from pickle import PicklingError
from typing import NamedTuple

from turngym.envs.pool.contract import (
    Call,
    Fault,
    Key,
    PoolCounts,
    PoolLimits,
    Reply,
    Wants,
    check_open,
)
from turngym.envs.pool.crew import Crew
from turngym.envs.pool.messages import Answer, Ask, Free, Know, Raised
from turngym.envs.pool.packing import pack
from turngym.envs.pool.process import WorkerProcess
from turngym.envs.pool.reference import EnvRef
from turngym.envs.pool.serving import Prepared, fault_of, no_environment
from turngym.errors import ConfigError, InfraError

logger = logging.getLogger(__name__)

TICK_S = 1.0
"""Time between two looks at the workers' memory and lives, while something is waited for."""

FAILED_STARTS = 2
"""How many workers may end while they start, one after the other, before the pool gives up: as many as a rollout tries
an episode again."""

_REPLAY = -1  # The episode number of replays; those of jobs begin at 0.


class _Seat(NamedTuple):
    """Where an episode is played: the worker, and the environment's number there."""

    worker: WorkerProcess
    number: int


class ProcessPool:
    """Environments in worker processes, each of which serves many episodes.

    An episode stays with one worker: the one that had the fewest when it began. So who serves it depends on the
    order of `submit` and `release` alone; what is answered depends on neither.

    Args:
        workers: number of processes; one more waits as a spare.
        limits: when a worker is given up or replaced.
        envs: environments whose modules the workers import while they start.

    Raises:
        ConfigError: an environment cannot be made in another process.
        InfraError: no worker process can be started.
    """

    def __init__(
        self, workers: int, *, limits: PoolLimits | None = None, envs: Sequence[EnvRef] = ()
    ) -> None:
        self._limits = limits or PoolLimits()
        packed = [(env, pack(env)) for env in envs]
        self._crew = Crew(workers)
        self._seats: dict[int, _Seat] = {}
        # A key may be asked again; an answer counts for its own asking alone.
        self._open: dict[Key, Ask] = {}
        self._arrived: list[Reply] = []
        self._replayed: dict[Key, Reply] = {}
        self._raised: list[Raised] = []
        self._numbers: dict[Hashable, int] = {}
        self._prepared = Prepared()
        self._replays = itertools.count()
        self._failed_starts = 0
        self._last_failed = -1
        self._closed = False
        self._looked = time.monotonic()
        for env, data in packed:
            self._tell(env, data)

    @property
    def counts(self) -> PoolCounts | None:
        return self._crew.counts

    def prepare(self, env: EnvRef, tasks: Sequence[str]) -> None:
        check_open(self._closed)
        self._number(env)
        self._prepared.once(env, tasks)

    def submit(self, call: Call) -> None:
        check_open(self._closed)
        episode = call.key.episode
        if call.key.turn == 0:
            self._begin(call)
        if episode in self._seats:
            self._ask(self._seats[episode], call)
        else:
            fault = Fault(infra=True, text=no_environment(episode), worker_lost=True)
            self._arrived.append(Reply(call.key, fault=fault))

    def poll(self) -> list[Reply]:
        check_open(self._closed)
        while self._open and not self._arrived and not self._raised:
            self._turn()
        if self._raised:
            raise self._raised.pop(0).error
        self._crew.keep_spare()
        arrived, self._arrived = self._arrived, []
        return arrived

    def release(self, episode: int) -> None:
        self._abandon(episode)
        seat = self._seats.pop(episode, None)
        if seat is not None:
            seat.worker.episodes.discard(episode)
            seat.worker.send(Free(episode))
            self._retire_or_keep(seat.worker)

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        check_open(self._closed)
        number, attempt, worker = self._number(env), next(self._replays), self._crew.take_fresh()
        seat = self._seats[_REPLAY] = _Seat(worker, number)
        keys = [Key(_REPLAY, attempt, turn) for turn in range(len(commands) + 1)]
        try:
            for key, command in zip(keys, ["", *commands], strict=True):
                self._ask(seat, Call(key, env, task, seed, command, wants))
            for key in keys:
                while key not in self._replayed:
                    self._turn()
                fault = self._replayed[key].fault
                if fault is not None:
                    return key.turn, fault
            return None
        finally:
            self._abandon(_REPLAY)
            self._seats.pop(_REPLAY, None)
            self._replayed.clear()
            if worker in self._crew.retiring:
                self._crew.send_away(worker)

    def close(self) -> None:
        self._closed = True
        self._seats, self._open, self._arrived, self._raised = {}, {}, [], []
        self._crew.close()

    # What goes out.

    def _begin(self, call: Call) -> None:
        """Gives an episode its seat; with a seed it may be another than that of its last attempt."""
        episode = call.key.episode
        if call.seed is not None:
            self.release(episode)
        else:
            self._abandon(episode)
        seat = self._seats.get(episode)
        number = self._number(call.env)
        worker = self._crew.next_worker() if seat is None else seat.worker
        worker.episodes.add(episode)
        worker.served += 1
        self._seats[episode] = _Seat(worker, number)

    def _ask(self, seat: _Seat, call: Call) -> None:
        ask = Ask(call.key, seat.number, call.task, call.seed, call.command, call.wants, call.options)
        try:
            seat.worker.send(ask)
        except PicklingError as error:
            raise ConfigError(
                f"A call cannot be sent to a worker process: {error}. Set workers to 0."
            ) from error
        self._open[call.key] = ask

    def _abandon(self, episode: int) -> None:
        """Waits no more for what an episode asked; replies that have arrived are dropped, later ones will be."""
        self._open = {key: ask for key, ask in self._open.items() if key.episode != episode}
        kept = [reply for reply in self._arrived if reply.key.episode != episode]
        self._crew.tally["late_replies"] += len(self._arrived) - len(kept)
        self._arrived = kept
        self._raised = [raised for raised in self._raised if raised.key.episode != episode]

    def _number(self, env: EnvRef) -> int:
        known = self._numbers.get(env.key)
        return known if known is not None else self._tell(env, pack(env))

    def _tell(self, env: EnvRef, packed: bytes) -> int:
        number = self._numbers[env.key] = len(self._numbers)
        self._crew.tell(Know(number, packed))
        return number

    def _retire_or_keep(self, worker: WorkerProcess) -> None:
        """Replaces a worker that is past a limit, and sends a replaced one away when its episodes are over."""
        if worker in self._crew.serving:
            memory_mb = worker.memory_mb()
            if worker.served < self._limits.episodes and memory_mb <= self._limits.memory_mb:
                return
            logger.info(
                "Worker %d is replaced after %d episodes, at %.0f MB.", worker.name, worker.served, memory_mb
            )
            self._crew.retire(worker)
        if not worker.episodes:
            self._crew.send_away(worker)

    # What comes back.

    def _turn(self) -> None:
        """Waits until something arrives, or until it is time to look after the workers, and deals with it."""
        for worker in self._crew.wait(self._patience_s()):
            for answer in worker.receive():
                self._take(answer)
            if worker.has_begun and worker.name > self._last_failed:
                self._failed_starts = 0
            if worker.gone:
                self._lose(worker)
        now = time.monotonic()
        deadline_s = self._limits.deadline_s
        for worker in list(self._crew.everyone()):
            if worker.remaining_s(deadline_s, now) <= 0:
                self._crew.tally["deadline_misses"] += 1
                self._lose(worker, f"No answer in {worker.limit_s(deadline_s):g} s (the deadline).")
        if now - self._looked >= TICK_S:
            self._looked = now
            self._look()

    def _look(self) -> None:
        """Finds workers that are too large, and those that ended while something they started holds the connection."""
        hard_mb = 2 * self._limits.memory_mb
        for worker in list(self._crew.everyone()):
            if worker.has_ended():
                self._lose(worker)
            elif worker.memory_mb() > hard_mb:
                self._lose(worker, f"Its worker process grew past {hard_mb:g} MB.")
        self._crew.bury()

    def _patience_s(self) -> float:
        now, deadline_s = time.monotonic(), self._limits.deadline_s
        remaining = (worker.remaining_s(deadline_s, now) for worker in self._crew.everyone())
        return max(0.0, min([TICK_S, *remaining]))

    def _take(self, answer: Answer) -> None:
        ask, said = answer
        if isinstance(said, Reply):
            self._settle(ask, said)
        elif self._is_open(ask) and ask.key.episode != _REPLAY:
            del self._open[ask.key]
            self._raised.append(said)
        else:
            self._settle(ask, Reply(ask.key, fault=fault_of(said.error)))

    def _is_open(self, ask: Ask) -> bool:
        return self._open.get(ask.key) is ask

    def _settle(self, ask: Ask, reply: Reply) -> None:
        """Keeps a reply for who waits for it; one that nobody waits for is dropped."""
        if not self._is_open(ask):
            self._crew.tally["late_replies"] += 1
            return
        del self._open[ask.key]
        if ask.key.episode == _REPLAY:
            self._replayed[ask.key] = reply
        else:
            self._arrived.append(reply)

    def _lose(self, worker: WorkerProcess, reason: str = "") -> None:
        """Ends a worker: by a reason of ours, or because it is over. Its calls fail, and its episodes lose their seats.

        Raises:
            InfraError: too many have ended while they started, or no other can be started.
        """
        if not reason:
            for answer in worker.receive():  # What it said before it ended holds.
                self._take(answer)
        running = worker.running
        waiting = [ask for ask in worker.sent if isinstance(ask, Ask) and self._is_open(ask)]
        how = worker.kill()
        self._crew.tally["killed" if reason else "died"] += 1
        self._crew.tally["late_replies"] += len(worker.receive())
        worker.close()
        text = reason or f"Its worker process ended ({how})."
        for episode in worker.episodes:
            self._seats.pop(episode, None)
        for ask in waiting:
            mine = ask is running
            fault = Fault(not mine, text if mine else f"Lost with its worker: {text}", worker_lost=True)
            self._settle(ask, Reply(ask.key, fault=fault))
        logger.warning(
            "Worker %d: %s At %s; %d episodes lost their environments.",
            worker.name,
            text,
            running.key if running else "no call",
            len(worker.episodes),
        )
        was_spare = self._crew.remove(worker)
        if worker.has_begun:
            return
        self._failed_starts, self._last_failed = self._failed_starts + 1, worker.name
        if self._failed_starts > FAILED_STARTS:
            what = "while they imported environments" if worker.ready else "while they started"
            fact = (
                f"{self._failed_starts} worker processes ended one after the other {what}. The last: {text}"
            )
            if not was_spare:
                raise InfraError(f"{fact} What they said themselves stands above; or set workers to 0.")
            self._crew.give_up_spare(fact)
