"""The tokenizer and the model that are made from nothing."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaForCausalLM, PreTrainedTokenizerFast

from turngym.agents.chat_template import CONTROL_TOKENS, PlainTemplate, TextCodec
from turngym.agents.tiny import build_model, build_tokenizer
from turngym.agents.transcript import Transcript
from turngym.errors import ConfigError

# Case 61: a word right behind each control token, leading and many blanks, newlines, digits, accents, emoji, nothing.
PROBES = (
    *(f"{control}{text}" for control in CONTROL_TOKENS for text in ("key", " key", "Key")),
    *(
        "key<eos>\nkey",
        "key<act>key",
        " take key",
        "take  key",
        "key\n\n\n\tkey",
        "1234567 12",
        "w2-o3 don't",
    ),
    *(
        "caf\u00e9",
        "cafe\u0301",
        "\u00c9t\u00e9",
        "\U0001f511 key",
        "",
        " ",
        "qzxv",
        "[UNK]",
        "##key",
        "key##",
    ),
)


def test_every_word_of_the_texts_is_one_token() -> None:
    codec = TextCodec(
        build_tokenizer(["The Well-known fox's den, 17 steps!", "zig"], words=["blue door", "w2-o3"])
    )
    for word in (
        "the",
        "well-known",
        "fox's",
        "den",
        "17",
        "steps",
        "zig",
        "blue",
        "door",
        "w2-o3",
        ",",
        "!",
    ):
        assert len(codec.encode(word)) == 1 and codec.decode(codec.encode(word)) == word
    assert len(codec.encode("the well-known fox's den, 17 steps!")) == 8


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.from_regex(r"[a-z0-9]{1,12}(['-][a-z0-9]{1,5})?", fullmatch=True))
def test_a_word_never_seen_is_spelled_and_read_back(word: str) -> None:
    codec = SPELLING.setdefault("codec", TextCodec(build_tokenizer(["open the door with a key"])))
    for text in (word, f"open {word} door", f"key {word}"):
        assert codec.decode(codec.encode(text)) == text


SPELLING: dict[str, TextCodec] = {}


def test_case_and_blanks_do_not_matter(tokenizer: PreTrainedTokenizerFast) -> None:
    codec = TextCodec(tokenizer)
    assert codec.encode("  Take\n\tKEY ") == codec.encode("take key")


def test_no_text_and_no_words_make_a_tokenizer_that_spells() -> None:
    codec = TextCodec(build_tokenizer([]))
    assert codec.decode(codec.encode("go north")) == "go north"


def test_the_order_of_texts_changes_no_id() -> None:
    one, two = build_tokenizer(["a b c", "red door"], ["x"]), build_tokenizer(["red x door", "c b a"])
    assert one.get_vocab() == two.get_vocab()


def test_ids_are_dense_and_control_tokens_come_first(tokenizer: PreTrainedTokenizerFast) -> None:
    assert sorted(tokenizer.get_vocab().values()) == list(range(len(tokenizer)))
    assert tokenizer.convert_ids_to_tokens(list(range(len(CONTROL_TOKENS)))) == list(CONTROL_TOKENS)


def test_the_saved_tokenizer_gives_the_same_ids(tokenizer: PreTrainedTokenizerFast, tmp_path: Path) -> None:
    tokenizer.save_pretrained(tmp_path)
    loaded = AutoTokenizer.from_pretrained(tmp_path)
    assert isinstance(loaded, PreTrainedTokenizerFast)
    for probe in PROBES:
        assert TextCodec(loaded).encode(probe) == TextCodec(tokenizer).encode(probe), probe
        assert loaded(probe).input_ids == tokenizer(probe).input_ids, probe
    assert loaded.get_vocab() == tokenizer.get_vocab()
    assert PlainTemplate(loaded).stop_ids == PlainTemplate(tokenizer).stop_ids
    assert (loaded.bos_token, loaded.eos_token, loaded.pad_token) == ("<bos>", "<eos>", "<pad>")
    transcripts = (Transcript(), Transcript())
    for one, transcript in zip((tokenizer, loaded), transcripts, strict=True):
        PlainTemplate(one).open(transcript, "Open the door.", "You see a Zebra-fish.")
    assert transcripts[0].segments() == transcripts[1].segments()


def test_the_saved_model_loads_in_plain_transformers(
    make_model: Callable[..., LlamaForCausalLM], tmp_path: Path
) -> None:
    model = make_model(3)
    model.save_pretrained(tmp_path)
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path).eval()
    ids = torch.tensor([[1, 8, 9, 10]])
    with torch.no_grad():
        assert torch.equal(loaded(input_ids=ids).logits, model(input_ids=ids).logits)
    assert loaded.get_input_embeddings().weight is loaded.get_output_embeddings().weight
    assert (loaded.config.bos_token_id, loaded.config.eos_token_id, loaded.config.pad_token_id) == (1, 4, 0)


def test_weights_depend_on_the_seed_alone(tokenizer: PreTrainedTokenizerFast) -> None:
    def weights(seed: int) -> torch.Tensor:
        model = build_model(tokenizer, hidden=16, layers=1, heads=2, ff=24, positions=32, seed=seed)
        return torch.cat([param.detach().flatten() for param in model.parameters()])

    torch.manual_seed(1)
    before = torch.get_rng_state()
    first = weights(7)
    assert torch.equal(torch.get_rng_state(), before)
    torch.manual_seed(2)
    assert torch.equal(weights(7), first)
    assert not torch.equal(weights(8), first)


@pytest.mark.parametrize(("hidden", "heads"), [(30, 4), (20, 4)])
def test_a_width_that_does_not_split_into_even_heads_is_refused(
    tokenizer: PreTrainedTokenizerFast, hidden: int, heads: int
) -> None:
    with pytest.raises(ConfigError, match=f"model.hidden = {hidden} must be an even multiple"):
        build_model(tokenizer, hidden=hidden, layers=1, heads=heads, ff=24, positions=32, seed=0)
