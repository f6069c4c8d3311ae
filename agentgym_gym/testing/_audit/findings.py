"""The defects that checks find, and the result for each property."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

__all__ = ["Checked", "Defect", "NotApplicable", "PropertyResult", "Severity", "Status"]

Severity: TypeAlias = Literal["error", "warning"]
Status: TypeAlias = Literal["passed", "failed", "skipped"]


class NotApplicable(Exception):
    """A property cannot be checked on this environment; the message is the reason."""


@dataclass(frozen=True)
class Defect:
    """A violation of a property.

    Attributes:
        text: The violation, with the values, in one sentence.
        advice: The remedy.
        tasks: Numbers of the tasks in which it was seen.
        program: A Python program that raises AssertionError because of the defect, and no longer does when
            it is repaired; empty if there is none.
        known: The documented reason, for a defect that the environment's catalogue entry lists.
    """

    text: str
    advice: str = ""
    tasks: tuple[int, ...] = ()
    program: str = ""
    known: str = ""


@dataclass(frozen=True)
class Checked:
    """The result of a check that was carried out.

    Attributes:
        defects: The violations; empty if the property holds.
        measured: Measurements by name, as JSON values: numbers of episodes, percentiles.
        note: One sentence on what was not checked, or empty.
    """

    defects: Sequence[Defect] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


@dataclass(frozen=True)
class PropertyResult:
    """The result for one property.

    Attributes:
        name: The name of the property.
        severity: Its severity.
        status: Whether it holds, or was skipped.
        reason: Why it was skipped, or what was left out; empty otherwise.
        defects: The violations.
        measured: Measurements by name.
        seconds: Duration of the check.
    """

    name: str
    severity: Severity
    status: Status
    reason: str = ""
    defects: tuple[Defect, ...] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
