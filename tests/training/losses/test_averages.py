"""The four averages as weights of tokens."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.training.losses.averages import Average, token_weights

AVERAGES: tuple[Average, ...] = ("token", "turn", "episode", "constant")


@pytest.mark.parametrize(
    ("average", "wanted"),
    [
        # losses 4 | 1 1 2 | 3 1 | 0 2 of four turns; the first two are one episode (case 08)
        ("token", 14 / 8),
        ("turn", (4 / 1 + 4 / 3 + 4 / 2 + 2 / 2) / 4),
        ("episode", (8 / 4 + 4 / 2 + 2 / 2) / 3),
        ("constant", 14 / (3 * 5)),
    ],
)
def test_averages_match_hand_computation(average: Average, wanted: float) -> None:
    losses = torch.tensor([4.0, 1, 1, 2, 3, 1, 0, 2], dtype=torch.float64)
    turn = torch.tensor([0, 1, 1, 1, 20, 20, 30, 30])
    episode = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    mask = torch.ones(8, dtype=torch.bool)
    weights = token_weights(mask, turn, episode, average=average, constant=5.0)
    assert float((weights * losses).sum()) == pytest.approx(wanted)


def test_the_token_average_is_the_same_however_the_step_is_cut() -> None:
    # Case 08: 1.75 for every split and order, 1.0 for the last, shorter window of 2 losses of 1.
    losses, sizes = torch.tensor([4.0, 1, 1, 2, 3, 1, 0, 2], dtype=torch.float64), [1, 3, 2, 2]
    starts = [0, 1, 4, 6]
    ids = torch.arange(8)
    weights = token_weights(torch.ones(8, dtype=torch.bool), ids, ids, average="token", constant=1.0)
    for cut in ([[0], [1], [2], [3]], [[0, 1], [2, 3]], [[0, 2], [1, 3]], [[3, 1, 2, 0]]):
        parts = [torch.cat([torch.arange(starts[i], starts[i] + sizes[i]) for i in part]) for part in cut]
        assert sum(float((weights[at] * losses[at]).sum()) for at in parts) == 1.75
    short = token_weights(torch.ones(2, dtype=torch.bool), ids[:2], ids[:2], average="token", constant=1.0)
    assert float(short.sum()) == 1.0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    tokens=st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.booleans()), min_size=1, max_size=25),
    average=st.sampled_from(AVERAGES),
)
def test_they_equal_the_definition(tokens: list[tuple[int, int, bool]], average: Average) -> None:
    episode, turn = torch.tensor([e for e, _, _ in tokens]), torch.tensor([10 * e + t for e, t, _ in tokens])
    mask = torch.tensor([m for _, _, m in tokens])
    got = token_weights(mask, turn, episode, average=average, constant=3.0).tolist()
    live = [(e, t) for e, t, m in tokens if m]
    episodes = {e for e, _ in live}
    for (e, t, m), weight in zip(tokens, got, strict=True):
        if not m:
            assert weight == 0
        elif average == "token":
            assert weight == pytest.approx(1 / len(live))
        elif average == "turn":
            assert weight == pytest.approx(1 / len(set(live)) / live.count((e, t)))
        elif average == "episode":
            assert weight == pytest.approx(1 / len(episodes) / sum(other == e for other, _ in live))
        else:
            assert weight == pytest.approx(1 / (len(episodes) * 3.0))
    if live and average != "constant":
        assert sum(got) == pytest.approx(1)


@pytest.mark.parametrize("average", AVERAGES)
def test_nothing_left_weighs_nothing(average: Average) -> None:
    ids = torch.arange(3)
    assert not token_weights(torch.zeros(3, dtype=torch.bool), ids, ids, average=average, constant=1.0).any()
    none = torch.zeros(0, dtype=torch.int64)
    assert token_weights(none.bool(), none, none, average=average, constant=1.0).shape == (0,)
