"""What an honest expert may say: only words that its agent has been shown, or that belong to the commands."""

from collections.abc import Sequence
from dataclasses import dataclass, field


@dataclass(slots=True)
class Seen:
    """What one episode has shown so far, and what its expert has asked for.

    Attributes:
        words: words of the instructions and of every observation.
        asked: unseen words for which the inquiry was played; each is asked for once.
    """

    words: set[str] = field(default_factory=set)
    asked: set[str] = field(default_factory=set)

    def add(self, text: str) -> None:
        self.words.update(words_of(text))

    def unseen(self, command: str, allowed: frozenset[str]) -> list[str]:
        """Words of a command that nothing has shown and that are not of the command language."""
        return [word for word in words_of(command) if word not in self.words and word not in allowed]

    def honest_command(self, plan: Sequence[str], inquiry: str, allowed: frozenset[str]) -> str:
        """Next command of a plan, or the inquiry where that command has a word not shown and not asked for.

        With an empty plan nothing leads to the goal from here: the expert looks on.
        """
        if not plan:
            return inquiry or "look"
        new = set(self.unseen(plan[0], allowed)) - self.asked
        if inquiry and new:
            self.asked |= new
            return inquiry
        return plan[0]


def words_of(text: str) -> list[str]:
    """Lower-case words of a text; punctuation parts them, hyphens and apostrophes inside do not."""
    kept = "".join(ch if ch.isalnum() or ch in "-'" else " " for ch in text.lower())
    return [word.strip("-'") for word in kept.split() if word.strip("-'")]
