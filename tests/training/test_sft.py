"""SFT: which tokens carry loss, what the loss is averaged over, which demonstrations a step reads."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from turngym.agents.language_model import LanguageModel
from turngym.agents.play import play
from turngym.episode_file import write_episodes
from turngym.errors import ConfigError
from turngym.training.batch import Row, row_of
from turngym.training.optimizers import OptimizerSet
from turngym.training.recipe import load_recipe
from turngym.training.run import train
from turngym.training.settings import OptimSettings
from turngym.training.sft import mixed_by_weight, rows_that_fit, sft_step
from turngym.types import Author, Segment, Span

ToyRecipe = Callable[..., dict[str, Any]]


class Kept(OptimizerSet):
    """Keeps the gradient of each step and takes none."""

    def step(self, done: int) -> float:
        self.gradient = torch.cat([p.grad.flatten() for p in self.params if p.grad is not None]).double()
        self.zero_grad()
        return float(self.gradient.norm())


@pytest.fixture
def lm() -> LanguageModel:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        config = LlamaConfig(
            vocab_size=20, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16,
            max_position_embeddings=64, initializer_range=0.3,
        )  # fmt: skip
        return LanguageModel.of(LlamaForCausalLM(config))


def segment(*parts: tuple[Author, int], seed: int) -> Segment:
    """Random tokens of some authors, all of turn 0."""
    spans, start = [], 0
    for author, count in parts:
        spans.append(Span(start, start + count, 0, author))
        start += count
    ids = np.random.default_rng(seed).integers(0, 20, size=start)
    return Segment(tuple(ids.tolist()), (0.0,) * start, tuple(spans))


def demos() -> list[Segment]:
    return [
        segment(("env", 3), ("expert", 2), ("env", 4), ("noise", 3), ("env", 1), ("expert", 1), seed=1),
        segment(("env", 2), ("expert", 5), seed=2),
        segment(("env", 9), ("noise", 2), ("env", 2), ("expert", 2), seed=3),
    ]


def rows_of(trained: tuple[Author, ...], text_weight: float = 0.0) -> list[Row]:
    return [row_of(one, i, trained=trained, text_weight=text_weight) for i, one in enumerate(demos())]


def log_prob_sum(lm: LanguageModel, authors: tuple[Author, ...]) -> tuple[float, int]:
    """Sum of log-probs over the tokens of some authors, one sequence at a time, and their number."""
    total, count = 0.0, 0
    for one in demos():
        ids = torch.tensor([one.token_ids])
        with torch.no_grad():
            table = torch.log_softmax(lm.model(input_ids=ids).logits[0], dim=-1)
        for span in one.spans:
            for place in range(max(span.start, 1), span.end) if span.author in authors else ():
                total += float(table[place - 1, one.token_ids[place]])
                count += 1
    return total, count


def optimizer(lm: LanguageModel) -> Kept:
    return Kept(lm.model, OptimSettings(), 1)


@pytest.mark.parametrize("trained", [("expert",), ("expert", "noise")])
def test_the_loss_is_the_mean_over_the_tokens_of_the_trained_authors(
    lm: LanguageModel, trained: tuple[Author, ...]
) -> None:
    total, count = log_prob_sum(lm, trained)
    report = sft_step(lm, rows_of(trained), optimizer(lm), 0, 1000)
    assert report.num_tokens == count
    assert report.loss == pytest.approx(-total / count, rel=1e-5)


@pytest.mark.parametrize("text_weight", [0.0, 0.3])
def test_cutting_into_micro_batches_changes_no_gradient(lm: LanguageModel, text_weight: float) -> None:
    whole, cut = optimizer(lm), optimizer(lm)
    sft_step(lm, rows_of(("expert",), text_weight), whole, 0, 1000)
    sft_step(lm, rows_of(("expert",), text_weight), cut, 0, 1)
    torch.testing.assert_close(cut.gradient, whole.gradient, rtol=1e-5, atol=1e-7)


def test_text_adds_its_weighted_loss_and_nothing_to_the_denominator(lm: LanguageModel) -> None:
    plain, with_text = optimizer(lm), optimizer(lm)
    sft_step(lm, rows_of(("expert",)), plain, 0, 1000)
    sft_step(lm, rows_of(("expert",), 0.3), with_text, 0, 1000)
    _, count = log_prob_sum(lm, ("expert",))
    lm.model.zero_grad()
    for one in demos():
        ids = torch.tensor([one.token_ids])
        table = torch.log_softmax(lm.model(input_ids=ids).logits[0], dim=-1)
        for span in one.spans:
            for place in range(max(span.start, 1), span.end) if span.author == "env" else ():
                (-0.3 * table[place - 1, one.token_ids[place]] / count).backward(retain_graph=True)
    text = torch.cat([p.grad.flatten() for p in lm.model.parameters() if p.grad is not None]).double()
    torch.testing.assert_close(with_text.gradient - plain.gradient, text, rtol=1e-4, atol=1e-6)


def test_rows_too_long_for_the_agent_are_left_out() -> None:
    rows = rows_of(("expert",))
    assert [len(row) for row in rows] == [14, 7, 15]
    assert rows_that_fit(rows, 14, "sft") == rows[:2]
    with pytest.raises(ConfigError, match="the shortest has 7 tokens"):
        rows_that_fit(rows, 6, "sft")


def test_a_run_counts_the_demonstrations_that_it_left_out(toy: ToyRecipe) -> None:
    longest = train(toy(rl=None))
    assert all(row["episodes/dropped_too_long"] == 0 for row in longest.metrics())
    recipe = load_recipe(toy(rl=None, out=f"{longest.out}-short"), agent__max_context=16)
    with pytest.raises(ConfigError, match="longer than agent.max_context=16"):
        train(recipe)


@pytest.mark.parametrize(
    ("train_on", "author", "trained"),
    [("expert", "human", True), ("expert", "noise", False), ("all", "noise", True)],
)
def test_a_person_s_turns_are_imitated_and_slips_only_where_asked(
    train_on: str, author: Author, trained: bool, toy: ToyRecipe, tmp_path: Path
) -> None:
    episodes = [
        replace(one, turns=tuple(replace(turn, author=author) for turn in one.turns))
        for one in play("toy_env:toy/Signs-v0", episodes=4)
    ]
    write_episodes(tmp_path / "mine.jsonl", episodes)
    recipe = toy(
        sft={
            "steps": 1, "episodes_per_step": 4, "demos": {"files": [str(tmp_path / "mine.jsonl")]},
            "train_on": train_on, "text_weight": 0.1,
        },
        rl=None,
    )  # fmt: skip
    (row,) = train(recipe).metrics()
    # Two commands of one word in each of four episodes, and each has its end.
    assert row["tokens/trained"] == (16 if trained else 0)


def test_a_context_beyond_the_models_positions_is_refused(toy: ToyRecipe) -> None:
    with pytest.raises(ConfigError, match=r"max_context = 65 exceeds model.positions = 64"):
        load_recipe(toy(), agent__max_context=65)


def test_environments_share_the_demonstrations_by_weight_and_each_comes_once_before_any_comes_twice() -> None:
    groups = [list(range(6)), list(range(6, 46))]
    plan = mixed_by_weight(groups, [3.0, 1.0], 2000, (7, "sft"))
    first, second = ([index for index in plan if index in group] for group in groups)
    assert len(first) / len(plan) == pytest.approx(0.75, abs=0.04)
    for mine, group in ((first, groups[0]), (second, groups[1])):
        size = len(group)
        for start in range(0, len(mine) - size + 1, size):
            assert sorted(mine[start : start + size]) == group
    assert first[:6] != first[6:12]
    assert mixed_by_weight(groups, [3.0, 1.0], 500, (7, "sft")) == plan[:500]
    assert mixed_by_weight(groups, [3.0, 1.0], 500, (8, "sft")) != plan[:500]


def test_the_weights_of_a_recipes_environments_hold_in_sft(
    toy: ToyRecipe, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Demonstrations of an environment that the recipe does not name weigh 1."""
    seen: list[tuple[int, list[float]]] = []

    def watch(groups: list[list[int]], weights: list[float], *more: Any) -> list[int]:
        seen.append((len(groups), weights))
        return mixed_by_weight(groups, weights, *more)

    monkeypatch.setattr("turngym.training.sft.mixed_by_weight", watch)
    rooms = {"id": "turngym/Rooms-v0", "kwargs": {"level": "w2-o2-q2"}, "weight": 0.5}
    recipe = toy(sft={"steps": 1, "tasks": {"count": 8}})
    recipe["agent"], recipe["model"]["positions"] = {"max_new_tokens": 10, "max_context": 512}, 512
    recipe["envs"] = [recipe["envs"][0] | {"weight": 2.0}, rooms]
    train(recipe, only="sft")
    assert seen == [(2, [2.0, 0.5])]
