"""`PoolVectorEnv`: Gymnasium's vector environment over a pool."""

import copy
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from gymnasium.error import ResetNeeded
from gymnasium.vector import AutoresetMode, VectorEnv
from gymnasium.vector.utils import batch_space

from turngym import seeding
from turngym.envs.pool import Call, EnvPool, EnvRef, Key, Reply, Wants
from turngym.envs.vector.arguments import read_actions, read_mask, read_options, read_seeds
from turngym.errors import BalanceError, EnvContractError, InfraError
from turngym.types import TurnInfo

logger = logging.getLogger(__name__)

RESET_TRIES = 3

Vector = np.ndarray[Any, np.dtype[Any]]
Stepped = tuple[tuple[str, ...], Vector, Vector, Vector, dict[str, Any]]


@dataclass(slots=True)
class _Part:
    """One environment of the vector: the attempts begun, and where the present one stands."""

    attempt: int = 0
    turn: int = 0
    seed: int | None = None
    observation: str = ""
    info: TurnInfo | None = None
    ended: bool = False
    lost: bool = False


class PoolVectorEnv(VectorEnv[tuple[str, ...], Sequence[str] | Vector, Vector]):
    """`num_envs` environments behind one `reset` and one `step`; `make_vec` makes it.

    Args:
        ref: the environment.
        pool: serves them, and is closed with this.
        mode: what is done with a part that has ended.
    """

    def __init__(self, ref: EnvRef, num_envs: int, pool: EnvPool, mode: AutoresetMode) -> None:
        made = ref.make(list_commands=None)
        self.num_envs = num_envs
        self.spec = copy.deepcopy(made.spec)
        self.metadata = {**made.metadata, "autoreset_mode": mode}
        self.single_observation_space = made.observation_space
        self.single_action_space = made.action_space
        self.observation_space = batch_space(made.observation_space, num_envs)
        self.action_space = batch_space(made.action_space, num_envs)
        self._wants = Wants(admissible=made.list_commands)
        made.close()
        self._ref, self._pool, self._mode = ref, pool, mode
        self._parts = [_Part() for _ in range(num_envs)]

    def reset(
        self, *, seed: int | Sequence[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[tuple[str, ...], dict[str, Any]]:
        """Starts an episode in every part.

        Args:
            seed: of the first part, the others follow by one; or one for each part; None goes on with their chance.
            options: {"task": id} or {"split": name} for all parts; a list of ids under "task" gives each its own.
                {"reset_mask": bool array} resets these parts only; their infos alone come back.

        Raises:
            ValueError, TypeError: seeds, tasks or mask of another number or kind.
            TaskError, ConfigError: as of the environment's `reset`.
            InfraError: workers died or hung at a reset, several times.
        """
        seeds = read_seeds(seed, self.num_envs)
        options = dict(options or {})
        chosen = read_mask(options.pop("reset_mask", None), self.num_envs)
        each = read_options(options, self.num_envs)
        for i in chosen:
            self._parts[i].seed = self._parts[i].seed if seeds[i] is None else seeds[i]
        found = self._reset(chosen, seeds, each)
        infos: dict[str, Any] = {}
        for i in chosen:
            infos = self._add_info(infos, found[i], i)
        return self._observations(), infos

    def step(self, actions: Sequence[str] | Vector) -> Stepped:
        """Plays a turn in every part.

        Args:
            actions: (num_envs,) str, of any sequence or array.

        Returns:
            observations, rewards, terminations, truncations, infos.

        Raises:
            ResetNeeded: before the first reset, or, with autoreset disabled, where a part has ended.
            ValueError, TypeError: actions of another number or kind.
            EnvContractError: an environment raised.
        """
        ended = [i for i, part in enumerate(self._parts) if part.ended]
        self._check_running(ended)
        playing = [i for i in range(self.num_envs) if not self._parts[i].ended]
        commands = read_actions(actions, self.num_envs, playing)
        for i in ended:
            self._ask_reset(i, None, {})
        for i in playing:
            self._ask_step(i, commands[i])
        replies = self._replies(self._key(i) for i in range(self.num_envs))
        rewards = np.zeros(self.num_envs)
        terminations, truncations = (np.zeros(self.num_envs, dtype=np.bool_) for _ in range(2))
        found = self._settle_resets(ended, replies)
        for i in playing:
            rewards[i], found[i] = self._settle_step(i, replies[self._key(i)])
            terminations[i] = found[i]["outcome"] in ("won", "lost")
            truncations[i] = self._parts[i].ended and not terminations[i]
        finals: dict[int, dict[str, Any]] = {}
        if self._mode is AutoresetMode.SAME_STEP:
            over = [i for i in playing if self._parts[i].ended]
            finals = {i: {"final_obs": self._parts[i].observation, "final_info": found[i]} for i in over}
            found |= self._reset(over, [None] * self.num_envs, [{}] * self.num_envs)
        infos: dict[str, Any] = {}
        for i in range(self.num_envs):
            infos = self._add_info(self._add_info(infos, finals.get(i, {}), i), found[i], i)
        return self._observations(), rewards, terminations, truncations, infos

    def close_extras(self, **kwargs: Any) -> None:
        """Ends all environments and workers."""
        self._pool.close()

    def _check_running(self, ended: Sequence[int]) -> None:
        absent = [i for i, part in enumerate(self._parts) if part.info is None]
        if absent:
            raise ResetNeeded(f"No episode has begun in parts {absent}. Call reset() first.")
        if ended and self._mode is AutoresetMode.DISABLED:
            raise ResetNeeded(
                f"The episodes of parts {list(ended)} have ended. Call reset(options={{'reset_mask': ...}}) first."
            )

    # What the pool does with it. Part i is the pool's episode i; each reset is a new attempt of it.

    def _key(self, i: int) -> Key:
        return Key(i, self._parts[i].attempt, self._parts[i].turn)

    def _ask_reset(self, i: int, seed: int | None, options: dict[str, Any]) -> None:
        part = self._parts[i]
        part.attempt, part.turn, part.info = part.attempt + 1, 0, None
        if part.lost and seed is None and part.seed is not None:
            # A new environment has no chance of its own to go on with.
            seed = seeding.integer(part.seed, "vector", part.attempt)
        self._pool.submit(Call(self._key(i), self._ref, seed=seed, wants=self._wants, options=options))

    def _ask_step(self, i: int, command: str) -> None:
        self._parts[i].turn += 1
        self._pool.submit(Call(self._key(i), self._ref, command=command, wants=self._wants))

    def _replies(self, keys: Iterable[Key]) -> dict[Key, Reply]:
        wanted, replies = set(keys), dict[Key, Reply]()
        while len(replies) < len(wanted):
            arrived = self._pool.poll()
            if not arrived:
                raise BalanceError(
                    f"The pool has lost {len(wanted) - len(replies)} of {len(wanted)} open calls."
                )
            replies |= {reply.key: reply for reply in arrived if reply.key in wanted}
        return replies

    def _reset(
        self, chosen: Sequence[int], seeds: Sequence[int | None], options: Sequence[dict[str, Any]]
    ) -> dict[int, dict[str, Any]]:
        """Infos of the parts that were chosen, after their reset."""
        for i in chosen:
            self._ask_reset(i, seeds[i], options[i])
        return self._settle_resets(chosen, self._replies(map(self._key, chosen)), seeds, options)

    def _settle_resets(
        self,
        chosen: Sequence[int],
        replies: dict[Key, Reply],
        seeds: Sequence[int | None] | None = None,
        options: Sequence[dict[str, Any]] | None = None,
    ) -> dict[int, dict[str, Any]]:
        found = {}
        for i in chosen:
            part, reply = self._parts[i], replies[self._key(i)]
            for _ in range(RESET_TRIES - 1):
                if not self._is_lost(i, reply):
                    break
                part.lost = True
                self._ask_reset(i, seeds[i] if seeds else None, options[i] if options else {})
                reply = self._replies([self._key(i)])[self._key(i)]
            if reply.info is None:
                raise InfraError(f"Part {i} could not be reset: {reply.fault.text if reply.fault else ''}")
            part.observation, part.info, part.ended, part.lost = reply.observation, reply.info, False, False
            found[i] = _info_of(reply.info)
        return found

    def _settle_step(self, i: int, reply: Reply) -> tuple[float, dict[str, Any]]:
        part = self._parts[i]
        if self._is_lost(i, reply) and reply.fault is not None and part.info is not None:
            part.lost = part.ended = True
            part.info = replace(part.info, outcome="infra", success=False)
            return 0.0, {**_info_of(part.info), "error": reply.fault.text}
        if reply.info is None:
            raise AssertionError("a reply without fault brings its info")
        part.observation, part.info = reply.observation, reply.info
        part.ended = reply.info.outcome != "running"
        return reply.reward, _info_of(reply.info)

    def _is_lost(self, i: int, reply: Reply) -> bool:
        """Whether the part's environment is gone, by no fault of its own; raises what is its own."""
        fault = reply.fault
        if fault is None:
            return False
        if not (fault.infra or fault.worker_lost):
            self._parts[i].lost = True
            error = EnvContractError(
                f"Part {i} raised {fault.text} An environment must not. `turngym check` looks for such faults."
            )
            error.add_note(fault.details)
            raise error
        logger.warning("Part %d: %s", i, fault.text)
        return True

    def _observations(self) -> tuple[str, ...]:
        return tuple(part.observation for part in self._parts)


def _info_of(info: TurnInfo) -> dict[str, Any]:
    """Gymnasium's `info` behind the record, a copy of its own."""
    values = {each.name: getattr(info, each.name) for each in fields(info)}
    for name in ("admissible", "messages", "tools"):
        values[name] = None if values[name] is None else copy.deepcopy(list(values[name]))
    if info.instructions is None:  # Only a reset tells these.
        del values["instructions"], values["tools"]
    return values
