"""The ledger balances, or the run stops."""

import pytest

from turngym.errors import BalanceError
from turngym.training.ledger import Ledger


def ledger(**entries: tuple[int, int]) -> Ledger:
    out = Ledger()
    for entry, (episodes, tokens) in entries.items():
        out.add(entry, episodes, tokens)
    return out


def test_a_balanced_ledger_passes() -> None:
    ledger().check()
    ledger(
        asked=(4, 0), played=(4, 40), trained=(2, 25), dropped_infra=(1, 5), dropped_flat_group=(1, 10)
    ).check()


@pytest.mark.parametrize(
    "entries",
    [
        {"asked": (4, 0), "played": (4, 40), "trained": (3, 40)},
        {"asked": (4, 0), "played": (4, 40), "trained": (4, 39)},
        {"asked": (4, 0), "played": (4, 40), "trained": (4, 40), "dropped_infra": (1, 0)},
        {"asked": (4, 0), "played": (3, 40), "trained": (3, 40)},
    ],
)
def test_an_episode_or_token_that_is_nowhere_stops_the_run(entries: dict[str, tuple[int, int]]) -> None:
    with pytest.raises(BalanceError):
        ledger(**entries).check()


def test_entries_add_up() -> None:
    out = ledger(asked=(2, 0))
    out.add("asked", 3, 0)
    out.add("dropped_infra", 1, 7)
    assert out.metrics() == {"episodes/asked": 5, "episodes/dropped_infra": 1, "tokens/dropped_infra": 7}
    assert out.totals() == {
        "episodes": {"asked": 5, "dropped_infra": 1},
        "tokens": {"asked": 0, "dropped_infra": 7},
    }
