"""The pool without worker processes, for environments that are cheap and behave."""

from collections.abc import Sequence

from turngym.envs.pool.contract import Call, EnvRef, Fault, Key, PoolCounts, Reply, Wants
from turngym.envs.pool.serving import EnvServer, Prepared, answer, close_faulty, fault_of


class InlinePool:
    """Calls run in this process, one after the other, in the order submitted."""

    def __init__(self) -> None:
        self._waiting: list[Call] = []
        self._server = EnvServer()
        self._prepared = Prepared()

    @property
    def counts(self) -> PoolCounts | None:
        return None

    def prepare(self, env: EnvRef, tasks: Sequence[str]) -> None:
        self._prepared.once(env, tasks)

    def submit(self, call: Call) -> None:
        self._waiting.append(call)

    def poll(self) -> list[Reply]:
        calls, self._waiting = self._waiting, []
        return [self._server.answer(call) for call in calls]

    def release(self, episode: int) -> None:
        self._server.release(episode)

    def replay(
        self, env: EnvRef, task: str, seed: int, commands: Sequence[str], wants: Wants
    ) -> tuple[int, Fault] | None:
        turn, fresh = 0, None
        try:
            fresh = env.make(list_commands=wants.admissible)
            for turn, command in enumerate(["", *commands]):
                answer(fresh, Call(Key(0, 0, turn), env, task, seed, command, wants))
        except Exception as error:  # noqa: BLE001 - the border to the environment's code
            return turn, fault_of(error)
        finally:
            if fresh is not None:
                close_faulty(fresh)
        return None

    def close(self) -> None:
        self._server.close()
