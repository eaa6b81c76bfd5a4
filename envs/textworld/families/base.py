"""What every family says of its levels."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Self

from turngym.errors import ConfigError


@dataclass(frozen=True, slots=True)
class Level(ABC):
    """Size of a game. Family, level and seed together are one game, the same bytes everywhere.

    Attributes:
        family: first part of a task id.
        example: a level of the family, for messages.
        form: how a level is written, for messages.
        challenge: name of the `tw-make` command that makes the games; "" for `tw-make custom`.
        filtered: TextWorld's walkthrough may be shorter than the level says, so training and validation games are
            chosen by its length.
        sparse_seeds: some seeds give no game at all, so test games are chosen, too.
        rewords: the objective tells the plan, so TextWorld can tell it in other words.
        has_expert: TextWorld plans the games; else the score is the game's own.
        document: name of the thing that an honest expert must have examined first; "" for none.
        checks_inventory: what the plan needs may be carried from the start, so an honest expert looks there first.
        kept_words: words of names that must not be exchanged, since they tell what a thing is for.
        verbs: words of the family's commands beyond those that all families have.
    """

    family: ClassVar[str]
    example: ClassVar[str]
    form: ClassVar[str]
    challenge: ClassVar[str]
    filtered: ClassVar[bool] = False
    sparse_seeds: ClassVar[bool] = False
    kept_words: ClassVar[frozenset[str]] = frozenset()
    verbs: ClassVar[frozenset[str]] = frozenset()

    @classmethod
    @abstractmethod
    def parse(cls, text: str) -> Self | None:
        """The level that a text writes; None where it writes none.

        Raises:
            ConfigError: the form is right and a number is not.
        """

    @property
    @abstractmethod
    def name(self) -> str:
        """As written in options and ids; one spelling for each level."""

    @property
    @abstractmethod
    def max_turns(self) -> int:
        """The turn limit of the family: three times the quest where the level fixes it."""

    @property
    def quest_length(self) -> int | None:
        """Commands of the quest; None where the level doesn't fix them."""
        return None

    @property
    def settings(self) -> Mapping[str, Any]:
        """Arguments of the challenge."""
        return {}

    @property
    def rewords(self) -> bool:
        return True

    @property
    def has_expert(self) -> bool:
        return True

    @property
    def document(self) -> str:
        return ""

    @property
    def checks_inventory(self) -> bool:
        return False


def checked(low: int, value: int, high: int, what: str) -> int:
    """The value, where it lies in low .. high.

    Raises:
        ConfigError: it does not.
    """
    if not low <= value <= high:
        raise ConfigError(f"{what} is {value}: TextWorld makes {low} to {high}.")
    return value
