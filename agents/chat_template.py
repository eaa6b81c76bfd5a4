"""How a conversation becomes token ids: the text between the agent's messages, never the messages."""

from typing import Protocol

from tokenizers import Tokenizer
from transformers import PreTrainedTokenizerFast

from turngym.agents.transcript import Transcript
from turngym.errors import ConfigError

BEGIN, OBSERVE, ACT, END, PAD, UNKNOWN = "<bos>", "<obs>", "<act>", "<eos>", "<pad>", "<unk>"
CONTROL_TOKENS = (PAD, BEGIN, OBSERVE, ACT, END, UNKNOWN)


class TextCodec:
    """Text to ids and back; control tokens spelled in a text become plain text, never control tokens."""

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        # A copy, so that the flag changes nothing for other users of the tokenizer.
        self._backend = Tokenizer.from_str(tokenizer.backend_tokenizer.to_str())
        self._backend.encode_special_tokens = True

    def encode(self, text: str) -> list[int]:
        """Ids of a text, without begin or end tokens."""
        ids: list[int] = self._backend.encode(text, add_special_tokens=False).ids
        return ids

    def decode(self, ids: list[int] | tuple[int, ...]) -> str:
        """Text of ids; control tokens are spelled out."""
        text: str = self._backend.decode(list(ids), skip_special_tokens=False)
        return text


class ChatTemplate(Protocol):
    """Renders what stands around the agent's messages, into a transcript."""

    name: str
    stop_ids: tuple[int, ...]

    def open(self, transcript: Transcript, instructions: str, observation: str) -> None:
        """Writes all up to the place where the agent's first message begins."""

    def reply(self, transcript: Transcript, observation: str, *, turn: int, cut: bool) -> None:
        """Writes the environment's reply to the message of turn - 1, up to the agent's next message.

        `cut`: that message ended without a stop token, which the template then adds as its own.
        """

    def message_ids(self, text: str) -> list[int]:
        """Ids of an agent's message as the agent would write it, with its stop token."""


class PlainTemplate:
    """Template of tiny models: `<bos> instructions <obs> o0 <act> a0 <eos> <obs> o1 <act> a1 <eos> ...`."""

    name = "plain"

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self.codec = TextCodec(tokenizer)
        vocabulary = tokenizer.get_vocab()
        missing = [token for token in CONTROL_TOKENS if token not in vocabulary]
        if missing:
            raise ConfigError(
                f"The plain template needs the control tokens {', '.join(missing)}, which this tokenizer lacks. "
                "Use it with models that turngym made (model.preset: tiny)."
            )
        self._ids = {token: vocabulary[token] for token in CONTROL_TOKENS}
        self.stop_ids: tuple[int, ...] = (self._ids[END],)

    def open(self, transcript: Transcript, instructions: str, observation: str) -> None:
        transcript.add([self._ids[BEGIN]], turn=0, author="template")
        transcript.add(self.codec.encode(instructions), turn=0, author="env")
        self._observe(transcript, observation, turn=0)

    def reply(self, transcript: Transcript, observation: str, *, turn: int, cut: bool) -> None:
        if cut:
            transcript.add([self._ids[END]], turn=turn, author="template")
        self._observe(transcript, observation, turn=turn)

    def message_ids(self, text: str) -> list[int]:
        return [*self.codec.encode(text), self._ids[END]]

    def _observe(self, transcript: Transcript, observation: str, *, turn: int) -> None:
        transcript.add([self._ids[OBSERVE]], turn=turn, author="template")
        transcript.add(self.codec.encode(observation), turn=turn, author="env")
        transcript.add([self._ids[ACT]], turn=turn, author="template")
