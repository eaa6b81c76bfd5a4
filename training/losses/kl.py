"""KL to the reference as a loss term (DEFINITIONS section 6)."""

from typing import Literal

from torch import Tensor


def kl_loss(new: Tensor, reference: Tensor, old: Tensor, *, estimator: Literal["k2", "k3"]) -> Tensor:
    """(M,) penalty of each action token, to be averaged like the policy loss.

    Args:
        new: (M,) log-prob under the policy in training.
        reference: (M,) log-prob under the reference; no gradient.
        old: (M,) log-prob before the update, for the ratio; no gradient.
        estimator: `k2`: 0.5 d^2 times the ratio without gradient; its on-policy gradient is that of
            KL(policy || reference). `k3`: exp(-d) - 1 + d; biased, its gradient is that of
            KL(reference || policy). `k1` is no choice: its expected gradient is zero.
    """
    difference = new - reference
    if estimator == "k2":
        return 0.5 * difference**2 * (new - old).exp().detach()
    return (-difference).exp() - 1 + difference
