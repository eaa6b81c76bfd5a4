"""Draws the next token of many rows, each from its own number."""

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True)
class Drawn:
    """One token per row."""

    token_ids: Tensor  # (N,) int64
    log_probs: Tensor  # (N,) natural log of each one's probability at the row's temperature


def draw_tokens(logits: Tensor, temperatures: Tensor, draws: Tensor) -> Drawn:
    """The token at which the cumulative sum of softmax(logits / temperature) passes the row's draw.

    Args:
        logits: (N, V) float32.
        temperatures: (N,) of each row; 0 takes the most likely token, with its log-prob at temperature 1.
        draws: (N,) float64 in [0, 1).
    """
    greedy = temperatures == 0
    log_probs = torch.log_softmax(logits / torch.where(greedy, 1.0, temperatures).unsqueeze(1), dim=-1)
    totals = log_probs.double().exp().cumsum(dim=1)
    drawn = torch.searchsorted(totals, (draws * totals[:, -1]).unsqueeze(1), right=True).squeeze(1)
    token_ids = torch.where(greedy, log_probs.argmax(dim=1), drawn.clamp(max=logits.shape[1] - 1))
    return Drawn(token_ids, log_probs.gather(1, token_ids.unsqueeze(1)).squeeze(1))
