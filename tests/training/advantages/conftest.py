"""Ragged batches of turns, with rubbish in every slot that was not played."""

from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch
from torch import Tensor

Columns = dict[str, Tensor]


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="session")
def ragged() -> Callable[[int], Columns]:
    """Makes `rewards`, `mask` and `group` of a seed: groups of 1 to 5 episodes of 1 to 5 turns, in any order."""

    def make(seed: int) -> Columns:
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 6, size=rng.integers(1, 5))
        group = rng.permutation(np.repeat(rng.choice(90, size=len(sizes), replace=False), sizes))
        lengths = rng.integers(1, 6, size=len(group))
        mask = torch.arange(int(lengths.max()) + int(rng.integers(0, 2))) < torch.tensor(lengths).unsqueeze(1)
        if rng.random() < 0.5:
            rewards = torch.from_numpy(rng.normal(size=mask.shape))
        else:  # 0 or 1 at the end, so that some groups are flat
            rewards = torch.zeros(mask.shape, dtype=torch.float64)
            rewards[torch.arange(len(lengths)), torch.tensor(lengths) - 1] = torch.from_numpy(
                rng.integers(0, 2, size=len(lengths)).astype(float)
            )
        rubbish = float(rng.choice([np.nan, 999.0, -np.inf]))
        return {
            "rewards": torch.where(mask, rewards, rubbish),
            "mask": mask,
            "group": torch.from_numpy(group),
        }

    return make
