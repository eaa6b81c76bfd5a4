"""The checker of environments: what gym, trainers and benchmarks rely on, tried out on one environment."""

from collections.abc import Callable
from typing import Any

from turngym.envs.base import TurnEnv
from turngym.envs.checker import commands, contract, sameness, solving
from turngym.envs.checker.report import CheckLine, CheckReport, Finding, fault
from turngym.envs.checker.subject import Subject, sample_tasks
from turngym.envs.pool import CALLER_ERRORS, EnvRef
from turngym.errors import InfraError
from turngym.types import SPLITS

__all__ = ["CHECKS", "CheckLine", "CheckReport", "check_env"]

CHECKS: dict[str, Callable[[Subject], Finding]] = {
    "gymnasium": contract.check_gymnasium,
    "splits": solving.check_splits,
    "task ids": contract.check_task_ids,
    "instructions": contract.check_instructions,
    "info": contract.check_info,
    "endings": contract.check_endings,
    "same start": sameness.check_start,
    "same bytes": sameness.check_same_bytes,
    "looking": sameness.check_looking,
    "snapshot": sameness.check_snapshot,
    "processes": sameness.check_processes,
    "commands": commands.check_commands,
    "compound": commands.check_compound,
    "junk": commands.check_junk,
    "rewards": solving.check_rewards,
    "expert": solving.check_expert,
    "honesty": solving.check_honesty,
}
"""All checks by the name of their line; each looks at the environment and returns what it found."""


def check_env(
    env: str | TurnEnv | EnvRef | Callable[[], TurnEnv],
    *,
    kwargs: dict[str, Any] | None = None,
    strict: bool = False,
    tasks_per_split: int = 5,
    junk_actions: int = 1000,
    seed: int = 0,
    on_line: Callable[[CheckLine], None] | None = None,
) -> CheckReport:
    """Report on one environment, one line for each of `CHECKS`.

    Args:
        env: an id (`module:ns/Name-v0`), a made environment whose spec is copied, or a factory.
        kwargs: arguments of the environment.
        strict: show the traceback of what the environment raises.
        tasks_per_split: tasks of each split that are looked at, at even distances.
        junk_actions: actions of the junk check.
        seed: seeds the episodes of the check.
        on_line: called with each line as soon as it is there; slow environments take minutes for all.

    Raises:
        ConfigError: the environment cannot be made: unknown id or wrong argument.
        InfraError: what its tasks need cannot be made, as on a full disk.
    """
    ref = EnvRef.of(env, **(kwargs or {}))
    try:
        made = ref.make(list_commands=True)
        tasks = {name: sample_tasks(made.splits.get(name, ()), tasks_per_split) for name in SPLITS}
        made.prepare([task for some in tasks.values() for task in some if isinstance(task, str)])
    except (*CALLER_ERRORS, InfraError):
        raise
    except Exception as error:  # noqa: BLE001 - the border to the author's code
        return CheckReport(ref.env_id, (_told("made", fault(error, "making it", strict=strict), on_line),))
    subject = Subject(ref, {name: some for name, some in tasks.items() if some}, seed, junk_actions, strict)
    names = CHECKS if subject.tasks else ("splits",)
    return CheckReport(ref.env_id, tuple(_told(name, _run(name, subject), on_line) for name in names))


def _run(name: str, subject: Subject) -> Finding:
    try:
        return CHECKS[name](subject)
    except Exception as error:  # noqa: BLE001 - the border to the author's code
        return fault(error, f"the check {name!r} ran", strict=subject.strict)


def _told(name: str, finding: Finding, on_line: Callable[[CheckLine], None] | None) -> CheckLine:
    line = CheckLine(name, finding.status, finding.detail, finding.next_step)
    if on_line is not None:
        on_line(line)
    return line
