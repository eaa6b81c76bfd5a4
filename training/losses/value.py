"""The critic's loss."""

from torch import Tensor


def value_loss(values: Tensor, targets: Tensor, *, count: int) -> Tensor:
    """() half the squared error, summed and divided by `count`.

    Args:
        values: (K,) critic's estimates, one per position of this micro-batch that has a target.
        targets: (K,) what they should be; no gradient.
        count: positions of the whole optimizer step.
    """
    return 0.5 * ((values - targets) ** 2).sum() / max(count, 1)
