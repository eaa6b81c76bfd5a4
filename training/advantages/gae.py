"""Generalised advantage estimation with a critic, over turns, action tokens or both."""

from typing import Literal

from pydantic import Field, model_validator
from torch import Tensor

from turngym.training.advantages.base import Advantages, AdvantageSettings, register_advantage
from turngym.training.advantages.gae_bilevel import gae_bilevel
from turngym.training.advantages.gae_token import gae_token
from turngym.training.advantages.gae_turn import gae_episode, gae_turn

Credit = Literal["turn", "token", "bilevel", "episode"]


class GaeSettings(AdvantageSettings):
    """Critic-based advantage (PPO's): discounted sum of one-step errors."""

    name: Literal["gae"] = "gae"
    credit: Credit = "turn"
    """`turn`: one advantage and one value target per turn; `token`: per action token, turns running on into each
    other; `bilevel`: over turns first, then inside each turn; `episode`: the whole return against V at the start."""
    gamma: float = Field(1.0, ge=0, le=1)
    """Discount per turn; per action token with credit `token`."""
    lam: float = Field(0.95, ge=0, le=1)
    """Bias-variance trade over turns, 1 gives return minus value; over action tokens with credit `token`, where
    unset means 1."""
    gamma_token: float = Field(1.0, ge=0, le=1)
    """Discount per action token inside a turn; credit `bilevel` only."""
    lam_token: float = Field(1.0, ge=0, le=1)
    """Bias-variance trade inside a turn; credit `bilevel` only."""
    whiten: Literal["none", "batch"] = "batch"
    """Shift and scale the advantages of an update to mean 0 and spread 1."""

    @model_validator(mode="before")
    @classmethod
    def _default_lam(cls, data: object) -> object:
        if isinstance(data, dict) and data.get("credit") == "token" and "lam" not in data:
            return {**data, "lam": 1.0}
        return data

    @model_validator(mode="after")
    def _inside_turns_only_bilevel(self) -> "GaeSettings":
        if self.credit != "bilevel" and (self.gamma_token, self.lam_token) != (1.0, 1.0):
            raise ValueError(
                f"gamma_token and lam_token have no effect with credit: {self.credit}. "
                "Set credit: bilevel, or leave them out"
            )
        return self


def gae(
    rewards: Tensor,
    mask: Tensor,
    values: Tensor,
    token_rewards: Tensor,
    token_mask: Tensor,
    token_values: Tensor,
    bootstrap: Tensor,
    *,
    gamma: float,
    lam: float,
    gamma_token: float,
    lam_token: float,
    credit: Credit,
) -> Advantages:
    """Advantages by generalised advantage estimation, with the credit that is asked for.

    Args:
        rewards, mask, values: (N, T) per turn; `values` stand at the token before its first action token.
        token_rewards, token_mask, token_values: (N, T, K) per action token of each turn; a token's value stands at
            the token before it, so `values` equals `token_values[:, :, 0]`.
        bootstrap: (N,) value after the last turn, 0 where the episode ended for good.
        gamma, lam, gamma_token, lam_token, credit: as in `GaeSettings`.

    Returns:
        Of `gae_turn`, `gae_token`, `gae_bilevel` or `gae_episode`.
    """
    if credit == "token":
        return gae_token(token_rewards, token_mask, token_values, bootstrap, gamma=gamma, lam=lam)
    if credit == "bilevel":
        return gae_bilevel(
            rewards, mask, token_mask, token_values, bootstrap,
            gamma=gamma, lam=lam, gamma_token=gamma_token, lam_token=lam_token,
        )  # fmt: skip
    if credit == "episode":
        return gae_episode(rewards, mask, values, bootstrap, gamma=gamma)
    return gae_turn(rewards, mask, values, bootstrap, gamma=gamma, lam=lam)


register_advantage("gae", GaeSettings, gae)
