"""How a question of Academia is made: what it is asked of, and the calls that find its answer."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from agentgym_servers._frame.tool_tasks import Call, Draft

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.academia._network import Network, Paper

__all__ = ["Asking", "Kind", "author", "edge", "neighbours", "one_best", "paper", "yes_or_no"]


@dataclass(frozen=True)
class Asking:
    """What a question may be about.

    Attributes:
        draw: Draws of this question.
        network: The papers and authors.
        yes: Whether the answer shall be "Yes" where it is yes or no: else it would nearly always be "No".
    """

    draw: Draw
    network: Network
    yes: bool

    def papers(self, count: int) -> list[Paper]:
        """Return so many papers."""
        return self.draw.some(list(self.network.papers.values()), count)

    def writer(self) -> str:
        """Return an author who has coauthors."""
        return self.draw.one([name for name, others in self.network.coauthors.items() if others])

    def two_writers(self) -> tuple[str, str]:
        """Return two authors who wrote a paper together."""
        one = self.writer()
        return one, self.draw.one(self.network.coauthors[one])


Kind: TypeAlias = Callable[[Asking], "Draft | None"]
"""Makes a question; None where the draw does not suit."""


def paper(*papers: Paper) -> tuple[Call, ...]:
    """Return the calls that show papers."""
    return tuple(Call("paperNodeCheck", {"node": each.title}) for each in papers)


def author(*names: str) -> tuple[Call, ...]:
    """Return the calls that show authors."""
    return tuple(Call("authorNodeCheck", {"node": each}) for each in names)


def edge(one: str, *others: str) -> tuple[Call, ...]:
    """Return the calls that show what an author wrote with others."""
    return tuple(Call("authorEdgeCheck", {"node1": one, "node2": other}) for other in others)


def neighbours(graph: str, *nodes: str) -> tuple[Call, ...]:
    """Return the calls that show what is next to nodes."""
    return tuple(Call("neighbourCheck", {"graph": graph, "node": each}) for each in nodes)


def one_best(values: Iterable[tuple[str, int]]) -> str | None:
    """Return whose number is greatest; None where several have it, or there is but one."""
    ordered = sorted(values, key=lambda each: -each[1])
    several = len(ordered) > 1
    return ordered[0][0] if several and ordered[0][1] > ordered[1][1] else None


def yes_or_no(*, right: bool) -> str:
    """Return an answer as it is asked for."""
    return "Yes" if right else "No"
