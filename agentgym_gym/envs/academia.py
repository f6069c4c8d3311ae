"""Academia: answer questions about papers and their authors (Ma et al., 2024, arXiv:2401.13178).

Each of the server's two networks must be loaded before use. A request for a missing node returns an
explanation as the observation, not an error.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, ClassVar

from agentgym_gym.actions import Grammar
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._scalar_arguments import OneOf, ShortText
from agentgym_gym.envs._tools import (
    LOCAL_QUIRKS,
    QUIRKS,
    CheckValidActions,
    Finish,
    Tool,
    ToolWire,
    launch_of,
    read_as_agentgym,
)

__all__ = [
    "ACADEMIA",
    "AuthorEdgeCheck",
    "AuthorNodeCheck",
    "LoadAuthorNet",
    "LoadPaperNet",
    "NeighbourCheck",
    "PaperEdgeCheck",
    "PaperNodeCheck",
]

_TITLE = "Efficient Graph Convolution for Joint Node Representation Learning and Clustering"
_Paper = Annotated[str, ShortText(_TITLE), "the paper's title"]
_Author = Annotated[
    str, ShortText("Fadi Boutros", "Florian Kirchbuchner", "Yang Song_2"), "the author's name"
]


@dataclass(frozen=True, eq=False)
class LoadPaperNet(Tool):
    """Load PaperNet, the network of papers and their citations."""

    function: ClassVar[str] = "loadPaperNet"


@dataclass(frozen=True, eq=False)
class LoadAuthorNet(Tool):
    """Load AuthorNet, the network of authors who wrote papers together."""

    function: ClassVar[str] = "loadAuthorNet"


@dataclass(frozen=True, eq=False)
class NeighbourCheck(Tool):
    """List the papers next to a paper, or the co-authors of an author."""

    function: ClassVar[str] = "neighbourCheck"
    graph: Annotated[str, OneOf("PaperNet", "AuthorNet"), "the network"]
    node: Annotated[str, ShortText("Fadi Boutros", _TITLE), "a paper's title or an author's name"]


@dataclass(frozen=True, eq=False)
class PaperNodeCheck(Tool):
    """Get the authors, year, venue, number of citations, keywords and type of a paper."""

    function: ClassVar[str] = "paperNodeCheck"
    node: _Paper


@dataclass(frozen=True, eq=False)
class AuthorNodeCheck(Tool):
    """Get the name and the organization of an author."""

    function: ClassVar[str] = "authorNodeCheck"
    node: _Author


@dataclass(frozen=True, eq=False)
class AuthorEdgeCheck(Tool):
    """Get the papers that two authors wrote together."""

    function: ClassVar[str] = "authorEdgeCheck"
    node1: _Author
    node2: _Author


@dataclass(frozen=True, eq=False)
class PaperEdgeCheck(Tool):
    """Get what is known of the citation between two papers."""

    function: ClassVar[str] = "paperEdgeCheck"
    node1: _Paper
    node2: _Paper


_GRAMMAR = Grammar(
    [
        LoadPaperNet(),
        LoadAuthorNet(),
        NeighbourCheck("AuthorNet", "Fadi Boutros"),
        PaperNodeCheck(_TITLE),
        AuthorNodeCheck("Fadi Boutros"),
        AuthorEdgeCheck("Fadi Boutros", "Florian Kirchbuchner"),
        PaperEdgeCheck(_TITLE, "Graph Attention Networks"),
        CheckValidActions(),
        Finish(51),
    ]
)

_RULES = """\
You answer a user's question about scientific papers and their authors by calling functions. The first \
message is the question; after each of your actions you are told what the function returned.

- Load a network before you ask it anything: PaperNet knows papers, AuthorNet knows authors.
- Write titles and names exactly as the question or an earlier answer has them.
- Call `finish` with the answer when you know it: that ends the task and cannot be taken back. The answer \
must be of the type that the question asks for: the number 51 is not the text "51". Several things are a \
list."""

ACADEMIA = Environment(
    name="Academia",
    summary=(
        "Answer questions about papers and their authors by calling functions (the tool tasks of "
        "AgentBoard, Ma et al., 2024, arXiv:2401.13178)."
    ),
    wire=ToolWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=12,
    splits=make_splits(range(20), test=range(15, 20)),
    cheap_wins=dict.fromkeys(
        ("answer 'Yes'", "answer 'No'"), "some questions are answered by yes or no, as 5 of AgentGym's 20"
    ),
    on_unknown="refuse",
    agentgym_readers={"react": read_as_agentgym},
    quirks=f"""\
{QUIRKS}
- AgentGym's repository does not contain the data of the two networks.""",
    local_server="agentgym_servers.academia:SERVER",
    local_quirks=f"""\
{LOCAL_QUIRKS}
- The networks and the 20 questions are generated from a seed: 120 papers by 60 authors, all of them \
invented.
- A paper is next to the papers that it cites. The edge between two papers has their distance in years.
- `neighborCheck` is not an alias of `neighbourCheck`.""",
    oracle="agentgym_servers._tool_oracles:AcademiaOracle",
    launch=launch_of("academia"),
    transcript=(
        (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: How many mutual "
            "collaborators do Florian Kirchbuchner and Fadi Boutros share? Please give me a numerical "
            "value as an answer.\nGive me one action."
        ),
        ('Action: neighbourCheck with Action Input: {"graph":"AuthorNet","node":"Fadi Boutros"}'),
        "Observation: Please load the AuthorNet first.\nGive me one action.",
        "Action: loadAuthorNet with Action Input: {}",
        "Observation: AuthorNet is loaded.\nGive me one action.",
        ('Action: neighbourCheck with Action Input: {"graph":"AuthorNet","node":"Fadi Boutros"}'),
        "Observation: ['Florian Kirchbuchner', 'Arjan Kuijper', 'Naser Damer']\nGive me one action.",
    ),
)
