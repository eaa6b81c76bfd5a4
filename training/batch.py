"""Episodes as rows of tokens with the columns that training reads; micro-batches by length."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from turngym.types import Author, Episode, Segment


@dataclass(frozen=True, slots=True)
class Row:
    """One segment as arrays over its T tokens.

    Attributes:
        token_ids: (T,) int64.
        action_mask: (T,) bool, tokens that are trained; never the first token, which has no prefix.
        turn: (T,) int, turn of each token.
        sampler_log_probs: (T,) float64, the sampler's log-prob of each action token.
        loss_weight: (T,) float64, weight of each token in SFT; unused in RL.
        episode: place of the episode in its batch.
    """

    token_ids: np.ndarray
    action_mask: np.ndarray
    turn: np.ndarray
    sampler_log_probs: np.ndarray
    loss_weight: np.ndarray
    episode: int

    def __len__(self) -> int:
        return len(self.token_ids)


def row_of(segment: Segment, episode: int, *, trained: Iterable[Author], text_weight: float = 0.0) -> Row:
    """A segment as a row.

    Args:
        trained: authors whose tokens are action tokens; masks come from authorship and lengths alone.
        text_weight: SFT weight of env and template tokens.
    """
    count = len(segment.token_ids)
    mask, turn = np.zeros(count, dtype=bool), np.zeros(count, dtype=np.int64)
    weight = np.full(count, float(text_weight))
    authors = frozenset(trained)
    for span in segment.spans:
        mask[span.start : span.end] = span.author in authors
        turn[span.start : span.end] = span.turn
        if span.author not in ("env", "template"):
            weight[span.start : span.end] = float(span.author in authors)
    mask[:1] = False
    weight[:1] = 0.0
    ids = np.array(segment.token_ids, dtype=np.int64)
    return Row(ids, mask, turn, np.array(segment.log_probs), weight, episode)


def cut_row(row: Row, length: int) -> Row:
    """The first `length` tokens of a row; the row itself where it is no longer."""
    if len(row) <= length:
        return row
    return Row(
        row.token_ids[:length],
        row.action_mask[:length],
        row.turn[:length],
        row.sampler_log_probs[:length],
        row.loss_weight[:length],
        row.episode,
    )


@dataclass(frozen=True, slots=True)
class RolloutBatch:
    """The episodes of an update: N episodes of at most T turns, M action tokens in row order.

    Attributes:
        rewards, mask: (N, T) reward of each turn (float64), and whether it was played.
        group: (N,) id of each episode's group.
        rows: rows of segments; an episode may have several.
        token_episode, token_turn: (M,) where each action token belongs.
        sampler_log_probs: (M,) the sampler's.
    """

    episodes: tuple[Episode, ...]
    rewards: Tensor
    mask: Tensor
    group: Tensor
    rows: tuple[Row, ...]
    token_episode: Tensor
    token_turn: Tensor
    sampler_log_probs: Tensor

    @property
    def num_tokens(self) -> int:
        return len(self.token_episode)


def rollout_batch(episodes: Sequence[Episode]) -> RolloutBatch:
    """Columns of some episodes, all of which have action tokens."""
    longest = max(len(episode.turns) for episode in episodes)
    rewards = torch.zeros(len(episodes), longest, dtype=torch.float64)
    mask = torch.zeros(len(episodes), longest, dtype=torch.bool)
    rows = []
    for i, episode in enumerate(episodes):
        rewards[i, : len(episode.turns)] = torch.tensor(
            [turn.reward for turn in episode.turns], dtype=torch.float64
        )
        mask[i, : len(episode.turns)] = True
        rows += [row_of(segment, i, trained=("policy",)) for segment in episode.segments]
    return RolloutBatch(
        episodes=tuple(episodes),
        rewards=rewards,
        mask=mask,
        group=torch.tensor([episode.group for episode in episodes]),
        rows=tuple(rows),
        token_episode=_join([np.full(int(row.action_mask.sum()), row.episode) for row in rows]),
        token_turn=_join([row.turn[row.action_mask] for row in rows]),
        sampler_log_probs=_join([row.sampler_log_probs[row.action_mask] for row in rows]),
    )


def micro_batches(rows: Sequence[Row], tokens_per_batch: int) -> list[list[int]]:
    """Places of rows, cut into batches of similar length whose padded size stays under a budget.

    A row longer than the budget stands alone. The cut depends on lengths and places only.
    """
    order = sorted(range(len(rows)), key=lambda i: (len(rows[i]), i))
    batches: list[list[int]] = []
    for i in order:
        if batches and (len(batches[-1]) + 1) * len(rows[i]) <= tokens_per_batch:
            batches[-1].append(i)
        else:
            batches.append([i])
    return batches


def padded(rows: Sequence[Row], device: torch.device) -> Tensor:
    """(B, T) token ids, zeros on the right; causal attention makes padding on the right harmless."""
    longest = max(len(row) for row in rows)
    out = np.zeros((len(rows), longest), dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row.token_ids
    return torch.from_numpy(out).to(device)


def _join(parts: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0)
