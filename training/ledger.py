"""The ledger of episodes and action tokens, which must balance at every update."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from turngym.errors import BalanceError


@dataclass(slots=True)
class Ledger:
    """Counts of an update: what was asked, played, dropped by reason, trained."""

    episodes: Counter[str] = field(default_factory=Counter)
    tokens: Counter[str] = field(default_factory=Counter)

    def add(self, entry: str, episodes: int, tokens: int) -> None:
        """Adds to one entry: `asked`, `played`, `trained`, or `dropped_` and the reason."""
        self.episodes[entry] += episodes
        self.tokens[entry] += tokens

    def check(self) -> None:
        """Raises BalanceError unless asked = played and played = trained + all that was dropped."""
        for what, counts in (("episodes", self.episodes), ("tokens", self.tokens)):
            dropped = sum(count for entry, count in counts.items() if entry.startswith("dropped_"))
            if counts["played"] != counts["trained"] + dropped:
                raise BalanceError(
                    f"The ledger of {what} does not balance: {dict(counts)}. This is a fault of turngym; report it."
                )
        if self.episodes["asked"] != self.episodes["played"]:
            raise BalanceError(f"{self.episodes['asked']} episodes asked, {self.episodes['played']} played.")

    def metrics(self) -> dict[str, float | int | str]:
        """The counts under their metric names."""
        rows: dict[str, float | int | str] = {
            f"episodes/{entry}": count for entry, count in sorted(self.episodes.items())
        }
        return rows | {
            f"tokens/{entry}": count for entry, count in sorted(self.tokens.items()) if entry != "asked"
        }

    def totals(self) -> Mapping[str, Mapping[str, int]]:
        """Plain values for the checkpoint."""
        return {"episodes": dict(self.episodes), "tokens": dict(self.tokens)}
