"""What the critic says before an update."""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from turngym.agents.chat_template import ChatTemplate
from turngym.agents.transcript import Transcript
from turngym.training.batch import RolloutBatch, Row, cut_row, micro_batches, row_of
from turngym.training.forward import Critic, value_places
from turngym.training.update.columns import places_of, row_slices
from turngym.types import Episode, Outcome


@torch.no_grad()
def critic_values(critic: Critic, batch: RolloutBatch, tokens_per_batch: int) -> Tensor:
    """(M,) float64 V of each action token, read at the token before it."""
    _calm(critic)
    slices = row_slices(batch)
    values = torch.zeros(batch.num_tokens, dtype=torch.float64)
    for micro in micro_batches(batch.rows, tokens_per_batch):
        rows = [batch.rows[i] for i in micro]
        values[places_of(slices, micro)] = critic(rows, [value_places(row) for row in rows]).double().cpu()
    return values


@dataclass(frozen=True, slots=True)
class Bootstrap:
    """Values after the last turn."""

    values: Tensor  # (N,) 0 where the episode ended for good
    # Episodes whose following prompt did not fit the model; V was read at the last token that does.
    num_clipped: int


@torch.no_grad()
def bootstrap_values(
    critic: Critic,
    batch: RolloutBatch,
    tokens_per_batch: int,
    *,
    outcomes: Sequence[Outcome],
    following: Callable[[Episode], Row],
) -> Bootstrap:
    """V at the last token of the prompt that would have followed, for episodes that ended by one of `outcomes`.

    Args:
        following: the row of that prompt.
    """
    _calm(critic)
    values = torch.zeros(len(batch.episodes), dtype=torch.float64)
    fits = getattr(critic.trunk.config, "max_position_embeddings", None) or sys.maxsize
    cut = [i for i, episode in enumerate(batch.episodes) if episode.outcome in outcomes]
    whole = [following(batch.episodes[i]) for i in cut]
    rows = [cut_row(row, fits) for row in whole]
    for micro in micro_batches(rows, tokens_per_batch):
        part = [rows[i] for i in micro]
        got = critic(part, [[len(row) - 1] for row in part])
        values[[cut[i] for i in micro]] = got.double().cpu()
    return Bootstrap(values, sum(len(row) > fits for row in whole))


def _calm(critic: Critic) -> None:
    critic.eval()
    critic.trunk.eval()


def following_prompt(template: ChatTemplate) -> Callable[[Episode], Row]:
    """Renders the prompt of the turn that would have followed an episode's last one.

    After `token_limit` that prompt is the last segment; after other endings the last observation comes behind it.
    """

    def follow(episode: Episode) -> Row:
        last = episode.segments[-1]
        if episode.outcome == "token_limit" or last.spans[-1].author != "policy":
            return row_of(last, 0, trained=())
        transcript = Transcript()
        for span in last.spans:
            transcript.add(last.token_ids[span.start : span.end], turn=span.turn, author=span.author)
        turn = episode.turns[-1]
        template.reply(
            transcript, turn.observation, turn=len(episode.turns), cut=turn.finish_reason != "stop"
        )
        return row_of(transcript.segments()[-1], 0, trained=())

    return follow
