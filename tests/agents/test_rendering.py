"""Demonstrations become the very tokens that a rollout of the same commands records."""

from dataclasses import replace

import pytest
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from turngym.agents.action_formats import PlainFormat
from turngym.agents.base import Job
from turngym.agents.chat_template import PlainTemplate
from turngym.agents.engines.base import Completion, Request
from turngym.agents.engines.local import LocalEngine
from turngym.agents.policy import PolicyAgent
from turngym.agents.rendering import demonstration_of, render_demonstration, told
from turngym.agents.rollout import play
from turngym.agents.scripted import NoisyExpertAgent
from turngym.agents.tiny import build_model, build_tokenizer
from turngym.envs.base import TurnEnv
from turngym.envs.pool import EnvRef, InlinePool
from turngym.types import Author, Demonstration, Episode, Segment

FORMAT = PlainFormat()


class RecitingEngine(LocalEngine):
    """'Samples' the commands of given episodes."""

    def __init__(self, model: LlamaForCausalLM, template: PlainTemplate, episodes: list[Episode]) -> None:
        super().__init__(model)
        self._template = template
        self._commands = {one.number: [turn.command for turn in one.turns] for one in episodes}
        self._asked: list[Request] = []

    def submit(self, request: Request) -> None:
        self._asked.append(request)

    def step(self) -> list[Completion]:
        done = []
        for request in self._asked:
            command = self._commands[request.episode][request.stream.turn]
            ids = tuple(self._template.message_ids(FORMAT.write(command)))
            done.append(Completion(request.id, request.episode, ids, (-0.5,) * len(ids), "stop", 0))
        self._asked = []
        return done


@pytest.fixture
def tokenizer(vault: type[TurnEnv]) -> PreTrainedTokenizerFast:
    env = vault()
    observation, info = env.reset(seed=0)
    return build_tokenizer([observation, info["instructions"]], words=["click clack lamp flickers"])


def as_demonstration(segments: tuple[Segment, ...], authors: tuple[Author, ...]) -> tuple[Segment, ...]:
    """What a demonstration's segments look like where a policy wrote these: another author, no log-probs."""
    return tuple(
        replace(
            segment,
            log_probs=(0.0,) * len(segment.token_ids),
            spans=tuple(
                replace(span, author=authors[span.turn]) if span.author == "policy" else span
                for span in segment.spans
            ),
        )
        for segment in segments
    )


def test_a_demonstration_is_byte_for_byte_what_a_rollout_of_its_commands_records(
    vault: type[TurnEnv], tokenizer: PreTrainedTokenizerFast
) -> None:
    template = PlainTemplate(tokenizer)
    jobs = [Job(number, number, EnvRef.of(vault), f"vault/{number}", number) for number in range(12)]
    shown = play(jobs, pool=InlinePool(), agent=NoisyExpertAgent(noise=(0.4,)))
    assert {turn.author for one in shown for turn in one.turns} == {"expert", "noise"}
    model = build_model(tokenizer, hidden=16, layers=1, heads=2, ff=16, positions=32, seed=0)
    agent = PolicyAgent(
        RecitingEngine(model, template, shown), template, template.codec, FORMAT,
        name="it", temperature=1.0, max_new_tokens=8, max_context=1000,
    )  # fmt: skip
    played = play(jobs, pool=InlinePool(), agent=agent, slots=5)
    for one, other in zip(shown, played, strict=True):
        assert [turn.command for turn in one.turns] == [turn.command for turn in other.turns]
        assert one.outcome == other.outcome
        rendered = render_demonstration(demonstration_of(one), template, FORMAT)
        assert rendered == as_demonstration(other.segments, tuple(turn.author for turn in one.turns))


def demonstration(*commands: str, authors: tuple[Author, ...] = ()) -> Demonstration:
    observations = tuple(f"click {turn}" for turn in range(len(commands) + 1))
    return Demonstration("t", "open the vault", observations, commands, authors)


def test_the_observation_after_the_last_command_is_not_rendered(tokenizer: PreTrainedTokenizerFast) -> None:
    template = PlainTemplate(tokenizer)
    (segment,) = render_demonstration(
        demonstration("read", "turn red", authors=("expert", "noise")), template, FORMAT
    )
    assert segment.token_ids[-3:] == tuple(template.message_ids("turn red"))
    assert [(span.turn, span.author) for span in segment.spans if span.author in ("expert", "noise")] == [
        (0, "expert"), (1, "noise")
    ]  # fmt: skip


def test_authors_left_out_mean_the_expert(tokenizer: PreTrainedTokenizerFast) -> None:
    template = PlainTemplate(tokenizer)
    told_apart = render_demonstration(
        demonstration("read", "read", authors=("expert", "expert")), template, FORMAT
    )
    assert render_demonstration(demonstration("read", "read"), template, FORMAT) == told_apart


def test_too_few_authors_are_an_error(tokenizer: PreTrainedTokenizerFast) -> None:
    with pytest.raises(ValueError, match="shorter"):
        render_demonstration(
            demonstration("read", "read", authors=("expert",)), PlainTemplate(tokenizer), FORMAT
        )


def test_a_format_puts_its_syntax_behind_the_instructions() -> None:
    class Shouting(PlainFormat):
        syntax = "Shout."

    assert told("Open the vault.", Shouting()) == "Open the vault. Shout."
    assert told("Open the vault.", FORMAT) == "Open the vault."
