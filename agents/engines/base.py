"""The seam to whatever generates tokens: requests go in, completions come out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from torch import Tensor

FinishReason = Literal["stop", "length", "cancelled", "error"]


@dataclass(frozen=True, slots=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: divides the logits; 0 takes the most likely token (log-probs are then those at 1).
        max_new_tokens: most tokens of one message, the stop token included.
        stop_ids: a message ends with the first of these, which counts as written by the policy.
    """

    temperature: float
    max_new_tokens: int
    stop_ids: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Stream:
    """Names the chance of one turn (DEFINITIONS section 9)."""

    seed: int
    episode: int
    attempt: int
    turn: int


@dataclass(frozen=True, slots=True)
class Request:
    """One message to be written, after `prompt_ids`; the engine keeps a cache per episode."""

    id: int
    episode: int
    prompt_ids: Sequence[int]
    sampling: Sampling
    stream: Stream


@dataclass(frozen=True, slots=True)
class Completion:
    """A message: the ids as sampled, and the natural log of each one's probability."""

    id: int
    episode: int
    token_ids: tuple[int, ...]
    log_probs: tuple[float, ...]
    finish_reason: FinishReason
    version: int


class Engine(Protocol):
    """Generates for many episodes at once; the same ids, whatever else is in the batch."""

    version: int

    def submit(self, request: Request) -> None:
        """Takes a request; its completion comes from a later `step`."""

    def step(self) -> list[Completion]:
        """Moves on by one prefill or one token per running row; returns what was finished."""

    def cancel(self, request_id: int) -> None:
        """Ends a request early; the next `step` returns it as cancelled."""

    def release(self, episode: int) -> None:
        """Forgets an episode's cache."""

    def fork(self, episode: int, to: int) -> None:
        """Gives episode `to` a copy of an episode's cache."""

    def score(self, token_ids: Sequence[int], *, temperature: float = 1.0) -> Tensor:
        """(T - 1,) log-prob of each token after the first, under the tokens before it."""

    def load(self, weights: Mapping[str, Tensor] | None, version: int) -> None:
        """Takes new weights (None: the model was changed in place) and drops every cache."""
