"""From episodes to what the steps of an update learn from."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from turngym.training.batch import RolloutBatch, rollout_batch
from turngym.training.settings import RlSettings
from turngym.training.update.estimate import Estimated, estimated
from turngym.types import Episode, PlayedTurn, Segment, Span

REWARDS = ((0.5, 0.0, 1.0), (0.25,), (0.0, 2.0))
TOKENS = ((2, 1, 3), (2,), (1, 2))
"""Action tokens of each turn; the second turn of the first episode begins a segment of its own."""


def segment(first: int, counts: tuple[int, ...]) -> Segment:
    spans: list[Span] = []
    end = 0
    for turn, count in enumerate(counts, first):
        spans += [Span(end, end + 2, turn, "env"), Span(end + 2, end + 2 + count, turn, "policy")]
        end += 2 + count
    return Segment(tuple(range(end)), (0.0,) * end, tuple(spans))


def batch_of() -> RolloutBatch:
    episodes = []
    for number, (rewards, counts) in enumerate(zip(REWARDS, TOKENS, strict=True)):
        turns = tuple(
            PlayedTurn(command="x", observation="y", reward=reward, score=0.0, valid=True, author="policy")
            for reward in rewards
        )
        cut = (segment(0, counts[:1]), segment(1, counts[1:])) if number == 0 else (segment(0, counts),)
        episodes.append(
            Episode(
                number=number,
                group=number // 2,
                env_id="e",
                env_kwargs={},
                task="t",
                seed=0,
                attempt=0,
                agent="a",
                instructions="",
                observation="",
                turns=turns,
                outcome="lost",
                score=0.0,
                max_score=1.0,
                start_key="",
                segments=cut,
            )  # fmt: skip
        )
    return rollout_batch(episodes)


def estimate(batch: RolloutBatch, *, penalty: bool = False, **changes: Any) -> Estimated:
    settings = RlSettings.model_validate(
        {"updates": 1, **changes} | ({"kl": {"name": "reward", "beta": 0.1}} if penalty else {})
    )
    m = torch.arange(batch.num_tokens, dtype=torch.float64)
    return estimated(
        settings,
        batch,
        values=0.01 * m,
        bootstrap=torch.zeros(3, dtype=torch.float64),
        old=m,
        reference=0 * m,
    )


def test_tokens_know_their_place_in_their_turn_over_all_segments() -> None:
    batch = batch_of()
    assert batch.token_place.tolist() == [0, 1, 0, 0, 1, 2, 0, 1, 0, 0, 1]
    assert batch.token_mask.sum(dim=-1).tolist() == [[2, 1, 3], [2, 0, 0], [1, 2, 0]]
    numbers = torch.arange(batch.num_tokens)
    assert torch.equal(batch.per_token(batch.per_turn(numbers)), numbers)
    assert batch.per_token(batch.rewards).tolist() == [0.5, 0.5, 0.0, 1, 1, 1, 0.25, 0.25, 0.0, 2, 2]


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_a_turns_value_and_target_stand_at_its_first_token(credit: str) -> None:
    batch = batch_of()
    got = estimate(batch, advantage={"name": "gae", "credit": credit, "lam": 1.0, "whiten": "none"}).values
    assert got is not None
    firsts = [0, 2, 3, 6, 8, 9] if credit == "turn" else [0, 6, 8]
    assert got.mask.nonzero().flatten().tolist() == firsts
    returns = {0: 1.5, 2: 1.0, 3: 1.0, 6: 0.25, 8: 2.0, 9: 2.0}
    assert got.targets[firsts].tolist() == pytest.approx([returns[m] for m in firsts])
    assert got.old.tolist() == pytest.approx([0.01 * m for m in range(11)])


@pytest.mark.parametrize("credit", ["token", "bilevel"])
def test_every_action_token_has_a_value_and_a_target_of_its_own(credit: str) -> None:
    batch = batch_of()
    got = estimate(batch, advantage={"name": "gae", "credit": credit, "lam": 1.0, "whiten": "none"})
    assert got.values is not None and got.values.mask.all()
    # Undiscounted, with lam 1, every credit says return minus value.
    returns = torch.tensor([1.5, 1.5, 1.0, 1, 1, 1, 0.25, 0.25, 2, 2, 2], dtype=torch.float64)
    torch.testing.assert_close(got.values.targets, returns)
    torch.testing.assert_close(batch.per_token(got.advantages), returns - got.values.old)


def test_kl_in_the_reward_stands_on_its_own_token_or_sums_over_the_turn() -> None:
    batch = batch_of()
    turns = estimate(batch, penalty=True, advantage={"name": "gae", "lam": 0.0, "whiten": "none"})
    plain = estimate(batch, advantage={"name": "gae", "lam": 0.0, "whiten": "none"})
    sums = torch.tensor([[1.0, 2, 12], [13, 0, 0], [8, 19, 0]], dtype=torch.float64)
    torch.testing.assert_close(plain.advantages - turns.advantages, 0.1 * sums)
    gae = {"name": "gae", "credit": "token", "lam": 0.0, "whiten": "none"}
    tokens, bare = (estimate(batch, penalty=held, advantage=gae).advantages for held in (True, False))
    torch.testing.assert_close(batch.per_token(bare - tokens), 0.1 * torch.arange(11, dtype=torch.float64))


@pytest.mark.parametrize("credit", ["turn", "token", "bilevel", "episode"])
def test_advantages_are_whitened_over_the_units_of_their_credit(credit: str) -> None:
    batch = batch_of()
    got = estimate(batch, advantage={"name": "gae", "credit": credit})
    numbers: Tensor = got.advantages[got.mask]
    if credit == "episode":
        numbers = got.advantages[:, 0]
    assert len(numbers) == {"turn": 6, "token": 11, "bilevel": 11, "episode": 3}[credit]
    assert float(numbers.mean()) == pytest.approx(0.0, abs=1e-9)
    assert float(numbers.std(correction=0)) == pytest.approx(1.0, abs=1e-6)


def test_flat_groups_are_left_out_and_kl_in_the_reward_makes_none_of_them_another() -> None:
    batch = batch_of()
    equal = torch.tensor([[0.75, 0, 0], [0.75, 0, 0], [0, 0, 0]], dtype=torch.float64)
    alike = replace(batch, rewards=equal)
    for penalty in (False, True):
        got = estimate(alike, penalty=penalty, advantage="rloo")
        assert got.kept.tolist() == [False, False, False] and got.values is None
        assert {name: where.tolist() for name, where in got.reasons.items()} == {
            "group_of_one": [False, False, True],
            "flat_group": [True, True, False],
        }
        assert not got.mask.any()
