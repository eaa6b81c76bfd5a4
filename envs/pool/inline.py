"""The pool without worker processes, for environments that are cheap and behave."""

from collections import deque
from collections.abc import Sequence

from turngym.envs.pool.contract import ENV_ERRORS, Call, Fault, Key, PoolCounts, Reply, Wants, check_open
from turngym.envs.pool.reference import EnvRef
from turngym.envs.pool.serving import EnvServer, Prepared, answer, close_quietly, fault_of


class InlinePool:
    """Calls run in this process, one after the other, in the order submitted."""

    def __init__(self) -> None:
        self._waiting: deque[Call] = deque()
        self._answered: list[Reply] = []
        self._server = EnvServer()
        self._prepared = Prepared()
        self._closed = False

    @property
    def counts(self) -> PoolCounts | None:
        return None

    def prepare(self, env: EnvRef, tasks: Sequence[str]) -> None:
        check_open(self._closed)
        self._prepared.once(env, tasks)

    def submit(self, call: Call) -> None:
        check_open(self._closed)
        if call.key.turn == 0:
            self._abandon(call.key.episode)
        self._waiting.append(call)

    def poll(self) -> list[Reply]:
        check_open(self._closed)
        while self._waiting:
            # One that raises stops here; the others keep their answers, and their turn, for the next poll.
            self._answered.append(self._server.answer(self._waiting.popleft()))
        answered, self._answered = self._answered, []
        return answered

    def release(self, episode: int) -> None:
        self._abandon(episode)
        self._server.release(episode)

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        check_open(self._closed)
        turn, fresh = 0, None
        try:
            fresh = env.make(list_commands=wants.admissible)
            for turn, command in enumerate(["", *commands]):
                answer(fresh, Call(Key(0, 0, turn), env, task, seed, command, wants))
        except ENV_ERRORS as error:
            return turn, fault_of(error)
        finally:
            if fresh is not None:
                close_quietly(fresh)
        return None

    def close(self) -> None:
        self._closed = True
        self._waiting.clear()
        self._answered.clear()
        self._server.close()

    def _abandon(self, episode: int) -> None:
        """Drops what an episode asked and nobody waits for any more."""
        self._waiting = deque(call for call in self._waiting if call.key.episode != episode)
        self._answered = [reply for reply in self._answered if reply.key.episode != episode]
