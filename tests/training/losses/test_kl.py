"""The KL terms: values, and gradients against exact enumeration over a small softmax."""

import pytest
import torch
from torch import Tensor

from turngym.training.losses.kl import kl_loss

LOGITS = torch.tensor([0.3, -1.0, 0.9, 0.1], dtype=torch.float64)
REFERENCE = torch.log_softmax(torch.tensor([-0.2, 0.4, 0.5, -1.5], dtype=torch.float64), dim=0)


def test_values_match_hand_computation() -> None:
    new, reference = torch.tensor([-1.0, -2.0]), torch.tensor([-1.5, -1.0])
    # d = .5, -1: 0.5 d^2 = .125, .5; exp(-d) - 1 + d = .106531, .718282
    torch.testing.assert_close(kl_loss(new, reference, new, estimator="k2"), torch.tensor([0.125, 0.5]))
    torch.testing.assert_close(
        kl_loss(new, reference, new, estimator="k3"), torch.tensor([0.106531, 0.718282])
    )
    # k2 times the ratio exp(new - old) = e
    torch.testing.assert_close(
        kl_loss(new, reference, new - 1, estimator="k2"), torch.tensor([0.125, 0.5]) * 2.718282
    )


def gradient(loss_of: object, logits: Tensor = LOGITS) -> Tensor:
    """Gradient of loss_of(log_probs) at the logits."""
    leaf = logits.clone().requires_grad_(True)
    loss = loss_of(torch.log_softmax(leaf, dim=0))  # type: ignore[operator]
    (got,) = torch.autograd.grad(loss, leaf)
    return got


def expected(estimator: str, old: Tensor | None = None) -> Tensor:
    """Gradient of the penalty, averaged exactly over actions drawn from `old` (default: the policy itself)."""

    def loss(log_probs: Tensor) -> Tensor:
        sampler = log_probs.detach() if old is None else old
        return (sampler.exp() * kl_loss(log_probs, REFERENCE, sampler, estimator=estimator)).sum()  # type: ignore[arg-type]

    return gradient(loss)


def test_the_on_policy_gradient_of_k2_is_that_of_the_kl_to_the_reference() -> None:
    torch.testing.assert_close(expected("k2"), gradient(lambda lp: (lp.exp() * (lp - REFERENCE)).sum()))


def test_the_ratio_keeps_k2_right_off_policy() -> None:
    # Actions of an older policy, weighted by the ratio, give the same gradient.
    older = torch.log_softmax(LOGITS + torch.tensor([0.5, -0.3, 0.2, 0.0], dtype=torch.float64), dim=0)
    torch.testing.assert_close(
        expected("k2", older), gradient(lambda lp: (lp.exp() * (lp - REFERENCE)).sum())
    )


def test_the_on_policy_gradient_of_k3_is_that_of_the_kl_from_the_reference() -> None:
    torch.testing.assert_close(
        expected("k3"), gradient(lambda lp: (REFERENCE.exp() * (REFERENCE - lp)).sum())
    )
    assert not torch.allclose(expected("k3"), expected("k2"), atol=1e-2)


def test_k1_would_have_no_gradient() -> None:
    got = gradient(lambda lp: (lp.detach().exp() * (lp - REFERENCE)).sum())
    assert got.abs().max() < 1e-12


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_gradients_equal_finite_differences(estimator: str) -> None:
    # The ratio of k2 is held fixed, as it carries no gradient.
    old = torch.log_softmax(LOGITS, dim=0)

    def loss(logits: Tensor) -> Tensor:
        new = torch.log_softmax(logits, dim=0)
        held = old if estimator == "k3" else new.detach()
        return (old.exp() * kl_loss(new, REFERENCE, held, estimator=estimator)).sum()  # type: ignore[arg-type]

    leaf = LOGITS.clone().requires_grad_(True)
    (got,) = torch.autograd.grad(loss(leaf), leaf)
    steps = 1e-6 * torch.eye(4, dtype=torch.float64)
    wanted = torch.stack([(loss(LOGITS + step) - loss(LOGITS - step)) / 2e-6 for step in steps])
    torch.testing.assert_close(got, wanted, atol=1e-8, rtol=1e-6)


@pytest.mark.parametrize("estimator", ["k2", "k3"])
def test_the_penalty_is_never_negative_and_0_at_the_reference(estimator: str) -> None:
    new = torch.linspace(-4, 0, 41, dtype=torch.float64)
    reference = torch.full_like(new, -2.0)
    got = kl_loss(new, reference, new, estimator=estimator)  # type: ignore[arg-type]
    assert bool((got >= 0).all()) and got[20] == 0 and bool((got[:20] > 0).all())
