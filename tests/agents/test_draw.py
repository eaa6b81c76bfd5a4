"""Drawing a token from a number."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.agents.engines.draw import draw_tokens

SHARES = torch.tensor([[0.25, 0.0, 0.5, 0.25]], dtype=torch.float64)


@pytest.mark.parametrize(
    ("draw", "token"),
    [(0.0, 0), (0.2499, 0), (0.2501, 2), (0.7499, 2), (0.7501, 3), (1 - 2**-53, 3)],
)
def test_the_token_is_where_the_cumulative_sum_passes_the_draw(draw: float, token: int) -> None:
    got = draw_tokens(SHARES.log().float(), torch.ones(1), torch.tensor([draw], dtype=torch.float64))
    assert got.token_ids.tolist() == [token]
    assert got.log_probs.exp().item() == pytest.approx(float(SHARES[0, token]))


def test_a_token_that_cannot_come_is_not_drawn_even_at_0() -> None:
    logits = torch.tensor([[-torch.inf, 0.0, -torch.inf]])
    for draw in (0.0, 0.5, 1 - 2**-53):
        assert (
            draw_tokens(logits, torch.ones(1), torch.tensor([draw], dtype=torch.float64)).token_ids.item()
            == 1
        )


def test_each_row_has_its_own_temperature_and_0_is_greedy() -> None:
    logits = torch.tensor([[1.0, 3.0, 2.0]]).repeat(3, 1)
    draws = torch.tensor([0.999, 0.999, 0.999], dtype=torch.float64)
    got = draw_tokens(logits, torch.tensor([0.0, 0.05, 5.0]), draws)
    assert got.token_ids.tolist() == [1, 1, 2]
    tables = [torch.log_softmax(logits[0] / temperature, dim=0) for temperature in (1.0, 0.05, 5.0)]
    wanted = torch.stack([table[token] for table, token in zip(tables, (1, 1, 2), strict=True)])
    torch.testing.assert_close(got.log_probs, wanted)


@settings(max_examples=30, deadline=None, derandomize=True)
@given(seed=st.integers(0, 10**6))
def test_rows_do_not_depend_on_their_neighbours(seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(6, 50, generator=generator) * 3
    temperatures = torch.rand(6, generator=generator) + 0.2
    draws = torch.rand(6, generator=generator, dtype=torch.float64)
    whole = draw_tokens(logits, temperatures, draws)
    for i in range(6):
        alone = draw_tokens(logits[i : i + 1], temperatures[i : i + 1], draws[i : i + 1])
        assert alone.token_ids.item() == whole.token_ids[i].item()
