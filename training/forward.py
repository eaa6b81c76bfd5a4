"""Log-probs, entropies and values of rows, made only at the places where they are read."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

from turngym.agents.language_model import LanguageModel
from turngym.training.batch import Row, cut_row, micro_batches, padded


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Over the chosen tokens of some rows, in row order."""

    log_probs: Tensor  # (M,) natural log, float32
    entropy: Tensor  # (M,) nats of the whole distribution at that place
    hidden: Tensor  # (M, H) last hidden state at the token before each, where its value is read too


def token_scores(
    lm: LanguageModel, rows: Sequence[Row], *, temperature: float, chosen: Sequence[np.ndarray] | None = None
) -> TokenScores:
    """Scores of the action tokens of rows (or of the tokens `chosen` in each), in one forward pass.

    log_softmax(logits / temperature) over the full vocabulary in float32 (DEFINITIONS section 3).
    """
    device = lm.model.device
    masks = chosen if chosen is not None else [row.action_mask for row in rows]
    # What stands behind the last token read (the prompt of a turn that was not played) costs nothing.
    ids = padded(
        [cut_row(row, _last(np.flatnonzero(m)) + 1) for row, m in zip(rows, masks, strict=True)], device
    )
    hidden = lm.hidden(input_ids=ids, use_cache=False)
    rows_at = torch.from_numpy(np.concatenate([np.full(int(m.sum()), i) for i, m in enumerate(masks)])).to(
        device
    )
    places = torch.from_numpy(np.concatenate([np.flatnonzero(m) for m in masks])).to(device)
    before = hidden[rows_at, places - 1]
    log_probs = torch.log_softmax(lm.logits(before) / temperature, dim=-1)
    picked = log_probs.gather(1, ids[rows_at, places].unsqueeze(1)).squeeze(1)
    # A token of probability 0 adds 0, not 0 * -inf; NaN stays NaN.
    entropy = -(log_probs.exp() * log_probs.clamp(min=torch.finfo(log_probs.dtype).min)).sum(dim=1)
    return TokenScores(picked, entropy, before)


@torch.no_grad()
def score_rows(
    lm: LanguageModel, rows: Sequence[Row], *, temperature: float, tokens_per_batch: int
) -> Tensor:
    """(M,) log-probs of all action tokens, in row order, without gradient."""
    lm.model.eval()
    counts = [int(row.action_mask.sum()) for row in rows]
    parts: list[Tensor] = [torch.zeros(0)] * len(rows)
    for batch in micro_batches(rows, tokens_per_batch):
        scores = token_scores(lm, [rows[i] for i in batch], temperature=temperature).log_probs.cpu()
        for i, part in zip(batch, scores.split([counts[i] for i in batch]), strict=True):
            parts[i] = part
    return torch.cat(parts) if parts else torch.zeros(0)


class Critic(nn.Module):
    """A causal trunk with a scalar head: V at a token, given all up to it.

    Args:
        trunk: the model below the head, to be trained with it.
        shares_trunk: the trunk is the policy's own: it is none of this module's parameters.
    """

    trunk: PreTrainedModel

    def __init__(self, trunk: PreTrainedModel, *, shares_trunk: bool = False) -> None:
        super().__init__()
        self.shares_trunk = shares_trunk
        if shares_trunk:
            # Past the module's own bookkeeping, which would take it for a part.
            object.__setattr__(self, "trunk", trunk)
        else:
            self.trunk = trunk
        self.head = nn.Linear(trunk.config.hidden_size, 1)
        # Zero: the first values are 0 and the first advantages plain returns.
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def of_hidden(self, hidden: Tensor) -> Tensor:
        """(K,) values of (K, H) last hidden states."""
        values: Tensor = self.head(hidden).squeeze(-1).float()
        return values

    def forward(self, rows: Sequence[Row], places: Sequence[Sequence[int]]) -> Tensor:
        """(K,) values at the given places of each row, in row order."""
        device = self.head.weight.device
        ids = padded([cut_row(row, _last(one) + 1) for row, one in zip(rows, places, strict=True)], device)
        hidden = self.trunk(input_ids=ids, use_cache=False).last_hidden_state
        row_index = torch.tensor(
            [i for i, one in enumerate(places) for _ in one], device=device, dtype=torch.long
        )
        place = torch.tensor([p for one in places for p in one], device=device, dtype=torch.long)
        return self.of_hidden(hidden[row_index, place])


def _last(places: "Sequence[int] | np.ndarray") -> int:
    return int(max(places)) if len(places) else 0


def value_places(row: Row) -> list[int]:
    """The token before each action token of a row, where V of that token is read."""
    return [int(place) - 1 for place in np.flatnonzero(row.action_mask)]
