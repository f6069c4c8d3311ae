"""The building blocks of Academia's questions: random subjects, and the calls that find an answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from agentgym_servers._frame.tool_tasks import Draft, FunctionCall

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.academia._network import Network, Paper

__all__ = ["Kind", "QuestionSubjects", "author", "edge", "neighbours", "one_best", "paper"]


@dataclass(frozen=True)
class QuestionSubjects:
    """The subjects that a question can draw from.

    Attributes:
        draw: Draws of this question.
        network: The papers and authors.
        yes: Whether a yes-or-no question must have the answer "Yes"; without this, nearly all would be "No".
    """

    draw: Draw
    network: Network
    yes: bool

    def papers(self, count: int) -> list[Paper]:
        """Return a number of different papers."""
        return self.draw.some(list(self.network.papers.values()), count)

    def writer(self) -> str:
        """Return an author who has coauthors."""
        return self.draw.one([name for name, others in self.network.coauthors.items() if others])

    def two_writers(self) -> tuple[str, str]:
        """Return two authors who wrote a paper together."""
        one = self.writer()
        return one, self.draw.one(self.network.coauthors[one])


Kind: TypeAlias = Callable[[QuestionSubjects], "Draft | None"]
"""Makes a question; returns None if the draw gives none."""


def paper(*papers: Paper) -> tuple[FunctionCall, ...]:
    """Return the calls that look up papers."""
    return tuple(
        FunctionCall("paperNodeCheck", {"node": each.title}).because(f"I need the data of '{each.title}'.")
        for each in papers
    )


def author(*names: str) -> tuple[FunctionCall, ...]:
    """Return the calls that look up authors."""
    return tuple(
        FunctionCall("authorNodeCheck", {"node": each}).because(f"I need the organization of {each}.")
        for each in names
    )


def edge(one: str, *others: str) -> tuple[FunctionCall, ...]:
    """Return the calls that look up the papers of an author with each of the others."""
    return tuple(
        FunctionCall("authorEdgeCheck", {"node1": one, "node2": other}).because(
            f"I need the papers of {one} with {other}."
        )
        for other in others
    )


def neighbours(graph: str, *nodes: str) -> tuple[FunctionCall, ...]:
    """Return the calls that list the neighbours of nodes."""
    need = "the coauthors of {}" if graph == "AuthorNet" else "the papers cited by '{}'"
    return tuple(
        FunctionCall("neighbourCheck", {"graph": graph, "node": each}).because(f"I need {need.format(each)}.")
        for each in nodes
    )


def one_best(values: Iterable[tuple[str, int]]) -> str | None:
    """Return the name with the greatest number; None if several have it, or there is only one name."""
    ordered = sorted(values, key=lambda each: -each[1])
    several = len(ordered) > 1
    return ordered[0][0] if several and ordered[0][1] > ordered[1][1] else None
