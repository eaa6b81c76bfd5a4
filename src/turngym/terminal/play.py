"""The conversation in the terminal: reads a person's lines, plays them, and shows what comes of it."""

import contextlib
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console

from turngym.envs.pool import EnvRef
from turngym.errors import TurngymError
from turngym.terminal.game import Game, Moment
from turngym.terminal.saving import save_game

PROMPT = "> "
HELP = """\
Type commands for the environment. Your own besides:
  ?          what is admissible now
  hint       the expert's next command
  undo       take the last turn back
  save FILE  keep the episode in a file of episodes
  quit       leave (so does Ctrl-D)
A line that begins with \\ goes to the environment without it, as in \\hint.
"""
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")

ReadLine = Callable[[], str | None]
"""The person's next line, without its end; None when there are no more."""


def play_in_terminal(
    env_id: str,
    kwargs: Mapping[str, Any],
    *,
    task: str | None = None,
    split: str | None = None,
    seed: int = 0,
    console: Console,
    read_line: ReadLine | None = None,
) -> Game:
    """Lets a person play one episode, and returns it as it stands when they leave.

    Args:
        task, split, seed: see `Game`.
        read_line: where lines come from; None takes standard input, with history in a terminal.

    Raises:
        UnknownEnvError, TaskError, ConfigError: see `Game`.
    """
    game = Game(EnvRef.of(env_id, **kwargs), task=task, split=split, seed=seed)
    conversation = Conversation(game, console)
    read_line = read_line or standard_input(console)
    try:
        conversation.begin()
        while (line := read_line()) is not None and conversation.answer(line):
            pass
        conversation.end()
    finally:
        game.close()
    return game


class Conversation:
    """Answers a person's lines."""

    def __init__(self, game: Game, console: Console) -> None:
        self._game, self._console = game, console
        self._saved: list[str] = []

    def begin(self) -> None:
        """Shows the task, the instructions and the start."""
        game = self._game
        self._say(f"{game.ref.env_id}, task {game.now.info.task}, seed {game.seed}", style="bold")
        self._say(HELP, style="dim")
        self._say(f"{game.instructions}\n")
        self._show(game.now)

    def answer(self, line: str) -> bool:
        """Answers one line; False when the person leaves."""
        text = line.strip()
        word, _, rest = text.partition(" ")
        if text == "quit":
            return False
        if not text:
            self._say("Type a command, or ? for what is admissible.")
        elif text in ("?", "hint", "undo"):
            {"?": self._list, "hint": self._hint, "undo": self._undo}[text]()
        elif word == "save":
            self._save(rest.strip())
        elif self._game.is_over:
            self._say("The episode is over: undo takes the last turn back, save FILE keeps it, quit leaves.")
        else:
            self._show(self._game.play(text.removeprefix("\\")))
        return True

    def end(self) -> None:
        """Says where the person left."""
        count = len(self._game.commands)
        unsaved = " It was not saved." if self._game.commands != self._saved else ""
        self._say(f"Left after {count} turn{'s' if count != 1 else ''}.{unsaved}")

    def _show(self, moment: Moment) -> None:
        game, info = self._game, moment.info
        self._say(moment.observation)
        facts = [f"turn {info.turn} of {game.env.max_turns}", f"score {info.score:g} of {info.max_score:g}"]
        if info.turn:
            facts.append(f"reward {moment.reward:+.3g}")
        if not info.valid:
            facts.append("not carried out")
        self._say(f"[{', '.join(facts)}]", style="dim")
        if game.is_over:
            words = {"won": "Won", "lost": "Lost", "turn_limit": "Out of turns"}
            outcome = words.get(info.outcome, info.outcome)
            self._say(f"{outcome} after {info.turn} turns, return {game.episode_return:.3g}.", style="bold")

    def _list(self) -> None:
        commands = [] if self._game.is_over else self._game.admissible()
        if commands is None:
            self._say("This environment lists no commands.")
        else:
            self._say("\n".join(commands) or "Nothing is admissible here.")

    def _hint(self) -> None:
        if self._game.is_over:
            self._say("The episode is over.")
            return
        try:
            command = self._game.hint()
        except TurngymError as error:
            self._say(str(error))
            return
        self._say(command if command is not None else "The expert sees no way from here. Try undo.")

    def _undo(self) -> None:
        command = self._game.undo()
        if command is None:
            self._say("There is no turn to take back.")
            return
        self._say(f"Taken back: {command}")
        self._show(self._game.now)

    def _save(self, name: str) -> None:
        if not name:
            self._say("Name a file, as in: save episodes.jsonl")
            return
        if not self._game.commands:
            self._say("There is no turn to save yet.")
            return
        try:
            episode = save_game(self._game, Path(name))
        except TurngymError as error:
            self._say(str(error))
        except OSError as error:
            self._say(f"Cannot write {name}: {error.strerror}. Name another file.")
        else:
            self._saved = [turn.command for turn in episode.turns]
            self._say(f"Saved as episode {episode.number} of {name}: {episode.outcome}, by {episode.agent}.")

    def _say(self, text: str, style: str = "") -> None:
        """Prints a text that may be anybody's: no markup, and no control codes that would steer the terminal."""
        plain = _CONTROL.sub("\ufffd", text.replace("\r\n", "\n"))
        self._console.print(plain, style=style, markup=False, highlight=False, soft_wrap=True)


def standard_input(console: Console) -> ReadLine:
    """Lines of standard input: with prompt, editing and history in a terminal, else echoed as they come."""
    if sys.stdin.isatty():
        return _typed_line

    def piped_line() -> str | None:
        line = sys.stdin.readline()
        if not line:
            return None
        text = line.rstrip("\r\n")
        console.print(
            f"{PROMPT}{_CONTROL.sub(chr(0xFFFD), text)}", markup=False, highlight=False, soft_wrap=True
        )
        return text

    return piped_line


def _typed_line() -> str | None:
    with contextlib.suppress(ImportError):  # Windows has none.
        import readline  # noqa: F401 - once loaded, input() has editing and history
    try:
        return input(PROMPT)
    except (EOFError, KeyboardInterrupt):
        sys.stdout.write("\n")
        return None
