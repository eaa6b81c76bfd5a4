"""A word-level tokenizer and a small Llama made from nothing, for environments with few words."""

import re
from collections.abc import Iterable

import torch
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from turngym import seeding
from turngym.agents.chat_template import BEGIN, CONTROL_TOKENS, END, PAD, UNKNOWN
from turngym.errors import ConfigError

WORD = r"[a-z0-9]+(?:['-][a-z0-9]+)*|[^\sa-z0-9]"
"""Words keep inner hyphens and apostrophes; every other sign is a word of its own."""

_CHARACTERS = "abcdefghijklmnopqrstuvwxyz0123456789'-"


def build_tokenizer(texts: Iterable[str], words: Iterable[str] = ()) -> PreTrainedTokenizerFast:
    """Tokenizer in which every word of `texts` and `words` is one token.

    Text is lower-cased. A word that was never seen is spelled: its longest known beginning, then single
    characters, so that names unseen in training can still be copied.
    """
    known = set(words)
    for text in texts:
        known.update(re.findall(WORD, text.lower()))
    known = {word for entry in known for word in re.findall(WORD, entry.lower())}
    spelled = [*_CHARACTERS, *(f"##{ch}" for ch in _CHARACTERS)]
    entries = [*CONTROL_TOKENS, *spelled, *sorted(known - set(_CHARACTERS))]
    backend = Tokenizer(
        models.WordPiece(
            {entry: i for i, entry in enumerate(entries)}, unk_token=UNKNOWN, max_input_chars_per_word=200
        )
    )
    backend.normalizer = normalizers.Lowercase()
    backend.pre_tokenizer = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    backend.decoder = decoders.WordPiece(prefix="##", cleanup=False)
    backend.add_special_tokens(list(CONTROL_TOKENS))
    return PreTrainedTokenizerFast(
        tokenizer_object=backend,
        bos_token=BEGIN,
        eos_token=END,
        pad_token=PAD,
        unk_token=UNKNOWN,
        clean_up_tokenization_spaces=False,
    )


def build_model(
    tokenizer: PreTrainedTokenizerFast,
    *,
    hidden: int,
    layers: int,
    heads: int,
    ff: int,
    positions: int,
    seed: int,
) -> LlamaForCausalLM:
    """A Llama with tied embeddings and random weights that depend on `seed` alone.

    Args:
        hidden: width, a multiple of `heads`.
        ff: width of the feed-forward part.
        positions: longest sequence, in tokens.
    """
    if hidden % heads or (hidden // heads) % 2:
        raise ConfigError(f"model.hidden = {hidden} must be an even multiple of model.heads = {heads}.")
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=hidden,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        intermediate_size=ff,
        max_position_embeddings=positions,
        rope_parameters={"rope_type": "default", "rope_theta": 1000.0},
        tie_word_embeddings=True,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    # transformers initialises from the global generator; it is put back afterwards.
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seeding.integer(seed, "model"))
        return LlamaForCausalLM(config)
