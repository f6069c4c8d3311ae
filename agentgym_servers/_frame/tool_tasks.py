"""The data types from which tool servers build tasks; needs only the standard library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Call", "Draft", "Question", "Unfit"]


class Call(NamedTuple):
    """A function call with arguments by name."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A question with its answer.

    Attributes:
        goal: The instruction for the agent.
        answer: The expected argument of ``finish``; a list is sorted.
    """

    goal: str
    answer: Any


@dataclass(frozen=True)
class Draft(Question):
    """A question with the calls that find its answer.

    Attributes:
        calls: The calls before ``finish``: those that look up data and those that change it.
    """

    calls: tuple[Call, ...]


class Unfit(Exception):
    """The draw gives no question with exactly one answer."""
