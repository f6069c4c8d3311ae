"""Findings of the checks, and the reasons why some are missing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

__all__ = ["Finding", "Missing", "Status", "ok", "problem", "skipped", "warning"]

Status: TypeAlias = Literal["ok", "warning", "problem", "skipped"]


@dataclass(frozen=True)
class Finding:
    """The result of one check.

    Attributes:
        check: The name of the check, in a word or two.
        status: Its result; ``"skipped"`` if a package or file that it needs is not on this machine.
        text: The finding.
        advice: The remedy, or empty.
    """

    check: str
    status: Status
    text: str
    advice: str = ""


@dataclass(frozen=True)
class Missing:
    """Data that a check needs and that could not be loaded.

    Attributes:
        reason: The reason; empty if another check reports it, or if there is nothing to report.
        advice: The remedy, or empty.
    """

    reason: str = ""
    advice: str = ""


def ok(check: str, text: str) -> Finding:
    """Return a finding that needs no action."""
    return Finding(check, "ok", text)


def warning(check: str, text: str, advice: str) -> Finding:
    """Return a finding that may be intended."""
    return Finding(check, "warning", text, advice)


def problem(check: str, text: str, advice: str) -> Finding:
    """Return a finding that makes the training fail, or train something unintended."""
    return Finding(check, "problem", text, advice)


def skipped(check: str, text: str, advice: str = "") -> Finding:
    """Return a finding for a skipped check."""
    return Finding(check, "skipped", text, advice)
