"""The questions of a world, each with the two searches that answer it.

A question never names the entity whose fact is its answer. There are four forms:

- two hops: "In which town was the director of the film F born?"
- a comparison: "In which year was the elder of the author of the book A and the author of the book B born?"
- another entity with the same fact: "Which other film was made by the director of the film F?"
- two conditions: "Which building in the town where P was born was finished in the 1890s?"

The answer never occurs in the document of the entity that the question names.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.searchqa._entities import Entity

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["ComparisonForm", "Planned", "SearchPlan", "SearchTask", "comparisons", "planned"]

_PHRASES = read_json("searchqa", "phrases.json")
_CHOOSE: Mapping[str, Callable[..., int]] = {"min": min, "max": max}

# By kind and fact: the kind of the entity that the fact names, and the phrase for it.
_REFERENCES: Mapping[tuple[str, str], tuple[str, str]] = {
    (kind, fact): (named, phrase)
    for kind, facts in _PHRASES["references"].items()
    for fact, (named, phrase) in facts.items()
}


@dataclass(frozen=True)
class SearchPlan:
    """The searches and the answer of a question.

    Attributes:
        searches: The two queries: for the entity in the question, then for the entity that the first search
            leads to.
        answer: The answer, which occurs in a document that the second search returns.
    """

    searches: tuple[str, str]
    answer: str


@dataclass(frozen=True)
class SearchTask:
    """A question with its solution.

    Attributes:
        question: The question.
        solution: Its solution.
    """

    question: str
    solution: SearchPlan


class Planned(Protocol):
    """A task whose texts are generated on demand."""

    def task(self) -> SearchTask:
        """Return the task."""


def planned(entities: Mapping[str, Sequence[Entity]]) -> list[Planned]:
    """Return all tasks whose questions name one entity.

    Args:
        entities: All entities, by kind.
    """
    return [*_by_way(entities), *_others(entities), *_of_a_decade(entities)]


def _reference(x: Entity, fact: str) -> str:
    """Return the phrase for the entity that a fact of x names."""
    _, phrase = _REFERENCES[x.kind, fact]
    return phrase.format(x=_PHRASES["titles"].get(x.kind, "{title}").format(title=x.title))


def _told(x: Entity) -> set[str]:
    """Return all facts in the document of x."""
    return {x.said(fact) for fact in x.facts}


@dataclass(frozen=True, slots=True)
class _ByWay:
    """A question about a fact of the entity that a fact of x names."""

    x: Entity
    fact: str
    asked: str

    def task(self) -> SearchTask:
        y = self.x.other(self.fact)
        question = _PHRASES["questions"][y.kind][self.asked].format(y=_reference(self.x, self.fact))
        return SearchTask(question, SearchPlan((self.x.title, y.title), y.said(self.asked)))


def _by_way(entities: Mapping[str, Sequence[Entity]]) -> Iterator[Planned]:
    for (kind, fact), (named, _) in _REFERENCES.items():
        for x in entities[kind]:
            told, y = _told(x), x.other(fact)
            for asked in _PHRASES["questions"][named]:
                if y.said(asked) not in told:
                    yield _ByWay(x, fact, asked)


@dataclass(frozen=True, slots=True)
class _Other:
    """A question about the only other entity with the same value of a fact as x."""

    x: Entity
    fact: str
    second: Entity

    def task(self) -> SearchTask:
        question = _PHRASES["others"][self.x.kind][self.fact].format(y=_reference(self.x, self.fact))
        found = f"{self.x.kind} {self.x.said(self.fact)}"
        return SearchTask(question, SearchPlan((self.x.title, found), self.second.title))


def _others(entities: Mapping[str, Sequence[Entity]]) -> Iterator[Planned]:
    for kind, fact in ((kind, fact) for kind, facts in _PHRASES["others"].items() for fact in facts):
        same = defaultdict[Entity, list[Entity]](list)
        for x in entities[kind]:
            same[x.other(fact)].append(x)
        for these in same.values():
            for x, second in itertools.permutations(these if len(these) == 2 else ()):  # noqa: PLR2004 - a pair
                yield _Other(x, fact, second)


@dataclass(frozen=True, slots=True)
class _OfADecade:
    """A question about the only entity of a kind and a decade in the town that a fact of x names."""

    x: Entity
    fact: str
    found: Entity

    def task(self) -> SearchTask:
        town = self.x.other(self.fact)
        decade = self.found.said("year")[:-1] + "0"
        question = _PHRASES["decades"][self.found.kind].format(y=_reference(self.x, self.fact), decade=decade)
        return SearchTask(
            question, SearchPlan((self.x.title, f"{self.found.kind} {town.title}"), self.found.title)
        )


def _of_a_decade(entities: Mapping[str, Sequence[Entity]]) -> Iterator[Planned]:
    alone = defaultdict[Entity, list[Entity]](list)
    for kind in _PHRASES["decades"]:
        same = defaultdict[tuple[Entity, str], list[Entity]](list)
        for each in entities[kind]:
            same[each.other("town"), each.said("year")[:-1]].append(each)
        for (town, _), these in same.items():
            if len(these) == 1:
                alone[town] += these
    for (kind, fact), (named, _) in _REFERENCES.items():
        for x in entities[kind] if named == "town" else ():
            yield from (_OfADecade(x, fact, found) for found in alone[x.other(fact)] if found is not x)


@dataclass(frozen=True)
class ComparisonForm:
    """A form of question: compares the entities that two things name; the answer is a fact of one of them.

    Attributes:
        things: The things.
        fact: The fact that names the compared entities.
        number: The numeric fact by which they are compared.
        pair: The phrase for the chosen one of the two.
        choose: Chooses the number of that one.
        asked: The fact that is the answer.
        step: The step from one partner of a thing to the next, in a circle of half of the things. It is
            coprime to the length of that circle.
    """

    things: Sequence[Entity]
    fact: str
    number: str
    pair: str
    choose: Callable[..., int]
    asked: str
    step: int

    def task(self, index: int, partner: int) -> SearchTask:
        """Make a task.

        Args:
            index: The index of the compared thing.
            partner: The number of the partner with which it is compared, from 0.

        Raises:
            LookupError: The thing has fewer partners.
        """
        # Each pair occurs once: the second thing follows the first within half a turn of the circle of all
        # things.
        half = (len(self.things) - 1) // 2
        one = self.things[index]
        for turn in range(half):
            distance = 1 + turn * self.step % half
            two = self.things[(index + distance) % len(self.things)]
            chosen = self._chosen(one, two)
            if chosen is not None:
                partner -= 1
            if chosen is not None and partner < 0:
                return self._made(one, two, chosen)
        raise LookupError(f"{one.title} has too few partners")

    def _chosen(self, one: Entity, two: Entity) -> Entity | None:
        """Return the entity that the question is about; None if the question would be trivial."""
        a, b = one.other(self.fact), two.other(self.fact)
        numbers = int(a.said(self.number)), int(b.said(self.number))
        if numbers[0] == numbers[1] or a.said(self.asked) == b.said(self.asked):
            return None
        chosen = a if self.choose(numbers) == numbers[0] else b
        return None if chosen.said(self.asked) in _told(one) | _told(two) else chosen

    def _made(self, one: Entity, two: Entity, chosen: Entity) -> SearchTask:
        pair = self.pair.format(a=_reference(one, self.fact), b=_reference(two, self.fact))
        searches = f"{one.title} {two.title}", f"{one.said(self.fact)} {two.said(self.fact)}"
        question = _PHRASES["questions"][chosen.kind][self.asked].format(y=pair)
        return SearchTask(question, SearchPlan(searches, chosen.said(self.asked)))


def comparisons(entities: Mapping[str, Sequence[Entity]], draw: Draw) -> Iterator[ComparisonForm]:
    """Return the forms of questions that compare two entities.

    Args:
        entities: All entities, by kind.
        draw: The source of random draws, for the order of partners in each form.
    """
    for (kind, fact), (named, _) in _REFERENCES.items():
        if named not in _PHRASES["comparisons"]:
            continue
        comparison = _PHRASES["comparisons"][named]
        for asked in _PHRASES["questions"][named]:
            things = [x for x in entities[kind] if x.other(fact).said(asked) not in _told(x)]
            half = (len(things) - 1) // 2
            for choose, pair in comparison["pairs"]:
                step = draw.between(1, half)
                while math.gcd(step, half) > 1:
                    step += 1
                yield ComparisonForm(things, fact, comparison["number"], pair, _CHOOSE[choose], asked, step)
