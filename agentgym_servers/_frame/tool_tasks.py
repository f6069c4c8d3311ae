"""The parts from which the worlds of tool servers are built: calls, questions and their builder, errors.

Needs only the standard library.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
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
    "listed",
    "require",
    "single_best",
    "yes_or_no",
]

T = TypeVar("T")


class _Call(NamedTuple):
    name: str
    arguments: dict[str, Any]


class FunctionCall(_Call):
    """A call of a server's function, with arguments by name.

    Attributes:
        thought: The reason for the call: the facts known before it, and its purpose. Equal calls may have
            different thoughts.
    """

    thought: str = ""

    def because(self, *sentences: str) -> FunctionCall:
        """Return the same call with a thought; empty sentences are left out."""
        call = FunctionCall(*self)
        call.thought = " ".join(filter(None, sentences))
        return call


class CallRefused(Exception):
    """A function cannot do what a call requests; the agent observes the message in place of a result."""


@dataclass(frozen=True)
class Question:
    """A question with its answer.

    Attributes:
        goal: The instruction for the agent.
        answer: The expected argument of ``finish``; a list is sorted.
        reason: Why this is the answer, in the words of the results.
    """

    goal: str
    answer: Any
    reason: str = field(default="", kw_only=True)


@dataclass(frozen=True)
class Draft(Question):
    """A question with the calls that find its answer.

    Attributes:
        calls: The calls before ``finish``, which look up or change data.
    """

    calls: tuple[FunctionCall, ...]


class QuestionBuilder:
    """Draws the subjects of a question, and records the calls that find its answer.

    Args:
        draw: The source of random draws.

    Attributes:
        draw: The source of random draws.
        calls: The recorded calls, in order.
        needs: The facts that the calls look up, in order: noun phrases that name no results.
    """

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.calls: list[FunctionCall] = []
        self.needs: list[str] = []
        self._found = ""

    def record(self, name: str, need: str, detail: str = "", /, **arguments: Any) -> None:
        """Add a call.

        Args:
            name: The function.
            need: The fact that it looks up.
            detail: The rest of the thought's sentence, which may use earlier results.
            arguments: The arguments of the call.
        """
        call = FunctionCall(name, arguments)
        self.calls.append(call.because(self._found, f"I need {need}{detail}."))
        self.needs.append(need)
        self._found = ""

    def found(self, sentence: str) -> None:
        """Begin the thought of the next call with the result of the last one."""
        self._found = sentence

    def solution(self, question: Question) -> tuple[FunctionCall, ...]:
        """Return the calls and ``finish``; the first thought names all that the calls look up."""
        first, *others = self.calls
        plan = first.because(f"I need, in order: {', '.join(dict.fromkeys(self.needs))}.")
        return (plan, *others, FunctionCall("finish", {"answer": question.answer}).because(question.reason))


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


def listed(values: Iterable[object]) -> str:
    """Return values separated by commas."""
    return ", ".join(map(str, values))
