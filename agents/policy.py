"""The agent that is a language model: reads by a template, writes by an engine."""

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass

from turngym.agents.action_formats import ActionFormat
from turngym.agents.base import Decision, Reading
from turngym.agents.chat_template import ChatTemplate, TextCodec
from turngym.agents.engines.base import Completion, Engine, Request, Sampling, Stream
from turngym.agents.rendering import told
from turngym.agents.transcript import Transcript
from turngym.envs.pool import Wants
from turngym.types import Segment


@dataclass(slots=True)
class _Talk:
    transcript: Transcript
    turn: int = 0
    cut: bool = False


class PolicyAgent:
    """A language model that plays many episodes at once; context policy `full`.

    Args:
        temperature: of sampling; 0 is greedy.
        max_new_tokens: most tokens of one message.
        max_context: most tokens of an episode; an episode that would pass it ends by `token_limit`.
        trained_tasks: keys (`task_key`) of tasks that were trained on, for the benchmark's warning.
        selected_on: what the weights were chosen by, for reports.
    """

    wants = Wants()

    def __init__(
        self,
        engine: Engine,
        template: ChatTemplate,
        codec: TextCodec,
        fmt: ActionFormat,
        *,
        name: str,
        temperature: float,
        max_new_tokens: int,
        max_context: int,
        trained_tasks: Iterable[str] = (),
        selected_on: str = "",
    ) -> None:
        self.name = name
        self.selected_on = selected_on
        self.engine = engine
        self.trained_tasks = frozenset(trained_tasks)
        self.sampling = Sampling(temperature, max_new_tokens, template.stop_ids)
        self.max_context = max_context
        self._template, self._codec, self._format = template, codec, fmt
        self._talks: dict[int, _Talk] = {}
        self._full: list[Decision] = []

    @property
    def weights_version(self) -> int:
        return self.engine.version

    def submit(self, reading: Reading) -> None:
        if reading.turn == 0:
            talk = self._talks[reading.episode] = _Talk(Transcript())
            instructions = told(reading.info.instructions or "", self._format)
            self._template.open(talk.transcript, instructions, reading.observation)
        else:
            talk = self._talks[reading.episode]
            self._template.reply(talk.transcript, reading.observation, turn=reading.turn, cut=talk.cut)
        talk.turn = reading.turn
        prompt = talk.transcript.token_ids
        if len(prompt) + self.sampling.max_new_tokens > self.max_context:
            self._full.append(Decision(reading.episode, "", ending="token_limit"))
            return
        stream = Stream(reading.seed, reading.episode, reading.attempt, reading.turn)
        # The episode's number serves as request id: an episode writes one message at a time.
        self.engine.submit(Request(reading.episode, reading.episode, list(prompt), self.sampling, stream))

    def step(self) -> list[Decision]:
        full, self._full = self._full, []
        return full + [self._decide(completion) for completion in self.engine.step()]

    def finish(self, episode: int, observation: str) -> tuple[Segment, ...]:
        talk = self._talks.pop(episode, None)
        self.engine.release(episode)
        return talk.transcript.segments() if talk is not None else ()

    def _decide(self, completion: Completion) -> Decision:
        talk = self._talks[completion.episode]
        talk.transcript.add(
            completion.token_ids, turn=talk.turn, author="policy", log_probs=completion.log_probs
        )
        talk.cut = completion.finish_reason != "stop"
        written = completion.token_ids if talk.cut else completion.token_ids[:-1]
        reply = self._format.parse(self._codec.decode(written))
        return Decision(
            completion.episode,
            reply.command,
            thought=reply.thought,
            finish_reason=completion.finish_reason,
        )


def task_key(env_id: str, task: str) -> str:
    """12 hex digits that stand for a task of an environment, however its id is written."""
    env_id = env_id.rpartition(":")[2]
    env_id = env_id if "/" in env_id else f"turngym/{env_id}"
    return hashlib.sha256(f"{env_id}\n{task}".encode()).hexdigest()[:12]
