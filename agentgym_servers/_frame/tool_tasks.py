"""The parts from which the worlds of tool servers are built: calls, questions and their builder, errors.

Needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = [
    "CallRefused",
    "Draft",
    "FunctionCall",
    "Question",
    "QuestionBuilder",
    "Unfit",
    "require",
    "single_best",
    "yes_or_no",
]

T = TypeVar("T")


class FunctionCall(NamedTuple):
    """A call of a server's function, with arguments by name."""

    name: str
    arguments: dict[str, Any]


class CallRefused(Exception):
    """A function cannot do what a call requests; the agent observes the message in place of a result."""


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

    calls: tuple[FunctionCall, ...]


class QuestionBuilder:
    """Draws the subjects of a question, and records the calls that find its answer.

    Args:
        draw: The source of random draws.

    Attributes:
        draw: The source of random draws.
        calls: The recorded calls, in order.
    """

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.calls: list[FunctionCall] = []

    def record(self, name: str, /, **arguments: Any) -> None:
        """Add a call."""
        self.calls.append(FunctionCall(name, arguments))


class Unfit(Exception):
    """The draw gives no question with exactly one answer."""


def require(condition: bool) -> None:
    """Check a condition on a draw.

    Raises:
        Unfit: The condition is false.
    """
    if not condition:
        raise Unfit


def single_best(items: Iterable[T], value: Callable[[T], Any]) -> T:
    """Return the item with the greatest value.

    Raises:
        Unfit: Several items have it.
    """
    candidates = list(items)
    greatest = max(map(value, candidates))
    best = [item for item in candidates if value(item) == greatest]
    require(len(best) == 1)
    return best[0]


def yes_or_no(condition: bool) -> str:
    """Return an answer in the form that the questions require."""
    return "Yes" if condition else "No"
