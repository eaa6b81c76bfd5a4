"""The buffer of keys and values."""

import pytest
import torch
from transformers import LlamaConfig

from turngym.agents.engines.slot_cache import GROWTH, SlotCache


@pytest.fixture
def cache() -> SlotCache:
    """Two layers, three heads of four numbers, no rows."""
    config = LlamaConfig(
        vocab_size=9,
        hidden_size=24,
        num_hidden_layers=2,
        num_attention_heads=6,
        num_key_value_heads=3,
        head_dim=4,
    )
    return SlotCache(config, 0, torch.float32, torch.device("cpu"))


def test_it_has_the_shape_that_the_model_says(cache: SlotCache) -> None:
    assert tuple(cache.buffer.shape) == (2, 2, 0, 3, 0, 4) and cache.rows == 0


def test_it_grows_by_whole_steps_never_shrinks_and_keeps_what_it_holds(cache: SlotCache) -> None:
    cache.reserve(2, 5)
    assert (cache.rows, cache.buffer.shape[4]) == (2, GROWTH)
    cache.buffer.copy_(torch.randn(cache.buffer.shape))
    before = cache.buffer.clone()
    cache.reserve(1, GROWTH)
    assert cache.buffer.shape == before.shape
    cache.reserve(3, GROWTH + 1)
    assert (cache.rows, cache.buffer.shape[4]) == (3, 2 * GROWTH)
    assert torch.equal(cache.buffer[:, :, :2, :, :GROWTH], before)
    cache.reserve(5, 0)
    assert (cache.rows, cache.buffer.shape[4]) == (5, 2 * GROWTH)


def test_rows_move_all_at_once(cache: SlotCache) -> None:
    cache.reserve(3, 8)
    cache.buffer.copy_(torch.arange(3.0).view(1, 1, 3, 1, 1, 1).expand(cache.buffer.shape))
    cache.move([1, 0], [0, 1], 6)
    assert cache.buffer[0, 0, :, 0, 5, 0].tolist() == [1, 0, 2]
    assert cache.buffer[0, 0, :, 0, 6, 0].tolist() == [0, 1, 2]  # behind the reach nothing moves
    cache.move([2, 2], [0, 1], 1)
    assert cache.buffer[1, 1, :, 2, 0, 3].tolist() == [2, 2, 2]
    cache.move([], [], 0)


def test_each_row_writes_behind_its_own_length(cache: SlotCache) -> None:
    cache.reserve(4, 8)
    cache.buffer.fill_(-1)
    cache.aim(1, torch.tensor([3, 0]), 2)
    keys = torch.arange(2 * 3 * 2 * 4.0).view(2, 3, 2, 4)
    got_keys, got_values = cache.update(keys, keys + 100, layer_idx=1)
    assert got_keys.shape == (2, 3, 5, 4) and cache.get_seq_length() == 5
    assert torch.equal(got_keys[0, :, 3:5], keys[0]) and torch.equal(got_keys[1, :, 0:2], keys[1])
    assert torch.equal(got_values[0, :, 3:5], keys[0] + 100)
    assert bool((got_keys[0, :, :3] == -1).all()) and bool((got_keys[1, :, 2:] == -1).all())
    # Views: what a pass reads is the buffer itself. Other rows and layers are as they were.
    assert got_keys.data_ptr() == cache.buffer[1, 0, 1].data_ptr()
    assert bool((cache.buffer[0] == -1).all()) and bool((cache.buffer[:, :, [0, 3]] == -1).all())
