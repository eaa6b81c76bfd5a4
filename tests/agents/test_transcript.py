"""The token record of an episode."""

import pytest

from turngym.agents.transcript import Transcript
from turngym.errors import BalanceError
from turngym.types import Segment, Span


def test_spans_cover_all_tokens_in_order() -> None:
    transcript = Transcript()
    transcript.add([1], turn=0, author="template")
    transcript.add([5, 6], turn=0, author="env")
    transcript.add([7, 8], turn=0, author="policy", log_probs=[-0.5, -0.25])
    transcript.add([2], turn=1, author="template")
    assert transcript.segments() == (
        Segment(
            (1, 5, 6, 7, 8, 2),
            (0.0, 0.0, 0.0, -0.5, -0.25, 0.0),
            (
                Span(0, 1, 0, "template"),
                Span(1, 3, 0, "env"),
                Span(3, 5, 0, "policy"),
                Span(5, 6, 1, "template"),
            ),
        ),
    )


def test_neighbours_of_one_author_and_turn_make_one_span() -> None:
    transcript = Transcript()
    transcript.add([1], turn=0, author="template")
    transcript.add([2, 3], turn=0, author="template")
    transcript.add([4], turn=1, author="template")
    (segment,) = transcript.segments()
    assert segment.spans == (Span(0, 3, 0, "template"), Span(3, 4, 1, "template"))


def test_adding_nothing_adds_no_span() -> None:
    transcript = Transcript()
    transcript.add([], turn=0, author="env")
    transcript.add([], turn=0, author="policy", log_probs=[])
    assert transcript.segments() == () and transcript.token_ids == []


def test_a_new_segment_starts_an_empty_chain_and_keeps_the_old_one() -> None:
    transcript = Transcript()
    transcript.begin_segment()
    transcript.add([1, 2], turn=0, author="env")
    transcript.add([3], turn=0, author="policy", log_probs=[-1.0])
    transcript.begin_segment()
    assert transcript.token_ids == []
    assert [segment.token_ids for segment in transcript.segments()] == [(1, 2, 3)]
    transcript.add([1, 9], turn=1, author="env")
    transcript.begin_segment()
    transcript.begin_segment()
    assert [segment.token_ids for segment in transcript.segments()] == [(1, 2, 3), (1, 9)]
    assert [segment.spans[0].start for segment in transcript.segments()] == [0, 0]


def test_segments_handed_out_do_not_change_afterwards() -> None:
    transcript = Transcript()
    transcript.add([1], turn=0, author="env")
    (before,) = transcript.segments()
    transcript.add([2], turn=0, author="env")
    assert before.token_ids == (1,) and before.spans == (Span(0, 1, 0, "env"),)


def test_tokens_must_come_with_as_many_log_probs() -> None:
    with pytest.raises(BalanceError, match="2 tokens came with 1 log-probs"):
        Transcript().add([1, 2], turn=0, author="policy", log_probs=[-0.1])
