"""Validation: the same tasks greedily and sampled, infra failures outside."""

from dataclasses import replace

import pytest

from turngym.agents.agent_config import AgentConfig
from turngym.agents.engines.local import LocalEngine
from turngym.agents.tiny import build_model, build_tokenizer
from turngym.envs.pool import InlinePool
from turngym.training.collect import task_sources
from turngym.training.settings import EnvSettings, TaskSlice
from turngym.training.validation import success_rate, validate_policy
from turngym.types import Episode, Outcome

WON = Episode(
    number=0,
    group=0,
    env_id="x",
    env_kwargs={},
    task="t",
    seed=0,
    attempt=0,
    agent="a",
    instructions="",
    observation="",
    turns=(),
    outcome="won",
    score=1.0,
    max_score=1.0,
    start_key="k",
)


# Case 15: of won, won, lost and one infra failure, 2/3 were won.
@pytest.mark.parametrize(
    ("outcomes", "rate"),
    [
        (["won", "won", "lost", "infra"], 2 / 3),
        (["won", "env_fault"], 1 / 2),
        (["won", "turn_limit", "token_limit", "invalid"], 1 / 4),
        (["infra"], 0.0),
        ([], 0.0),
    ],
)
def test_success_is_won_of_all_but_infra_failures(outcomes: list[Outcome], rate: float) -> None:
    assert success_rate([replace(WON, outcome=outcome) for outcome in outcomes]) == rate


def test_a_policy_is_measured_on_each_task_twice_and_always_alike() -> None:
    tokenizer = build_tokenizer(["say it . red blue green the end you have 3 turns"])
    model = build_model(tokenizer, hidden=8, layers=1, heads=2, ff=8, positions=64, seed=1)
    sources = task_sources([EnvSettings(id="toy_env:toy/Signs-v0")], "validation", TaskSlice(count=5))
    config = AgentConfig(max_new_tokens=2, max_context=64)

    def measure(slots: int) -> tuple[float, float, int]:
        got = validate_policy(
            LocalEngine(model), tokenizer, config, sources, InlinePool(), seed=1, slots=slots
        )
        return got.greedy, got.sampled, got.tasks

    assert measure(8) == measure(8)
    greedy, sampled, tasks = measure(2)
    assert tasks == 5 and 0 <= greedy <= 1 and 0 <= sampled <= 1
