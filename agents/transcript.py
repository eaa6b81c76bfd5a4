"""Builds the token record of an episode: exact prefix chains with authorship as spans."""

from collections.abc import Sequence

from turngym.errors import BalanceError
from turngym.types import Author, Segment, Span


class Transcript:
    """The tokens of one episode so far, as one or more segments.

    A segment is one chain in which every token stands under the prefix it was written under. Where a
    template rewrites history, `begin_segment` starts another chain.
    """

    def __init__(self) -> None:
        self._closed: list[Segment] = []
        self.begin_segment()

    def begin_segment(self) -> None:
        """Closes the present segment, if it holds anything, and starts an empty one."""
        if getattr(self, "token_ids", None):
            self._closed.append(self._segment())
        self.token_ids: list[int] = []
        self._log_probs: list[float] = []
        self._spans: list[Span] = []

    def add(
        self, token_ids: Sequence[int], *, turn: int, author: Author, log_probs: Sequence[float] | None = None
    ) -> None:
        """Appends tokens of one author; `log_probs` only where a policy sampled them."""
        if log_probs is not None and len(log_probs) != len(token_ids):
            raise BalanceError(f"{len(token_ids)} tokens came with {len(log_probs)} log-probs.")
        if not token_ids:
            return
        start = len(self.token_ids)
        self.token_ids += token_ids
        self._log_probs += log_probs if log_probs is not None else [0.0] * len(token_ids)
        last = self._spans[-1] if self._spans else None
        if last is not None and (last.turn, last.author) == (turn, author):
            self._spans[-1] = Span(last.start, len(self.token_ids), turn, author)
        else:
            self._spans.append(Span(start, len(self.token_ids), turn, author))

    def segments(self) -> tuple[Segment, ...]:
        """All segments so far."""
        return (*self._closed, self._segment()) if self.token_ids else tuple(self._closed)

    def _segment(self) -> Segment:
        return Segment(tuple(self.token_ids), tuple(self._log_probs), tuple(self._spans))
