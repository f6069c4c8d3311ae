"""The application of the Academia server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.tool_tasks import CallRefused
from agentgym_servers._frame.tools import ActionInput, AnswerTools, ToolError, tool_app
from agentgym_servers.academia._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentgym_servers._frame.tool_world import ToolTask
    from agentgym_servers.academia._network import Network

__all__ = ["AcademiaTools", "create_app"]

_NETS = ("PaperNet", "AuthorNet")


class AcademiaTools(AnswerTools):
    """The functions over papers and authors, and the question to answer.

    Args:
        task: The task.
        network: The papers and authors; no function changes them.
    """

    names = (
        "loadPaperNet",
        "loadAuthorNet",
        "neighbourCheck",
        "paperNodeCheck",
        "authorNodeCheck",
        "authorEdgeCheck",
        "paperEdgeCheck",
        "check_valid_actions",
        "finish",
    )

    def __init__(self, task: ToolTask, network: Network) -> None:
        self.goal = task.goal
        self.answer = task.answer
        self._network = network
        self._loaded: set[str] = set()

    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function."""
        if name.startswith("load"):
            net = name.removeprefix("load")
            self._loaded.add(net)
            return f"{net} is loaded."
        if name == "neighbourCheck":
            return self._neighbours(arguments["graph"], arguments["node"])
        net = "PaperNet" if name.startswith("paper") else "AuthorNet"
        if name.endswith("NodeCheck"):
            (node,) = self._nodes(net, arguments["node"])
            return self._attributes(net, node)
        one, other = self._nodes(net, arguments["node1"], arguments["node2"])
        return self._paper_edge(one, other) if net == "PaperNet" else self._author_edge(one, other)

    def _neighbours(self, graph: Any, node: Any) -> list[str]:
        if graph not in _NETS:
            raise ToolError("ValueError", "graph is PaperNet or AuthorNet")
        (name,) = self._nodes(graph, node)
        papers, coauthors = self._network.papers, self._network.coauthors
        return list(papers[name].cited if graph == "PaperNet" else coauthors[name])

    def _nodes(self, net: str, *names: Any) -> tuple[str, ...]:
        """Return nodes of a loaded network.

        Raises:
            CallRefused: The network is not loaded, or a node does not exist.
        """
        if net not in self._loaded:
            raise CallRefused(f"Please load the {net} first.")
        nodes = self._network.papers if net == "PaperNet" else self._network.organizations
        for name in names:
            if not isinstance(name, str) or name not in nodes:
                raise CallRefused(f"There is no node named {name} in the {net}.")
        return names

    def _attributes(self, net: str, node: str) -> dict[str, Any]:
        if net == "PaperNet":
            return self._network.papers[node].attributes
        return {"name": node, "org": self._network.organizations[node]}

    def _paper_edge(self, one: str, other: str) -> dict[str, Any]:
        papers = self._network.papers
        if other not in papers[one].cited:
            raise CallRefused(f"There is no edge between {one} and {other}.")
        return {"years": papers[one].year - papers[other].year}

    def _author_edge(self, one: str, other: str) -> dict[str, Any]:
        if other not in self._network.coauthors[one]:
            raise CallRefused(f"There is no edge between {one} and {other}.")
        papers = self._network.papers_of(one, other)
        return {
            "weight": len(papers),
            "collaborative_papers": [each.title for each in papers],
            "n_citation": [each.citations for each in papers],
        }


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    world = world_of(options.seed)
    return tool_app("Academia", options, world.tasks, lambda task: AcademiaTools(task, world.setting))
