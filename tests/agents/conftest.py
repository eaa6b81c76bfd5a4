"""Small models with strong attention, so that a wrong cache shows at once."""

from collections.abc import Callable, Iterator

import pytest
import torch
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from turngym.agents.tiny import build_model, build_tokenizer


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def tokenizer() -> PreTrainedTokenizerFast:
    """Knows the words of a small house."""
    return build_tokenizer(
        ["Open the door. You see a red key.", "take key", "go north", "Taken: the red key. You have 6 turns."]
    )


@pytest.fixture
def make_model(tokenizer: PreTrainedTokenizerFast) -> Callable[..., LlamaForCausalLM]:
    """Makes a tiny Llama whose next token depends strongly on all tokens before it."""

    def make(seed: int = 0, positions: int = 256) -> LlamaForCausalLM:
        model = build_model(tokenizer, hidden=32, layers=2, heads=2, ff=48, positions=positions, seed=seed)
        model.eval()
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for param in model.parameters():
                if param.ndim == 2:
                    param.copy_(torch.randn(param.shape, generator=generator) * 0.15)
        return model

    return make
