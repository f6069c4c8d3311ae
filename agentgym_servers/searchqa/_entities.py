"""The entities of the world: towns, people, films and others, with facts that may name other entities."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.draw import Draw

__all__ = ["Entity", "make_entities"]

_WORDS = read_json("searchqa", "words.json")

TRADES: Mapping[str, tuple[str, int]] = {
    "director": ("a film director", 250),
    "actor": ("a film actor", 250),
    "composer": ("a composer", 250),
    "author": ("a writer", 250),
    "painter": ("a painter", 200),
    "architect": ("an architect", 240),
    "founder": ("a manufacturer", 200),
    "inventor": ("a maker of instruments", 100),
    "cook": ("a cook", 150),
}
"""By the fact that names a person of a trade: the trade, and how many people have it. Each has two works."""

COUNTS: Mapping[str, int] = {
    "region": 24,
    "river": 120,
    "town": 240,
    "school": 80,
    "scholar": 150,
    "company": 400,
    "building": 480,
    "film": 500,
    "book": 500,
    "painting": 400,
    "instrument": 200,
    "dish": 300,
}
"""The number of entities of each kind, except people."""

YEARS: Mapping[str, tuple[int, int]] = {
    "town": (1050, 1790),
    "school": (1700, 1850),
    "scholar": (1780, 1835),
    "person": (1840, 1940),
    "company": (1860, 1985),
    "building": (1860, 1985),
    "film": (1920, 1985),
    "book": (1865, 1985),
    "painting": (1865, 1985),
    "instrument": (1865, 1985),
    "dish": (1865, 1985),
}
"""By kind, the first and last year in which an entity was born, founded, opened, finished or published."""

NUMBER_FACTS: Mapping[str, tuple[str, int, int]] = {
    "river": ("length", 40, 900),
    "town": ("population", 2_000, 90_000),
}
"""By kind, the facts that are numbers, each with its least and greatest value."""

WORD_FACTS: Mapping[str, tuple[str, ...]] = {
    "region": ("side", "living"),
    "river": ("end",),
    "school": ("subject",),
    "scholar": ("subject",),
    "company": ("goods",),
    "building": ("material",),
    "film": ("story",),
    "book": ("story",),
    "instrument": ("sound",),
    "dish": ("ingredient",),
}
"""By kind, the facts whose values come from the data file's ``values``."""

ENTITY_FACTS: Mapping[str, Mapping[str, str]] = {
    "town": {"river": "river", "region": "region"},
    "school": {"town": "town"},
    "scholar": {"town": "town"},
    "person": {"town": "town", "school": "school", "teacher": "scholar"},
    "company": {"town": "town", "founder": "founder"},
    "building": {"town": "town", "architect": "architect"},
    "film": {"town": "town", "director": "director", "actor": "actor", "composer": "composer"},
    "book": {"publisher": "company", "author": "author"},
    "painting": {"museum": "building", "painter": "painter"},
    "instrument": {"maker": "company", "inventor": "inventor"},
    "dish": {"town": "town", "cook": "cook"},
}
"""By kind, the facts that name other entities, each with their kind, or their trade for people."""


@dataclass(frozen=True, eq=False)  # compared by identity
class Entity:
    """One thing or person.

    Attributes:
        kind: Its kind, such as ``film``.
        title: Its name, which has a word that no other entity has.
        facts: Its facts by name: a word, a number, or another entity.
        text: The text of its document.
    """

    kind: str
    title: str
    facts: Mapping[str, str | Entity]
    text: str

    def text_of(self, fact: str) -> str:
        """Return a fact in the words of the document."""
        value = self.facts[fact]
        return value.title if isinstance(value, Entity) else value

    def entity_of(self, fact: str) -> Entity:
        """Return the entity that a fact names.

        Raises:
            TypeError: The fact names no entity that has its own document.
        """
        value = self.facts[fact]
        if not isinstance(value, Entity):
            raise TypeError(f"the {fact} of a {self.kind} is a text")
        return value

    @property
    def document(self) -> str:
        """The document about it, in the format of Search-R1's corpora: the title in quotes, then the text."""
        return f'"{self.title}"\n{self.text}'


def make_entities(seed: int) -> dict[str, list[Entity]]:
    """Return all entities of a world by kind.

    Args:
        seed: The seed of the world.
    """
    return _Maker(Draw("searchqa", seed)).all()


class _Maker:
    """Makes entities; each follows the entities that it names."""

    def __init__(self, draw: Draw) -> None:
        self._draw = draw
        self._words = _words(draw)
        self._groups: dict[str, list[Entity]] = {}

    def all(self) -> dict[str, list[Entity]]:
        for kind in ("region", "river", "town", "school", "scholar"):
            self._groups[kind] = self._some(kind, COUNTS[kind])
        people: list[Entity] = []
        for trade, (phrase, count) in TRADES.items():
            self._groups[trade] = self._some("person", count, {"trade": phrase})
            people += self._groups[trade]
        for kind in ("company", "building", "film", "book", "painting", "instrument", "dish"):
            self._groups[kind] = self._some(kind, COUNTS[kind])
        return {**{kind: self._groups[kind] for kind in COUNTS}, "person": people}

    def _some(self, kind: str, count: int, facts: Mapping[str, str] | None = None) -> list[Entity]:
        # A fact names each of its possible entities equally often, within one.
        named = {
            fact: self._evenly(self._groups[group], count)
            for fact, group in ENTITY_FACTS.get(kind, {}).items()
        }
        return [
            self._one(kind, {**(facts or {}), **{fact: next(entities) for fact, entities in named.items()}})
            for _ in range(count)
        ]

    def _evenly(self, group: list[Entity], count: int) -> Iterator[Entity]:
        rounds = -(-count // len(group))
        return iter([each for _ in range(rounds) for each in self._draw.shuffled(group)][:count])

    def _one(self, kind: str, named: Mapping[str, str | Entity]) -> Entity:
        draw = self._draw
        facts = dict(named)
        if kind in YEARS:
            facts["year"] = str(draw.between(*YEARS[kind]))
        if kind in NUMBER_FACTS:
            fact, least, most = NUMBER_FACTS[kind]
            facts[fact] = str(draw.between(least, most))
        for fact in WORD_FACTS.get(kind, ()):
            facts[fact] = draw.one(_WORDS["values"][fact])
        word = next(self._words)
        title = draw.one(_WORDS["titles"][kind]).format(word=word, first=draw.one(_WORDS["first_names"]))
        texts = {fact: each.title if isinstance(each, Entity) else each for fact, each in facts.items()}
        text = draw.one(_WORDS["sentences"][kind]).format(title=title, last=word, **texts)
        return Entity(kind, title, facts, text)


def _words(draw: Draw) -> Iterator[str]:
    """Yield invented words without repetition, in random order."""
    texts = (
        *_WORDS["first_names"],
        *itertools.chain(*_WORDS["titles"].values(), *_WORDS["sentences"].values()),
    )
    real = {word for text in texts for word in re.findall(r"\w+", text.lower())}
    words = (
        start + middle + ending
        for start in _WORDS["word_starts"]
        for middle in _WORDS["word_middles"]
        for ending in _WORDS["word_ends"]
    )
    # Some words can be composed in two ways, such as cal-a-rick and cal-ar-ick, and some exist, such as
    # gar-den.
    return iter(draw.shuffled([word.capitalize() for word in dict.fromkeys(words) if word not in real]))
