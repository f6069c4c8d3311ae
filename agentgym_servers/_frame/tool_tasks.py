"""What the tasks of tool servers are made of. Nothing but Python is needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

__all__ = ["Call", "Draft", "Question", "Unfit"]


class Call(NamedTuple):
    """A function called with its arguments by name."""

    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True)
class Question:
    """A question with its answer.

    Attributes:
        goal: What the agent is told to do.
        answer: What ``finish`` must be given; a list is sorted.
    """

    goal: str
    answer: Any


@dataclass(frozen=True)
class Draft(Question):
    """A question with the calls that find its answer.

    Attributes:
        calls: What is called before ``finish``, to find out and to change.
    """

    calls: tuple[Call, ...]


class Unfit(Exception):
    """What was drawn gives no question with one answer."""
