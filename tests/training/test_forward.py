"""Scores and values of rows against plain forward passes."""

import copy
from collections.abc import Sequence
from typing import cast

import numpy as np
import pytest
import torch
from torch import Tensor
from transformers import Gemma2Config, Gemma2ForCausalLM, LlamaConfig, LlamaForCausalLM, PreTrainedModel

from turngym.agents.language_model import LanguageModel
from turngym.training.batch import Row
from turngym.training.forward import Critic, score_rows, token_scores, value_places


@pytest.fixture(scope="module")
def lm() -> LanguageModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        config = LlamaConfig(
            vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
            max_position_embeddings=64, initializer_range=0.3,
        )  # fmt: skip
        return LanguageModel.of(LlamaForCausalLM(config).eval())


def rows_of(seed: int, count: int = 5) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows = []
    for episode in range(count):
        length = int(rng.integers(2, 20))
        mask = rng.random(length) < 0.4
        mask[0] = False
        turn = np.cumsum(np.diff(mask.astype(int), prepend=0) == 1)
        rows.append(Row(rng.integers(0, 40, length), mask, turn, np.zeros(length), mask * 1.0, episode))
    return rows


def slow(lm: LanguageModel, rows: Sequence[Row], temperature: float) -> tuple[Tensor, Tensor]:
    """Log-probs and entropies of the action tokens, row by row, over the whole (T, V) table."""
    picked, entropy = [], []
    for row in rows:
        logits = lm.model(input_ids=torch.from_numpy(row.token_ids).unsqueeze(0), use_cache=False).logits[0]
        table = torch.log_softmax(logits.double() / temperature, dim=-1)
        for place in np.flatnonzero(row.action_mask):
            picked.append(table[place - 1, row.token_ids[place]])
            entropy.append(-(table[place - 1].exp() * table[place - 1]).sum())
    return torch.stack(picked), torch.stack(entropy)


@pytest.mark.parametrize("temperature", [1.0, 0.6, 2.0])
def test_scores_equal_a_full_log_softmax(lm: LanguageModel, temperature: float) -> None:
    rows = rows_of(1)
    got = token_scores(lm, rows, temperature=temperature)
    log_probs, entropy = slow(lm, rows, temperature)
    assert got.log_probs.dtype == torch.float32
    torch.testing.assert_close(got.log_probs.double(), log_probs, atol=2e-6, rtol=1e-6)
    torch.testing.assert_close(got.entropy.double(), entropy, atol=2e-6, rtol=1e-6)


def test_padding_and_the_order_of_rows_change_nothing(lm: LanguageModel) -> None:
    rows = rows_of(3)
    alone = [token_scores(lm, [row], temperature=1.0).log_probs for row in rows if row.action_mask.any()]
    together = token_scores(lm, rows, temperature=1.0).log_probs
    torch.testing.assert_close(torch.cat(alone), together, atol=2e-6, rtol=1e-6)
    turned = token_scores(lm, rows[::-1], temperature=1.0).log_probs
    counts = [int(row.action_mask.sum()) for row in rows]
    back = torch.cat(turned.split(counts[::-1])[::-1])
    torch.testing.assert_close(back, together, atol=2e-6, rtol=1e-6)


def test_other_tokens_can_be_chosen(lm: LanguageModel) -> None:
    rows = rows_of(4)
    chosen = [np.arange(len(row)) > 0 for row in rows]
    everything = [
        Row(r.token_ids, c, r.turn, r.sampler_log_probs, r.loss_weight, 0)
        for r, c in zip(rows, chosen, strict=True)
    ]
    got = token_scores(lm, rows, temperature=1.0, chosen=chosen)
    torch.testing.assert_close(got.log_probs, token_scores(lm, everything, temperature=1.0).log_probs)
    assert len(got.log_probs) == sum(len(row) - 1 for row in rows)


def test_rows_without_action_tokens_give_no_scores(lm: LanguageModel) -> None:
    ids = np.arange(5)
    none = Row(ids, ids < 0, ids, ids * 0.0, ids * 0.0, 0)
    assert token_scores(lm, [none], temperature=1.0).log_probs.shape == (0,)
    assert score_rows(lm, [none, none], temperature=1.0, tokens_per_batch=8).shape == (0,)
    assert score_rows(lm, [], temperature=1.0, tokens_per_batch=8).shape == (0,)


@pytest.mark.parametrize("budget", [1, 25, 1000])
def test_scored_rows_come_in_the_order_of_rows_however_they_are_cut(lm: LanguageModel, budget: int) -> None:
    rows = rows_of(5, count=9)
    got = score_rows(lm, rows, temperature=0.7, tokens_per_batch=budget)
    assert not got.requires_grad
    torch.testing.assert_close(got.double(), slow(lm, rows, 0.7)[0].detach(), atol=2e-6, rtol=1e-6)


def test_a_token_that_cannot_come_adds_no_entropy_and_nan_is_not_hidden(lm: LanguageModel) -> None:
    forced = LanguageModel(copy.deepcopy(lm.model), splits=True)
    head = forced.model.get_output_embeddings()
    bias = torch.zeros(40)
    bias[10:] = -torch.inf
    head.bias = torch.nn.Parameter(bias)
    ids = np.array([1, 2, 3])
    row = Row(ids, ids > 1, ids * 0, ids * 0.0, ids * 0.0, 0)
    entropy = token_scores(forced, [row], temperature=1.0).entropy
    assert bool((entropy > 0).all()) and bool((entropy <= np.log(10) + 1e-6).all())
    with torch.no_grad():
        head.bias.fill_(torch.nan)
    assert bool(token_scores(forced, [row], temperature=1.0).entropy.isnan().all())


def test_the_critic_reads_its_value_at_the_places_asked(lm: LanguageModel) -> None:
    critic = Critic(cast(PreTrainedModel, copy.deepcopy(lm.model.base_model)))
    rows = rows_of(6, count=3)
    places = [[0], [], [1, 0]]
    assert critic(rows, places).tolist() == [0.0, 0.0, 0.0]  # a new critic says nothing
    with torch.no_grad():
        critic.head.weight.normal_()
    got = critic(rows, places)
    for place, value in zip([(0, 0), (2, 1), (2, 0)], got, strict=True):
        # What comes after the place, padding included, cannot matter.
        alone = torch.from_numpy(rows[place[0]].token_ids[: place[1] + 1]).unsqueeze(0)
        hidden = critic.trunk(input_ids=alone, use_cache=False).last_hidden_state[0, -1]
        torch.testing.assert_close(value, critic.head(hidden).squeeze(), atol=2e-6, rtol=1e-5)


def test_the_value_of_an_action_token_is_read_at_the_token_before_it() -> None:
    mask = np.array([False, False, True, True, False, True, False, True])
    turn = np.array([0, 0, 0, 0, 1, 1, 2, 2])
    row = Row(np.arange(8), mask, turn, np.zeros(8), np.zeros(8), 0)
    assert value_places(row) == [1, 2, 4, 6]


def test_a_model_that_changes_its_logits_after_the_head_is_run_whole() -> None:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = Gemma2Config(
            vocab_size=40, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, num_key_value_heads=1, head_dim=8,
            intermediate_size=24, max_position_embeddings=64, final_logit_softcapping=3.0, initializer_range=0.3,
        )  # fmt: skip
        capped = LanguageModel.of(Gemma2ForCausalLM(config).eval())
    assert not capped.splits
    rows = rows_of(1)
    got = token_scores(capped, rows, temperature=1.0).log_probs
    torch.testing.assert_close(got.double(), slow(capped, rows, 1.0)[0], atol=2e-6, rtol=1e-6)
