"""The data of the wiki: articles on towns, people, companies and sights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.words import people

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.webarena._sites.map_data import Map

__all__ = ["Article", "Wiki", "draw_wiki"]

_TRADES = "architect painter composer engineer botanist writer".split()
_GOODS = "bicycles,pianos,clocks,ceramics,textiles,lamps".split(",")
_SIGHTS = ("Bridge", "Tower", "Dam", "Lighthouse")


@dataclass(frozen=True)
class Article:
    """An article.

    Attributes:
        title: Its title.
        kind: ``town``, ``person``, ``company``, ``sight`` or ``mountain``.
        text: The first paragraph; titles of other articles become links.
        facts: The entries of the box on the page.
    """

    title: str
    kind: str
    text: str
    facts: dict[str, str]


@dataclass
class Wiki:
    """All articles by title."""

    articles: dict[str, Article]

    def of(self, kind: str) -> list[Article]:
        """Return the articles of a kind."""
        return [each for each in self.articles.values() if each.kind == kind]


def draw_wiki(draw: Draw, world_map: Map) -> Wiki:
    """Draw the articles, on the towns of the map among others."""
    names = people(draw, 12)
    born = {name: draw.one(world_map.towns) for name in names}
    trades = {name: _TRADES[n % len(_TRADES)] for n, name in enumerate(names)}
    sights = [f"{name.split()[1]} {_SIGHTS[n % len(_SIGHTS)]}" for n, name in enumerate(names[:8])]
    articles = [_town(draw, town, n) for n, town in enumerate(world_map.towns)]
    articles += [_person(draw, name, trades[name], born[name]) for name in names]
    articles += [
        _company(draw, f"{name.split()[1]} and Sons", name, draw.one(world_map.towns), _GOODS[n])
        for n, name in enumerate(names[6:])
    ]
    articles += [_sight(draw, sight, draw.one(names), draw.one(world_map.towns)) for sight in sights]
    heights = draw.some(range(900, 4_800), 6)
    peaks = draw.some("Arden Belmar Corvin Dorado Elbrin Faroe Galdor Hestal Ingram Jorvik".split(), 6)
    articles += [
        _mountain(draw, f"Mount {peak}", height) for peak, height in zip(peaks, heights, strict=True)
    ]
    return Wiki({each.title: each for each in articles})


def _town(draw: Draw, town: str, number: int) -> Article:
    population = draw.between(4_000 + 9_000 * number, 12_000 + 9_000 * number)
    facts = {
        "Population": f"{population:,}",
        "Founded": str(draw.between(1100, 1890)),
        "Elevation": f"{draw.between(20, 800)} m",
        "River": f"{draw.one('Arne Blythe Corran Dell Esk Fallow'.split())}",
    }
    return Article(town, "town", f"{town} is a town on the river {facts['River']}.", facts)


def _person(draw: Draw, name: str, trade: str, town: str) -> Article:
    birth = draw.between(1790, 1930)
    facts = {
        "Born": str(birth),
        "Birthplace": town,
        "Died": str(birth + draw.between(41, 92)),
        "Occupation": trade,
    }
    return Article(name, "person", f"{name} was a {trade} from {town}.", facts)


def _company(draw: Draw, title: str, founder: str, town: str, goods: str) -> Article:
    facts = {
        "Founder": founder,
        "Founded": str(draw.between(1820, 1990)),
        "Headquarters": town,
        "Employees": f"{draw.between(20, 9_000):,}",
    }
    return Article(title, "company", f"{title} makes {goods} in {town}. It was founded by {founder}.", facts)


def _sight(draw: Draw, title: str, architect: str, town: str) -> Article:
    facts = {
        "Architect": architect,
        "Opened": str(draw.between(1830, 1990)),
        "Height": f"{draw.between(18, 190)} m",
        "Town": town,
    }
    return Article(title, "sight", f"The {title} stands in {town}. It was designed by {architect}.", facts)


def _mountain(draw: Draw, title: str, height: int) -> Article:
    facts = {"Elevation": f"{height:,} m", "First ascent": str(draw.between(1780, 1950))}
    return Article(title, "mountain", f"{title} is a mountain of {height:,} metres.", facts)
