"""A causal language model split into trunk and head, so that logits are made only where they are needed."""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel

PROBE_TOLERANCE = 1e-4


@dataclass(frozen=True, slots=True)
class LanguageModel:
    """Hidden states and logits of a Hugging Face causal model."""

    model: PreTrainedModel
    splits: bool

    @classmethod
    def of(cls, model: PreTrainedModel) -> "LanguageModel":
        """Finds out by a probe whether head(trunk(x)) equals the model's own logits.

        Models that scale or cap their logits after the head do not split; they are run whole.
        """
        probe = torch.arange(1, 5, device=model.device).unsqueeze(0) % model.config.vocab_size
        training = model.training
        model.eval()
        with torch.no_grad():
            whole = model(input_ids=probe, use_cache=False).logits
            head = model.get_output_embeddings()
            splits = False
            if head is not None:
                parted = head(model.base_model(input_ids=probe, use_cache=False).last_hidden_state)
                splits = parted.shape == whole.shape and bool((parted - whole).abs().max() < PROBE_TOLERANCE)
        model.train(training)
        return cls(model, splits)

    def hidden(self, **inputs: Any) -> Tensor:
        """(B, T, H) last hidden states; for a model that does not split, (B, T, V) logits."""
        if self.splits:
            states: Tensor = self.model.base_model(**inputs).last_hidden_state
            return states
        logits: Tensor = self.model(**inputs).logits
        return logits

    def logits(self, hidden: Tensor) -> Tensor:
        """(N, V) logits in float32 of (N, H) chosen hidden states."""
        if not self.splits:
            return hidden.float()
        head: nn.Module = self.model.get_output_embeddings()
        out: Tensor = head(hidden)
        return out.float()
