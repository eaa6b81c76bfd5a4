"""Keys and values of many rows in one buffer, kept across turns."""

import torch
from torch import Tensor
from transformers import PretrainedConfig
from transformers.cache_utils import Cache, DynamicLayer

GROWTH = 64
"""The buffer grows to multiples of this many positions."""


class SlotCache(Cache):
    """One buffer (layers, 2, rows, heads, positions, d); row r holds its episode's positions 0..length-1.

    Each row writes at its own length, so there are no holes: a position behind a row's length may hold
    anything, and the attention mask hides it until it is written. A forward pass works on a contiguous
    range of rows, which `aim` sets, so that attention reads views and copies nothing.
    """

    def __init__(self, config: PretrainedConfig, rows: int, dtype: torch.dtype, device: torch.device) -> None:
        super().__init__(layers=[DynamicLayer()])
        heads = getattr(config, "num_key_value_heads", None) or config.num_attention_heads
        size = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
        self.shape = (config.num_hidden_layers, 2, rows, heads, 0, size)
        self.buffer = torch.zeros(self.shape, dtype=dtype, device=device)
        self._first = 0
        self._rows = torch.zeros(0, dtype=torch.long)
        self._places = torch.zeros(0, 0, dtype=torch.long)
        self._reach = 0

    @property
    def rows(self) -> int:
        return self.buffer.shape[2]

    def reserve(self, rows: int, positions: int) -> None:
        """Makes room for so many rows and positions; what is held stays."""
        old = self.buffer
        if rows <= old.shape[2] and positions <= old.shape[4]:
            return
        rows = max(rows, old.shape[2])
        positions = max(-(-positions // GROWTH) * GROWTH, old.shape[4])
        layers, two, _, heads, _, size = old.shape
        self.buffer = old.new_zeros((layers, two, rows, heads, positions, size))
        self.buffer[:, :, : old.shape[2], :, : old.shape[4]] = old

    def move(self, sources: list[int], targets: list[int], reach: int) -> None:
        """Copies whole rows, all at once, so that swaps work; only the first `reach` positions."""
        if sources:
            self.buffer[:, :, targets, :, :reach] = self.buffer[:, :, sources, :, :reach]

    def aim(self, first: int, lengths: Tensor, new: int) -> None:
        """Sets the rows first.. of the next forward pass, which adds `new` positions after `lengths` (N,)."""
        self._first = first
        self._rows = torch.arange(first, first + len(lengths), device=lengths.device).unsqueeze(1)
        self._places = lengths.unsqueeze(1) + torch.arange(new, device=lengths.device)
        self._reach = int(lengths.max()) + new

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *args: object, **kwargs: object
    ) -> tuple[Tensor, Tensor]:
        """Writes (N, heads, new, d) keys and values in place; returns views of all that the rows hold."""
        keys, values = self.buffer[layer_idx]
        keys[self._rows, :, self._places] = key_states.transpose(1, 2)
        values[self._rows, :, self._places] = value_states.transpose(1, 2)
        rows = slice(self._first, self._first + len(self._rows))
        return keys[rows, :, : self._reach], values[rows, :, : self._reach]

    def get_seq_length(self, layer_idx: int = 0) -> int:
        return self._reach
