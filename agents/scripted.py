"""Agents that need no model: expert, noisy expert, random and replay."""

from collections.abc import Sequence

import numpy as np

from turngym import seeding
from turngym.agents.base import Decision, Reading
from turngym.envs.honesty import Seen
from turngym.envs.pool import EnvRef, Wants
from turngym.errors import ConfigError
from turngym.types import Segment

MALFORMED_SHARE = 0.2
"""Share of a noisy expert's slips that are malformed commands; the others are admissible ones."""


class ScriptedAgent:
    """Base of agents whose decision follows at once from the reading."""

    name = "scripted"
    wants = Wants()
    weights_version = 0

    def __init__(self) -> None:
        self._ready: list[Decision] = []

    def submit(self, reading: Reading) -> None:
        self._ready.append(self.decide(reading))

    def step(self) -> list[Decision]:
        ready, self._ready = self._ready, []
        return ready

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        return ()

    def decide(self, reading: Reading) -> Decision:
        """The decision for one reading."""
        raise NotImplementedError


class ExpertAgent(ScriptedAgent):
    """The environment's own solver, played honestly: it asks before it uses a name that nothing has shown.

    A planner that sees the true state names keys and numbers that no observation held; imitating that
    teaches guessing. Where the next command has such a word, `inquire()` is played first, once per word.
    """

    wants = Wants(plan=True)

    def __init__(self) -> None:
        super().__init__()
        self.name = "expert"
        self._seen: dict[int, Seen] = {}

    def decide(self, reading: Reading) -> Decision:
        self._read(reading)
        return self._honest(reading)

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        self._seen.pop(episode, None)
        return ()

    def _read(self, reading: Reading) -> None:
        if reading.turn == 0:
            self._seen[reading.episode] = Seen()
            self._seen[reading.episode].add(reading.info.instructions or "")
        self._seen[reading.episode].add(reading.observation)

    def _honest(self, reading: Reading) -> Decision:
        seen = self._seen[reading.episode]
        command = seen.honest_command(reading.plan, reading.inquiry, reading.command_words)
        return Decision(reading.episode, command, "expert")


def require_expert(agent: object, env: EnvRef) -> None:
    """Refuses to let an expert play where the environment has none: it would look on, and its figure would mislead.

    Raises:
        ConfigError: the agent is an expert, and the environment has no plan with these arguments.
    """
    if not isinstance(agent, ExpertAgent):
        return
    made = env.make()
    can_plan = made.can_plan
    made.close()
    if not can_plan:
        given = f" with {dict(env.kwargs)}" if env.kwargs else ""
        raise ConfigError(
            f"{env.env_id}{given} has no expert (no `plan()`). Play it with another agent, such as random."
        )


class NoisyExpertAgent(ExpertAgent):
    """The expert, but with probability `noise` a turn is a random or malformed command; then it re-plans.

    Slips carry the author `noise`, so that SFT can leave them out of the loss. The noise of an episode is
    drawn once from `noise` where several are given.

    Args:
        noise: probabilities in [0, 1]; each episode takes one of them.
    """

    wants = Wants(plan=True, admissible=True)

    def __init__(self, *, noise: Sequence[float] = (0.3,)) -> None:
        super().__init__()
        if not noise or any(not 0 <= p <= 1 for p in noise):
            raise ConfigError(f"noise = {list(noise)}: give one or more probabilities from 0 to 1.")
        self.noise = tuple(noise)
        self.name = f"noisy-expert({','.join(f'{p:g}' for p in self.noise)})"

    def decide(self, reading: Reading) -> Decision:
        self._read(reading)
        level = seeding.generator(reading.seed, "noise-level", reading.episode, reading.attempt).random()
        noise = self.noise[min(int(level * len(self.noise)), len(self.noise) - 1)]
        rng = seeding.generator(reading.seed, "noise", reading.episode, reading.attempt, reading.turn)
        if rng.random() >= noise:
            return self._honest(reading)
        return Decision(reading.episode, self._slip(reading, rng), "noise")

    def _slip(self, reading: Reading, rng: np.random.Generator) -> str:
        commands = reading.info.admissible or reading.plan or ("look",)
        command = commands[int(rng.integers(len(commands)))]
        if rng.random() >= MALFORMED_SHARE:
            return command
        words = command.split()
        other = commands[int(rng.integers(len(commands)))].split()
        # Half of the malformed ones mix two commands (a wrong object), half break off.
        return " ".join([*words[:1], *other[1:]]) if rng.random() < 0.5 else " ".join(words[:-1] or words)


class RandomAgent(ScriptedAgent):
    """A uniformly random admissible command; needs an environment that lists them."""

    name = "random"
    wants = Wants(admissible=True)

    def decide(self, reading: Reading) -> Decision:
        commands = reading.info.admissible
        if not commands:
            raise ConfigError(
                f"The random agent needs admissible commands, and task {reading.info.task!r} lists none. "
                "Write `commands()` in the environment, or use another agent."
            )
        rng = seeding.generator(reading.seed, "random-agent", reading.episode, reading.attempt, reading.turn)
        return Decision(reading.episode, commands[int(rng.integers(len(commands)))])


class ReplayAgent(ScriptedAgent):
    """Plays given commands again, episode by episode; an episode without commands left looks on.

    Args:
        commands: commands of each episode number.
    """

    name = "replay"

    def __init__(self, commands: dict[int, Sequence[str]]) -> None:
        super().__init__()
        self._commands = commands

    def decide(self, reading: Reading) -> Decision:
        commands = self._commands.get(reading.episode, ())
        return Decision(reading.episode, commands[reading.turn] if reading.turn < len(commands) else "")
