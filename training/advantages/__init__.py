"""Advantage estimators: one pure function in one file each, found by name."""

from turngym.training.advantages import gae, grpo, reinforce, rloo
from turngym.training.advantages.base import ADVANTAGES, Advantages, AdvantageSettings, register_advantage

__all__ = [
    "ADVANTAGES",
    "AdvantageSettings",
    "Advantages",
    "gae",
    "grpo",
    "register_advantage",
    "reinforce",
    "rloo",
]
