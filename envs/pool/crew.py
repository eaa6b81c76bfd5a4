"""The worker processes of a pool: who serves, who is spare, who is on the way out."""

import logging
import selectors
import time
from collections import Counter
from collections.abc import Iterator

from turngym.envs.pool.contract import PoolCounts
from turngym.envs.pool.messages import Know, Leave
from turngym.envs.pool.process import WorkerProcess
from turngym.errors import InfraError

logger = logging.getLogger(__name__)

LEAVE_S = 3.0
"""How long a worker that was told to leave may take to close its environments."""


class Crew:
    """A fixed number of serving workers and, once they have started, one spare that waits warm.

    Attributes:
        serving: the workers that take new episodes; fewer than asked only after one could not be replaced.
        retiring: workers that only finish what they have.
        tally: what happened, by the names of `PoolCounts`.
    """

    def __init__(self, size: int) -> None:
        self.tally: Counter[str] = Counter()
        self.retiring: list[WorkerProcess] = []
        self._envs: list[Know] = []
        self._leaving: list[tuple[WorkerProcess, float]] = []
        self._spare: WorkerProcess | None = None
        self._wants_spare = True
        self.serving: list[WorkerProcess] = []
        try:
            for _ in range(size):
                self.serving.append(self._start())
        except BaseException:
            self.close()
            raise

    @property
    def counts(self) -> PoolCounts:
        return PoolCounts(**self.tally)

    def everyone(self) -> Iterator[WorkerProcess]:
        """All workers but those that were told to leave."""
        yield from self.serving
        yield from self.retiring
        if self._spare is not None:
            yield self._spare

    def tell(self, know: Know) -> None:
        """Makes an environment known to all workers, those to come included."""
        self._envs.append(know)
        for worker in self.everyone():
            worker.send(know)

    def next_worker(self) -> WorkerProcess:
        """Who serves the next episode: the one with the fewest, the first of equals."""
        if not self.serving:
            self.serving.append(self._new())
        return min(self.serving, key=lambda worker: len(worker.episodes))

    def take_fresh(self) -> WorkerProcess:
        """A worker that has served no episode, for one purpose: it counts as retiring."""
        worker = self._new()
        self.retiring.append(worker)
        return worker

    def keep_spare(self) -> None:
        """Starts a spare worker where there is none, once the others have started."""
        if self._spare is None and self._wants_spare and all(worker.ready for worker in self.serving):
            try:
                self._spare = self._start()
            except InfraError as error:
                self.give_up_spare(str(error))

    def give_up_spare(self, why: str) -> None:
        """Starts no spare any more; the others go on, and a lost one is still replaced."""
        logger.warning("%s The pool goes on without a spare worker.", why)
        self._wants_spare = False

    def retire(self, worker: WorkerProcess) -> None:
        """Replaces a serving worker, which finishes its episodes."""
        self.tally["recycled"] += 1
        self.retiring.append(worker)
        self._replace(worker)

    def remove(self, worker: WorkerProcess) -> bool:
        """Takes a worker out that has ended, and says whether it was the spare; in a serving one's place steps another."""
        if worker is self._spare:
            self._spare = None
            return True
        if worker in self.retiring:
            self.retiring.remove(worker)
        else:
            self._replace(worker)
        return False

    def send_away(self, worker: WorkerProcess) -> None:
        """Lets a retiring worker close its environments and end."""
        self.retiring.remove(worker)
        worker.send(Leave())
        self._leaving.append((worker, time.monotonic() + LEAVE_S))

    def wait(self, timeout_s: float) -> list[WorkerProcess]:
        """Workers that have something to be read, after at most this time; sends meanwhile what waits."""
        with selectors.PollSelector() as selector:
            for worker in self.everyone():
                write = selectors.EVENT_WRITE if worker.wants_to_write else 0
                selector.register(worker, selectors.EVENT_READ | write, worker)
            found = selector.select(timeout_s)
        for key, events in found:
            if events & selectors.EVENT_WRITE:
                key.data.flush()
        return [key.data for key, events in found if events & selectors.EVENT_READ]

    def bury(self) -> None:
        """Reaps the workers that have left, and kills those that take too long."""
        for worker, limit in list(self._leaving):
            worker.flush()
            worker.receive()
            if worker.has_ended() or time.monotonic() > limit:
                worker.kill()
                worker.close()
                self._leaving.remove((worker, limit))

    def close(self) -> None:
        """Lets all workers close their environments and end; kills those that take too long."""
        now = time.monotonic()
        for worker in self.everyone():
            worker.receive()
            worker.send(Leave())
            # One that has not started has no environments.
            self._leaving.append((worker, now + LEAVE_S if worker.ready else now))
        self.serving, self.retiring, self._spare = [], [], None
        while self._leaving:
            self.bury()
            if self._leaving:
                time.sleep(0.01)

    def _replace(self, worker: WorkerProcess) -> None:
        place = self.serving.index(worker)
        del self.serving[place]  # First, so that it is out even if no other can be started.
        self.serving.insert(place, self._new())

    def _new(self) -> WorkerProcess:
        worker, self._spare = self._spare, None
        return worker or self._start()

    def _start(self) -> WorkerProcess:
        try:
            worker = WorkerProcess(self.tally["started"])
        except OSError as error:
            raise InfraError(f"No worker process can be started: {error}. Use fewer workers.") from error
        self.tally["started"] += 1
        for know in self._envs:
            worker.send(know)
        return worker
