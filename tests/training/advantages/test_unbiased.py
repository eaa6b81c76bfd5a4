"""Expected gradients by exact enumeration of all groups of a small decision process (DEFINITIONS section 8)."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pytest
import torch
from torch import Tensor

from turngym.training.advantages.gae import Credit, gae
from turngym.training.advantages.grpo import grpo
from turngym.training.advantages.reinforce import reinforce
from turngym.training.advantages.rloo import rloo
from turngym.training.losses.averages import token_weights
from turngym.training.losses.clip import clip_loss

LOGITS = torch.tensor([[0.4, -0.3], [0.2, 0.9]], dtype=torch.float64)  # (state, action)
SIZE = 3

Estimator = Callable[[Tensor, Tensor], Tensor]
"""(N, T) rewards and mask of a group to (N, T) advantages."""


@dataclass(frozen=True)
class Outcome:
    """One way an episode can go: at turn t in state t, action 1 of state 0 ends it."""

    actions: tuple[int, ...]
    rewards: tuple[float, ...]


OUTCOMES = (Outcome((1,), (0.3,)), Outcome((0, 0), (-0.2, 1.0)), Outcome((0, 1), (-0.2, 0.4)))


def log_prob(logits: Tensor, outcome: Outcome) -> Tensor:
    table = torch.log_softmax(logits, dim=1)
    return torch.stack([table[t, action] for t, action in enumerate(outcome.actions)])


def true_gradient() -> Tensor:
    """Gradient of the expected return."""
    logits = LOGITS.clone().requires_grad_(True)
    value = torch.stack([log_prob(logits, one).sum().exp() * sum(one.rewards) for one in OUTCOMES]).sum()
    return torch.autograd.grad(value, logits)[0]


def expected_gradient(estimator: Estimator) -> Tensor:
    """The step's direction, minus the gradient of the loss, averaged over all groups by their probabilities."""
    total = torch.zeros_like(LOGITS)
    for group in itertools.product(OUTCOMES, repeat=SIZE):
        rewards, mask = (
            torch.full((SIZE, 2), float("nan"), dtype=torch.float64),
            torch.zeros(SIZE, 2, dtype=torch.bool),
        )
        for i, one in enumerate(group):
            rewards[i, : len(one.rewards)] = torch.tensor(one.rewards, dtype=torch.float64)
            mask[i, : len(one.rewards)] = True
        logits = LOGITS.clone().requires_grad_(True)
        new = torch.cat([log_prob(logits, one) for one in group])
        episode, turn = mask.nonzero(as_tuple=True)
        weights = token_weights(
            torch.ones(len(new), dtype=torch.bool),
            2 * episode + turn,
            episode,
            average="constant",
            constant=1.0,
        )
        advantages = estimator(rewards, mask)[mask]
        loss = clip_loss(new, new.detach(), advantages, weights, clip_low=0.2, clip_high=0.2).loss
        probability = float(new.detach().sum().exp())
        total -= probability * torch.autograd.grad(loss, logits)[0]
    return total


GROUP = torch.zeros(SIZE, dtype=torch.int64)


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_rloo_is_unbiased(credit: str) -> None:
    got = expected_gradient(
        lambda r, m: rloo(r, m, GROUP, gamma=1.0, credit=credit, scale_by_std=False).advantages  # type: ignore[arg-type]
    )
    torch.testing.assert_close(got, true_gradient())


@pytest.mark.parametrize("credit", ["turn", "episode"])
def test_grpo_without_std_is_unbiased_up_to_its_share(credit: str) -> None:
    got = expected_gradient(
        lambda r, m: grpo(r, m, GROUP, gamma=1.0, credit=credit, scale_by_std=False).advantages  # type: ignore[arg-type]
    )
    torch.testing.assert_close(got, true_gradient() * (SIZE - 1) / SIZE)


def test_grpo_with_std_has_another_direction() -> None:
    got = expected_gradient(
        lambda r, m: grpo(r, m, GROUP, gamma=1.0, credit="episode", scale_by_std=True).advantages
    )
    wanted = true_gradient()
    cosine = torch.nn.functional.cosine_similarity(got.flatten(), wanted.flatten(), dim=0)
    assert cosine < 1 - 1e-6


def test_reinforce_is_unbiased_up_to_its_share() -> None:
    got = expected_gradient(lambda r, m: reinforce(r, m, gamma=1.0, credit="episode"))
    torch.testing.assert_close(got, true_gradient() * (SIZE - 1) / SIZE)


def test_reinforce_with_turn_credit_is_not_the_gradient_up_to_a_share() -> None:
    # The mean over all turns holds the episode's own returns of other turns, each to another part.
    got = expected_gradient(lambda r, m: reinforce(r, m, gamma=1.0, credit="turn")) / true_gradient()
    assert abs(got[0, 0] - got[1, 0]) > 0.1


def gae_of_one_token_turns(rewards: Tensor, mask: Tensor, *, lam: float, credit: Credit) -> Tensor:
    """Each action of the process is one token."""
    values = torch.tensor([[5.0, -2.0]], dtype=torch.float64).expand(SIZE, 2)
    got = gae(
        rewards, mask, values, rewards.unsqueeze(-1), mask.unsqueeze(-1), values.unsqueeze(-1),
        torch.zeros(SIZE, dtype=torch.float64), gamma=1.0, lam=lam, gamma_token=1.0, lam_token=1.0, credit=credit,
    ).advantages  # fmt: skip
    return got if got.dim() == 2 else got.squeeze(-1)


@pytest.mark.parametrize("credit", ["turn", "token", "bilevel", "episode"])
def test_gae_with_lam_1_is_unbiased_whatever_the_critic_says(credit: Credit) -> None:
    got = expected_gradient(lambda r, m: gae_of_one_token_turns(r, m, lam=1.0, credit=credit))
    torch.testing.assert_close(got, true_gradient())


@pytest.mark.parametrize("credit", ["turn", "token", "bilevel"])
def test_gae_with_lam_below_1_trusts_the_critic_and_is_biased_by_it(credit: Credit) -> None:
    got = expected_gradient(lambda r, m: gae_of_one_token_turns(r, m, lam=0.5, credit=credit))
    assert not torch.allclose(got, true_gradient(), atol=1e-3)
