"""turngym: environments of many turns for language-model agents, and the trainers that improve them."""

import turngym.envs as _envs  # importing registers the environment ids
from turngym.envs.base import TurnEnv
from turngym.envs.registration import make
from turngym.envs.spaces import Unicode
from turngym.errors import TurngymError
from turngym.types import Demonstration, Episode, TaskRange, Turn, TurnInfo

__version__ = "0.1.0"

__all__ = [
    "Demonstration",
    "Episode",
    "TaskRange",
    "Turn",
    "TurnEnv",
    "TurnInfo",
    "TurngymError",
    "Unicode",
    "__version__",
    "make",
]

del _envs
