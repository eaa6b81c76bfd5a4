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
        token_episode, token_turn, token_place: (M,) where each action token belongs: episode, turn, and its number
            among the action tokens of that turn.
        sampler_log_probs: (M,) the sampler's.
    """

    episodes: tuple[Episode, ...]
    rewards: Tensor
    mask: Tensor
    group: Tensor
    rows: tuple[Row, ...]
    token_episode: Tensor
    token_turn: Tensor
    token_place: Tensor
    sampler_log_probs: Tensor

    @property
    def num_tokens(self) -> int:
        return len(self.token_episode)

    @property
    def token_mask(self) -> Tensor:
        """(N, T, K) bool, True where the turn has a K-th action token; K is the most that a turn has."""
        return self.per_turn(torch.ones(self.num_tokens, dtype=torch.bool))

    def per_turn(self, column: Tensor) -> Tensor:
        """(N, T, K) a column over action tokens laid out by turn; 0 or False elsewhere."""
        out = column.new_zeros((*self.mask.shape, int(self.token_place.max()) + 1))
        out[self.token_episode, self.token_turn, self.token_place] = column
        return out

    def per_token(self, table: Tensor) -> Tensor:
        """(M,) what stands for each action token in a table by turn (N, T) or by token (N, T, K)."""
        if table.dim() == 2:
            return table[self.token_episode, self.token_turn]
        return table[self.token_episode, self.token_turn, self.token_place]


def rollout_batch(episodes: Sequence[Episode]) -> RolloutBatch:
    """Columns of some episodes, in each of whose turns the policy wrote at least one token."""
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
    token_episode = _join([np.full(int(row.action_mask.sum()), row.episode) for row in rows])
    token_turn = _join([row.turn[row.action_mask] for row in rows])
    return RolloutBatch(
        episodes=tuple(episodes),
        rewards=rewards,
        mask=mask,
        group=torch.tensor([episode.group for episode in episodes]),
        rows=tuple(rows),
        token_episode=token_episode,
        token_turn=token_turn,
        token_place=_places_in_turns(token_episode * (longest + 1) + token_turn),
        sampler_log_probs=_join([row.sampler_log_probs[row.action_mask] for row in rows]),
    )


def micro_batches(
    rows: Sequence[Row], tokens_per_batch: int, *, whole_episodes: bool = False
) -> list[list[int]]:
    """Places of rows, cut into batches of similar length whose padded size stays under a budget.

    What is longer than the budget stands alone. The cut depends on lengths and places only.

    Args:
        whole_episodes: keeps all rows of an episode in one batch.
    """
    units: dict[int, list[int]] = {}
    for i, row in enumerate(rows):
        units.setdefault(row.episode if whole_episodes else i, []).append(i)
    longest = {unit: max(len(rows[i]) for i in places) for unit, places in units.items()}
    batches: list[list[int]] = []
    for unit in sorted(units, key=lambda unit: (longest[unit], units[unit])):
        places = units[unit]
        if batches and (len(batches[-1]) + len(places)) * longest[unit] <= tokens_per_batch:
            batches[-1] += places
        else:
            batches.append(list(places))
    return batches


def padded(rows: Sequence[Row], device: torch.device) -> Tensor:
    """(B, T) token ids, zeros on the right; causal attention makes padding on the right harmless."""
    longest = max(len(row) for row in rows)
    out = np.zeros((len(rows), longest), dtype=np.int64)
    for i, row in enumerate(rows):
        out[i, : len(row)] = row.token_ids
    return torch.from_numpy(out).to(device)


def _places_in_turns(turn_ids: Tensor) -> Tensor:
    """(M,) how many tokens of the same turn stand before each."""
    order = torch.argsort(turn_ids, stable=True)
    _, counts = torch.unique(turn_ids, return_counts=True)
    starts = (counts.cumsum(0) - counts).repeat_interleave(counts)
    places = torch.empty_like(order)
    places[order] = torch.arange(len(order)) - starts
    return places


def _join(parts: Sequence[np.ndarray]) -> Tensor:
    return torch.from_numpy(np.concatenate(parts)) if parts else torch.zeros(0)
