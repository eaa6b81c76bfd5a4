"""Keeps a person's episode: it is played again by the one loop whose episodes are saved."""

from collections.abc import Sequence
from pathlib import Path

from turngym.agents.base import Decision, Job, Reading
from turngym.agents.rollout import play
from turngym.agents.scripted import ScriptedAgent
from turngym.envs.pool import make_pool
from turngym.episode_file import EpisodeFile, EpisodeWriter
from turngym.errors import EnvContractError, FileFormatError
from turngym.terminal.game import Game
from turngym.types import Episode


class HumanAgent(ScriptedAgent):
    """Plays what a person typed, as author `human`, and leaves the episode where they left it."""

    def __init__(self, commands: Sequence[str], name: str) -> None:
        super().__init__()
        self.name = name
        self._commands = tuple(commands)

    def decide(self, reading: Reading) -> Decision:
        if reading.turn < len(self._commands):
            return Decision(reading.episode, self._commands[reading.turn], "human")
        return Decision(reading.episode, "", ending="running")


def save_game(game: Game, path: Path) -> Episode:
    """Appends the episode to a file of episodes, new or old, and returns it.

    The agent's name says how often it was helped. An episode without an end has the outcome `running`.

    Raises:
        FileFormatError: the file holds something else.
        EnvContractError: played again, the environment answered otherwise.
    """
    number = _next_number(path)
    episode = _episode(game, number)
    seen = [moment.observation for moment in game.moments]
    again = [episode.observation, *(turn.observation for turn in episode.turns)]
    if seen != again or episode.outcome != game.now.info.outcome:
        raise EnvContractError(
            "Played again, the environment answered otherwise, so the episode was not saved. "
            "Let `turngym check` look at it: chance must come from np_random only."
        )
    with EpisodeWriter(path) as writer:
        writer.write(episode)
    return episode


def agent_name(game: Game) -> str:
    """`human`, with the help that was had: `human (2 hints, 1 undone)`."""
    helps = []
    if game.num_hints:
        helps.append(f"{game.num_hints} hint{'s' if game.num_hints > 1 else ''}")
    if game.num_undone:
        helps.append(f"{game.num_undone} undone")
    return f"human ({', '.join(helps)})" if helps else "human"


def _episode(game: Game, number: int) -> Episode:
    job = Job(number=number, group=number, env=game.ref, task=game.now.info.task, seed=game.seed)
    pool = make_pool()
    try:
        (episode,) = play([job], pool=pool, agent=HumanAgent(game.commands, agent_name(game)))
    finally:
        pool.close()
    return episode


def _next_number(path: Path) -> int:
    """The first free episode number of a file; never lets the writer cut a file that is not ours."""
    if not path.exists() or (path.is_file() and path.stat().st_size == 0):
        return 0
    numbers = [episode.number for episode in EpisodeFile(path)]
    if not numbers:
        raise FileFormatError(f"{path} exists and holds no episodes. Name another file.")
    return max(numbers) + 1
