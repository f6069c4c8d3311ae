"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Finding", "Status", "ok", "problem", "unseen", "warning"]

Status: TypeAlias = Literal["ok", "warning", "problem", "not looked at"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at.

    Attributes:
        check: What was looked at, in a word or two.
        status: How it stands; ``"not looked at"`` where something that is needed for it is not installed.
        text: What was found.
        advice: What to do, or nothing.
    """

    check: str
    status: Status
    text: str
    advice: str = ""


def ok(check: str, text: str) -> Finding:
    """Return a finding that needs nothing."""
    return Finding(check, "ok", text)


def warning(check: str, text: str, advice: str) -> Finding:
    """Return a finding that may be meant."""
    return Finding(check, "warning", text, advice)


def problem(check: str, text: str, advice: str) -> Finding:
    """Return a finding by which the training fails, or trains something else than was meant."""
    return Finding(check, "problem", text, advice)


def unseen(check: str, text: str, advice: str = "") -> Finding:
    """Return that something could not be looked at."""
    return Finding(check, "not looked at", text, advice)
