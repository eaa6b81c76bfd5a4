"""Agents without a model, and the rule of honest experts."""

from collections.abc import Sequence

import pytest

from turngym.agents.base import Agent, Job
from turngym.agents.play import play as play_episodes
from turngym.agents.rollout import play
from turngym.agents.scripted import (
    ExpertAgent,
    NoisyExpertAgent,
    RandomAgent,
    ReplayAgent,
    require_expert,
)
from turngym.envs.base import TurnEnv
from turngym.envs.honesty import Seen, words_of
from turngym.envs.pool import EnvRef, InlinePool
from turngym.errors import ConfigError
from turngym.types import Episode


def episodes_of(agent: Agent, env: type[TurnEnv], count: int = 1, *, seed: int = 0) -> list[Episode]:
    ref = EnvRef.of(env)
    jobs = [Job(number, number, ref, f"vault/{number}", seed) for number in range(count)]
    return play(jobs, pool=InlinePool(), agent=agent)


def commands_of(episode: Episode) -> list[str]:
    return [turn.command for turn in episode.turns]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Take the brass-key.", ["take", "the", "brass-key"]),
        ("Bob's box (3)", ["bob's", "box", "3"]),
        ("-- 'quoted' --", ["quoted"]),
        ("", []),
        ("Été, 漢字!", ["été", "漢字"]),
    ],
)
def test_words_are_lower_case_and_parted_by_punctuation(text: str, words: list[str]) -> None:
    assert words_of(text) == words


def test_unseen_words_are_those_neither_shown_nor_of_the_language() -> None:
    seen = Seen()
    seen.add("A red key lies here.")
    assert seen.unseen("take red key from box", frozenset({"take", "from"})) == ["box"]


def test_the_inquiry_is_played_once_for_each_unseen_word() -> None:
    seen, allowed = Seen(), frozenset({"take"})
    assert seen.honest_command(["take key"], "look", allowed) == "look"
    assert seen.honest_command(["take key"], "look", allowed) == "take key"
    assert seen.honest_command(["take box"], "look", allowed) == "look"
    assert seen.honest_command(["take box"], "", allowed) == "take box"
    assert seen.honest_command([], "", allowed) == "look"


def test_the_expert_solves_and_says_nothing_that_was_not_shown(vault: type[TurnEnv]) -> None:
    for episode in episodes_of(ExpertAgent(), vault, 10):
        assert episode.success and episode.agent == "expert"
        assert {turn.author for turn in episode.turns} == {"expert"}
        seen = Seen()
        seen.add(episode.instructions)
        seen.add(episode.observation)
        for turn in episode.turns:
            assert not seen.unseen(turn.command, vault.command_words)
            seen.add(turn.observation)


@pytest.fixture
def silent_vault(vault: type[TurnEnv]) -> type[TurnEnv]:
    """The vault, but only `read` shows the colours."""
    return type("SilentVault", (vault,), {"load": lambda self, task, rng: vault.load(self, task, rng)[:7]})


def test_the_expert_asks_first_where_names_were_not_shown(
    silent_vault: type[TurnEnv], vault: type[TurnEnv]
) -> None:
    (shown,) = episodes_of(ExpertAgent(), vault)
    (hidden,) = episodes_of(ExpertAgent(), silent_vault)
    assert [command.split()[0] for command in commands_of(shown)] == ["turn", "turn"]
    assert [command.split()[0] for command in commands_of(hidden)] == ["read", "turn", "turn"]
    assert hidden.success


def test_the_expert_looks_on_where_there_is_no_plan(vault: type[TurnEnv]) -> None:
    planless = type("Planless", (vault,), {"plan": lambda self: []})
    (episode,) = episodes_of(ExpertAgent(), planless)
    assert (episode.outcome, commands_of(episode)) == ("turn_limit", ["read"] * 6)


def test_an_expert_is_refused_where_there_is_none(vault: type[TurnEnv]) -> None:
    class Planless(vault):  # type: ignore[misc, valid-type]
        can_plan = False

    require_expert(RandomAgent(), EnvRef("planless", {}, Planless))
    require_expert(NoisyExpertAgent(), EnvRef("vault", {}, vault))
    with pytest.raises(ConfigError, match=r"planless with \{'max_turns': 3\} has no expert"):
        require_expert(NoisyExpertAgent(), EnvRef("planless", {"max_turns": 3}, Planless))
    with pytest.raises(ConfigError, match="Play it with another agent"):
        play_episodes(Planless)


def test_noise_is_marked_and_the_expert_plans_anew(vault: type[TurnEnv]) -> None:
    episodes = episodes_of(NoisyExpertAgent(noise=[0.3]), vault, 30)
    turns = [turn for episode in episodes for turn in episode.turns]
    slips = [turn for turn in turns if turn.author == "noise"]
    assert {turn.author for turn in turns} == {"noise", "expert"}
    # About 100 turns at 0.3: standard deviation 0.05.
    assert 0.15 < len(slips) / len(turns) < 0.45
    assert any(not turn.valid for turn in slips) and all(
        turn.valid for turn in turns if turn.author == "expert"
    )
    setbacks = [one for one in episodes if any(turn.reward < 0 for turn in one.turns)]
    assert setbacks and sum(one.success for one in setbacks) > 0
    assert sum(one.success for one in episodes) >= 20


def test_noise_ends_are_the_expert_and_chance(vault: type[TurnEnv]) -> None:
    clean = episodes_of(NoisyExpertAgent(noise=[0.0]), vault, 5)
    assert [commands_of(one) for one in clean] == [
        commands_of(one) for one in episodes_of(ExpertAgent(), vault, 5)
    ]
    wild = episodes_of(NoisyExpertAgent(noise=[1.0]), vault, 5)
    assert {turn.author for one in wild for turn in one.turns} == {"noise"}


def test_each_episode_takes_one_of_the_noise_levels(vault: type[TurnEnv]) -> None:
    episodes = episodes_of(NoisyExpertAgent(noise=[0.0, 1.0]), vault, 20)
    authors = [{turn.author for turn in episode.turns} for episode in episodes]
    assert all(len(one) == 1 for one in authors)
    assert {"noise"} in authors and {"expert"} in authors


@pytest.mark.parametrize("noise", [[], [1.5], [-0.1], [0.1, 2.0]])
def test_noise_is_a_probability(noise: list[float]) -> None:
    with pytest.raises(ConfigError, match="probabilities from 0 to 1"):
        NoisyExpertAgent(noise=noise)


def test_random_plays_admissible_commands_that_follow_the_seed(vault: type[TurnEnv]) -> None:
    episodes = episodes_of(RandomAgent(), vault, 20)
    played = [commands_of(one) for one in episodes]
    assert {command for one in played for command in one} == {"read", "turn blue", "turn green", "turn red"}
    assert played == [commands_of(one) for one in episodes_of(RandomAgent(), vault, 20)]
    assert played != [commands_of(one) for one in episodes_of(RandomAgent(), vault, 20, seed=1)]
    assert {turn.author for one in episodes for turn in one.turns} == {"policy"}


def test_random_says_when_no_commands_are_listed(vault: type[TurnEnv]) -> None:
    with pytest.raises(ConfigError, match="needs admissible commands, and task 'vault/0' lists none"):
        episodes_of(RandomAgent(), type("Unlisted", (vault,), {"commands": lambda self: None}))


def test_replay_plays_its_commands_and_then_looks_on(vault: type[TurnEnv]) -> None:
    scripts: dict[int, Sequence[str]] = {0: ["read", "smash"], 1: ["read"]}
    first, second = episodes_of(ReplayAgent(scripts), vault, 2)
    assert (commands_of(first), first.outcome) == (["read", "smash"], "lost")
    assert (commands_of(second), second.outcome) == (["read", "", "", "", "", ""], "turn_limit")
