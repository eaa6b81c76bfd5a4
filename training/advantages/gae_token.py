"""GAE with one advantage per action token."""

import torch
from torch import Tensor

from turngym.training.advantages.base import Advantages
from turngym.training.advantages.recurrence import discounted_errors


def gae_token(
    token_rewards: Tensor,
    token_mask: Tensor,
    token_values: Tensor,
    bootstrap: Tensor,
    *,
    gamma: float,
    lam: float,
) -> Advantages:
    """Advantage of each action token, over an episode's action tokens as one sequence.

    Observation tokens do not exist for it: the last token of a turn is followed by the first of the next.

    Args:
        token_rewards: (N, T, K) reward of each action token: its turn's on the turn's last, what KL takes on its own.
        token_mask: (N, T, K) bool, True where the turn has such a token.
        token_values: (N, T, K) critic's estimate at the token before it.
        bootstrap: (N,) value after the last turn, 0 where the episode ended for good.
        gamma, lam: per action token, in [0, 1].

    Returns:
        (N, T, K) advantages, exactly 0 where token_mask is False, not whitened; targets advantage + value.

    Source: Schulman et al. 2016, arXiv:1506.02438, eq. 16, over action tokens.
    """
    rewards, mask, values = (column.flatten(1) for column in (token_rewards, token_mask, token_values))
    advantages = discounted_errors(rewards, mask, values, bootstrap, gamma=gamma, lam=lam)
    targets = torch.where(mask, advantages + values, 0.0)
    return Advantages(advantages.view_as(token_rewards), targets.view_as(token_rewards), token_mask.clone())
