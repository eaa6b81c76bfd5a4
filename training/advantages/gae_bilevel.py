"""GAE on two levels: over turns, and inside each turn over its action tokens."""

import torch
from torch import Tensor

from turngym.training.advantages.base import Advantages
from turngym.training.advantages.recurrence import discounted_errors


def gae_bilevel(
    rewards: Tensor,
    mask: Tensor,
    token_mask: Tensor,
    token_values: Tensor,
    bootstrap: Tensor,
    *,
    gamma: float,
    lam: float,
    gamma_token: float,
    lam_token: float,
) -> Advantages:
    """Advantage of each action token: what its turn was worth, spread inside the turn; nothing carries across turns.

    The turn's advantage A(k) by GAE over turns gives its return G(k) = A(k) + V(k, 0), which is the reward of the
    turn's last token; inside the turn GAE runs over its tokens and ends there. With gamma_token = lam_token = 1 a
    token's advantage is G(k) - V(k, j).

    Args:
        rewards: (N, T) reward of each turn, what KL takes included.
        mask: (N, T) bool, True on turns that were played.
        token_mask: (N, T, K) bool, True where the turn has such an action token; its tokens stand in front.
        token_values: (N, T, K) V(k, j), critic's estimate at the token before it.
        bootstrap: (N,) value after the last turn, 0 where the episode ended for good.
        gamma, lam: over turns, in [0, 1].
        gamma_token, lam_token: over the tokens of a turn, in [0, 1].

    Returns:
        (N, T, K) advantages, exactly 0 where token_mask is False, not whitened; targets G(k) at j = 0 and
        A(k, j) + V(k, j) behind it.

    Source: Wang et al. 2025, VAGEN, arXiv:2510.16907, bi-level GAE. Turns end by index here, never where a reward
    is other than 0, so that turns without reward, and KL in the reward, change no boundary.
    """
    before = token_values[:, :, 0]
    turn_advantages = discounted_errors(rewards, mask, before, bootstrap, gamma=gamma, lam=lam)
    returns = torch.where(mask, turn_advantages + before, 0.0)
    ends = token_mask.clone()
    ends[:, :, :-1] &= ~token_mask[:, :, 1:]
    inner_rewards = torch.where(ends, returns.unsqueeze(-1), 0.0)
    advantages = discounted_errors(
        inner_rewards.flatten(0, 1),
        token_mask.flatten(0, 1),
        token_values.flatten(0, 1),
        torch.zeros_like(returns).flatten(),
        gamma=gamma_token,
        lam=lam_token,
    ).view_as(token_values)
    targets = torch.where(token_mask, advantages + token_values, 0.0)
    targets[:, :, 0] = torch.where(token_mask[:, :, 0], returns, 0.0)
    return Advantages(advantages, targets, token_mask.clone())
