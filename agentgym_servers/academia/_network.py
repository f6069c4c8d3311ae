"""Papers that cite one another, and authors who write together, generated from a seed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.draw import Draw

__all__ = ["Network", "Paper", "network_of"]

_WORDS = read_json("academia", "words.json")
_PAPERS = 120
_GROUPS = 12
_GROUP_SIZE = 5
_YEARS = (2005, 2024)
_MOST_CITATIONS = 300


@dataclass(frozen=True)
class Paper:
    """A paper.

    Attributes:
        title: Its title, which is unique.
        authors: Its authors.
        year: The year of publication.
        venue: The conference or journal.
        kind: The type of venue, ``Conference`` or ``Journal``.
        citations: Its total number of citations, also from papers outside the network.
        keywords: Its keywords.
        cited: The titles of the papers of the network that it cites.
    """

    title: str
    authors: tuple[str, ...]
    year: int
    venue: str
    kind: str
    citations: int
    keywords: tuple[str, ...]
    cited: tuple[str, ...]

    @property
    def attributes(self) -> dict[str, Any]:
        """The data of the paper as AgentGym's server returns it."""
        return {
            "authors": list(self.authors),
            "year": self.year,
            "venue": self.venue,
            "n_citation": self.citations,
            "keywords": list(self.keywords),
            "doc_type": self.kind,
        }


@dataclass(frozen=True)
class Network:
    """Papers and authors.

    Attributes:
        papers: The papers by title, in order of publication year.
        organizations: The organization of each author, by name.
    """

    papers: Mapping[str, Paper]
    organizations: Mapping[str, str]

    def papers_of(self, *authors: str) -> list[Paper]:
        """Return the papers that all the given authors wrote together."""
        return [each for each in self.papers.values() if set(authors) <= set(each.authors)]

    @cached_property
    def coauthors(self) -> Mapping[str, tuple[str, ...]]:
        """The coauthors of each author, by name, in order of the first common paper."""
        coauthors: dict[str, dict[str, None]] = {each: {} for each in self.organizations}
        for paper in self.papers.values():
            for author in paper.authors:
                coauthors[author] |= dict.fromkeys(each for each in paper.authors if each != author)
        return {author: tuple(others) for author, others in coauthors.items()}


def network_of(seed: int) -> Network:
    """Return the papers and authors of a seed."""
    draw = Draw("academia", seed, "network")
    names = [f"{first} {last}" for first in _WORDS["first_names"] for last in _WORDS["last_names"]]
    people = draw.some(names, _GROUPS * _GROUP_SIZE)
    groups = [people[start : start + _GROUP_SIZE] for start in range(0, len(people), _GROUP_SIZE)]
    homes = [draw.some(_WORDS["organizations"], 2) for _ in groups]
    organizations = {
        each: home[0] if draw.chance(0.6) else home[1]
        for group, home in zip(groups, homes, strict=True)
        for each in group
    }
    titles = [
        f"{manner} {method} for {topic}"
        for manner in _WORDS["manners"]
        for method in _WORDS["methods"]
        for topic in _WORDS["topics"]
    ]
    years = sorted(draw.between(*_YEARS) for _ in range(_PAPERS))
    papers: dict[str, Paper] = {}
    for title, year in zip(draw.some(titles, _PAPERS), years, strict=True):
        papers[title] = _paper(draw, title, year, groups, list(papers))
    return Network(papers, organizations)


def _paper(draw: Draw, title: str, year: int, groups: list[list[str]], earlier: list[str]) -> Paper:
    home = draw.one(groups)
    authors = draw.some(home, draw.between(2, 3))
    guest = draw.one(draw.one(groups))
    if draw.chance(0.25) and guest not in home:
        authors.append(guest)
    venue, kind = draw.one(_WORDS["venues"])
    return Paper(
        title=title,
        authors=tuple(authors),
        year=year,
        venue=venue,
        kind=kind,
        citations=draw.below(_MOST_CITATIONS),
        keywords=tuple(draw.some(_WORDS["keywords"], draw.between(2, 4))),
        cited=tuple(draw.some(earlier, min(len(earlier), draw.between(2, 7)))),
    )
