"""Episodes as rows and columns, and the cut into micro-batches."""

from dataclasses import replace

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from turngym.training.batch import Row, micro_batches, padded, rollout_batch, row_of
from turngym.types import Author, Episode, PlayedTurn, Segment, Span

SEGMENT = Segment(
    (9, 8, 7, 6, 5, 9, 4, 3),
    (0.0, 0.0, -0.5, -0.25, 0.0, 0.0, -1.0, -2.0),
    (
        Span(0, 1, 0, "template"),
        Span(1, 2, 0, "env"),
        Span(2, 4, 0, "policy"),
        Span(4, 6, 1, "env"),
        Span(6, 7, 1, "expert"),
        Span(7, 8, 2, "noise"),
    ),
)


def row(length: int) -> Row:
    ids = np.arange(length)
    return Row(ids, ids > 1, ids * 0, ids * 0.0, ids * 0.0, 0)


def episode(number: int, group: int, rewards: tuple[float, ...], segments: tuple[Segment, ...]) -> Episode:
    turns = tuple(
        PlayedTurn(command="x", observation="y", reward=reward, score=0.0, valid=True, author="policy")
        for reward in rewards
    )
    return Episode(
        number=number, group=group, env_id="e", env_kwargs={}, task="t", seed=0, attempt=0, agent="a",
        instructions="", observation="", turns=turns, outcome="lost", score=0.0, max_score=1.0, start_key="",
        segments=segments,
    )  # fmt: skip


def test_the_mask_of_a_row_comes_from_authors_alone() -> None:
    cases: tuple[tuple[tuple[Author, ...], list[int]], ...] = (
        (("policy",), [2, 3]), (("expert",), [6]), (("expert", "noise"), [6, 7]), ((), [])
    )  # fmt: skip
    for trained, places in cases:
        one = row_of(SEGMENT, 5, trained=trained)
        assert np.flatnonzero(one.action_mask).tolist() == places
        assert one.turn.tolist() == [0, 0, 0, 0, 1, 1, 1, 2]
        assert one.sampler_log_probs.tolist() == list(SEGMENT.log_probs)
        assert (one.episode, len(one)) == (5, 8)
    # The same ids elsewhere change nothing: a mask is never found by looking at ids.
    alike = replace(SEGMENT, token_ids=(3,) * 8)
    assert row_of(alike, 0, trained=("policy",)).action_mask.sum() == 2


def test_weights_of_a_row_are_1_on_trained_authors_0_on_other_actions_and_the_texts_elsewhere() -> None:
    one = row_of(SEGMENT, 0, trained=("policy", "expert"), text_weight=0.1)
    assert one.loss_weight.tolist() == [0.0, 0.1, 1.0, 1.0, 0.1, 0.1, 1.0, 0.0]
    assert row_of(SEGMENT, 0, trained=("expert",)).loss_weight.tolist() == [0, 0, 0, 0, 0, 0, 1, 0]


def test_the_first_token_of_a_row_is_never_trained() -> None:
    one = row_of(
        Segment((5, 6), (-1.0, -1.0), (Span(0, 2, 0, "policy"),)), 0, trained=("policy",), text_weight=1.0
    )
    assert one.action_mask.tolist() == [False, True] and one.loss_weight.tolist() == [0.0, 1.0]


def test_a_batch_has_columns_per_turn_and_per_action_token() -> None:
    later = Segment((1, 2, 3), (0.0, -4.0, -5.0), (Span(0, 1, 1, "env"), Span(1, 3, 1, "policy")))
    first = replace(SEGMENT, spans=(*SEGMENT.spans[:3], Span(4, 8, 0, "env")))
    batch = rollout_batch([episode(7, 3, (0.1, 0.2), (first, later)), episode(8, 4, (1.0,), (first,))])
    assert batch.rewards.tolist() == [[0.1, 0.2], [1.0, 0.0]]  # float64: 0.1 is not its float32
    assert batch.mask.tolist() == [[True, True], [True, False]]
    assert batch.group.tolist() == [3, 4]
    assert [one.episode for one in batch.rows] == [0, 0, 1]
    assert batch.token_episode.tolist() == [0, 0, 0, 0, 1, 1]
    assert batch.token_turn.tolist() == [0, 0, 1, 1, 0, 0]
    assert batch.sampler_log_probs.tolist() == [-0.5, -0.25, -4.0, -5.0, -0.5, -0.25]
    assert batch.num_tokens == 6


@settings(max_examples=80, deadline=None, derandomize=True)
@given(lengths=st.lists(st.integers(1, 30), max_size=25), budget=st.integers(1, 120))
def test_micro_batches_hold_each_row_once_within_the_budget(lengths: list[int], budget: int) -> None:
    rows = [row(length) for length in lengths]
    batches = micro_batches(rows, budget)
    assert sorted(i for batch in batches for i in batch) == list(range(len(rows)))
    assert all(batches)
    for batch in batches:
        assert len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= budget
    # By length, so that little is padded.
    flat = [lengths[i] for batch in batches for i in batch]
    assert flat == sorted(flat)


@settings(max_examples=40, deadline=None, derandomize=True)
@given(
    lengths=st.lists(st.integers(1, 30), min_size=1, max_size=25),
    budget=st.integers(1, 120),
    seed=st.integers(0, 99),
)
def test_the_sizes_of_micro_batches_do_not_depend_on_the_order_of_rows(
    lengths: list[int], budget: int, seed: int
) -> None:
    order = np.random.default_rng(seed).permutation(len(lengths))

    def cut(some: list[int]) -> list[list[int]]:
        return [[some[i] for i in batch] for batch in micro_batches([row(one) for one in some], budget)]

    assert cut(lengths) == cut([lengths[i] for i in order])


def test_padding_stands_on_the_right() -> None:
    got = padded([row(2), row(4)], torch.device("cpu"))
    assert got.tolist() == [[0, 1, 0, 0], [0, 1, 2, 3]]
