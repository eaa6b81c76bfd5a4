"""Every error that turngym raises on purpose.

    TurngymError
    ├── ConfigError (ValueError)            a recipe, override or setting is wrong
    │   └── UnknownNameError (KeyError)     a name that no registry, suite or recipe list holds
    │       └── UnknownEnvError             an environment id that is not registered
    ├── TaskError (ValueError)              a task id that this environment cannot load
    ├── MissingExtraError (ImportError)     an optional dependency is not installed
    ├── FileFormatError (ValueError)        a file of ours cannot be read
    │   └── CheckpointError                 a checkpoint folder is absent, half written or of another kind
    ├── EnvContractError (TypeError)        an environment class breaks the contract of TurnEnv
    ├── InfraError (RuntimeError)           a worker, sandbox or server failed; never the agent's doing
    ├── MeasurementError (RuntimeError)     a speed comparison cannot be made, or would compare different work
    ├── CollapseError (RuntimeError)        training stopped itself; the last good checkpoint is named
    └── BalanceError (AssertionError)       a ledger does not balance: a bug of ours

`except Exception` stands only at process and protocol borders: the pool, inline or in workers (`envs/pool/`), the
checker around what an author wrote (`envs/checker/`), the reading of a tokenizer file by its library, which raises
nothing narrower (`viewer/pieces.py`), and the top of the command line (`cli.py`).
"""

import difflib
from collections.abc import Iterable


class TurngymError(Exception):
    """Root of the tree. The text has the fact, the value and the next step.

    Example:
        >>> import turngym
        >>> try:
        ...     turngym.make("Roms-v0")
        ... except TurngymError as error:
        ...     print(error)
        No environment 'Roms-v0'. Did you mean 'turngym/Rooms-v0'?
    """

    def __str__(self) -> str:
        # KeyError shows its argument in quotes; ours are sentences.
        return str(self.args[0]) if self.args else ""


class ConfigError(TurngymError, ValueError):
    """A recipe, override or setting is wrong."""


class UnknownNameError(ConfigError, KeyError):
    """A name that no registry, suite or recipe list holds."""


class UnknownEnvError(UnknownNameError):
    """An environment id that is not registered."""


class TaskError(TurngymError, ValueError):
    """A task id that this environment cannot load."""


class MissingExtraError(TurngymError, ImportError):
    """An optional dependency is not installed."""


class FileFormatError(TurngymError, ValueError):
    """A file of ours cannot be read."""


class CheckpointError(FileFormatError):
    """A checkpoint folder is absent, half written or of another kind."""


class EnvContractError(TurngymError, TypeError):
    """An environment class breaks the contract of TurnEnv."""


class InfraError(TurngymError, RuntimeError):
    """A worker, sandbox or server failed; never the agent's doing."""


class MeasurementError(TurngymError, RuntimeError):
    """A speed comparison cannot be made, or would compare different work."""


class CollapseError(TurngymError, RuntimeError):
    """Training stopped itself; the last good checkpoint is named."""


class BalanceError(TurngymError, AssertionError):
    """A ledger does not balance: a bug of ours."""


def suggest(name: str, known: Iterable[str], *, listing: str | None = None) -> str:
    """Ending of an error about an unknown name: the nearest known one, or where all of them are listed."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.6)
    if near:
        return f"Did you mean {near[0]!r}?"
    if names and len(names) <= 12:
        return f"Known: {', '.join(names)}."
    return f"`{listing}` lists all of them." if listing else "Nothing of that kind is known."
