"""What a check found, and the report of all of them."""

import traceback
from collections import Counter
from dataclasses import dataclass
from typing import Literal

Status = Literal["ok", "warn", "fail"]

_WORDS: dict[Status, str] = {"warn": "with a warning", "fail": "failed"}


@dataclass(frozen=True, slots=True)
class Finding:
    """Result of one check.

    Attributes:
        detail: what was looked at, or the first thing that is wrong with its values.
        next_step: what the author can do about it; "" when nothing is to be done.
    """

    status: Status
    detail: str
    next_step: str = ""


@dataclass(frozen=True, slots=True)
class CheckLine:
    """A finding under the name of its check."""

    name: str
    status: Status
    detail: str
    next_step: str


@dataclass(frozen=True, slots=True)
class CheckReport:
    """All lines of a check, in the order in which they were made."""

    env_id: str
    lines: tuple[CheckLine, ...]

    @property
    def ok(self) -> bool:
        """True where nothing failed; warnings are allowed."""
        return not self.failed

    @property
    def failed(self) -> tuple[CheckLine, ...]:
        """The lines that failed."""
        return tuple(line for line in self.lines if line.status == "fail")

    def summary(self) -> str:
        """One line: how many checks passed, warned and failed."""
        counts = Counter(line.status for line in self.lines)
        others = [f", {counts[status]} {word}" for status, word in _WORDS.items() if counts[status]]
        return f"{self.env_id}: {counts['ok']} checks passed{''.join(others)}"


def ok(detail: str) -> Finding:
    """The check passed."""
    return Finding("ok", detail)


def warn(detail: str, next_step: str) -> Finding:
    """Something could not be checked, or costs the author something later."""
    return Finding("warn", detail, next_step)


def fail(detail: str, next_step: str) -> Finding:
    """The environment breaks a promise."""
    return Finding("fail", detail, next_step)


def fault(error: Exception, doing: str, *, strict: bool) -> Finding:
    """The environment raised while the checker did something; `strict` adds the traceback."""
    detail = f"{type(error).__name__} while {doing}: {error}"
    if strict:
        detail = f"{detail}\n{''.join(traceback.format_exception(error))}"
    return fail(
        detail, "Mend it in load, act or state." if strict else "Run with --strict to see the traceback."
    )
