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

__all__ = ["ComparisonForm", "LazyTask", "SearchPlan", "SearchTask", "comparisons", "single_entity_tasks"]

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
        thoughts: The thoughts before the searches and before the answer.
    """

    searches: tuple[str, str]
    answer: str
    thoughts: tuple[str, str, str]


@dataclass(frozen=True)
class SearchTask:
    """A question with its solution.

    Attributes:
        question: The question.
        solution: Its solution.
    """

    question: str
    solution: SearchPlan


class LazyTask(Protocol):
    """A task whose texts are generated on demand."""

    def task(self) -> SearchTask:
        """Return the task."""


def single_entity_tasks(entities: Mapping[str, Sequence[Entity]]) -> list[LazyTask]:
    """Return all tasks whose questions name one entity.

    Args:
        entities: All entities, by kind.
    """
    return [*_two_hops(entities), *_same_facts(entities), *_of_a_decade(entities)]


def _reference(x: Entity, fact: str) -> str:
    """Return the phrase for the entity that a fact of x names."""
    _, phrase = _REFERENCES[x.kind, fact]
    return phrase.format(x=_PHRASES["titles"].get(x.kind, "{title}").format(title=x.title))


def _fact_texts(x: Entity) -> set[str]:
    """Return all facts in the document of x."""
    return {x.text_of(fact) for fact in x.facts}


@dataclass(frozen=True, slots=True)
class _TwoHops:
    """A question about a fact of the entity that a fact of x names."""

    x: Entity
    fact: str
    answer_fact: str

    def task(self) -> SearchTask:
        y = self.x.entity_of(self.fact)
        reference, answer = _reference(self.x, self.fact), y.text_of(self.answer_fact)
        question = _PHRASES["questions"][y.kind][self.answer_fact].format(y=reference)
        thoughts = (
            f"I need {reference}. I search for {self.x.title}.",
            f"It is {y.title}. I search for {y.title}.",
            f"The answer for {y.title} is {answer}.",
        )
        return SearchTask(question, SearchPlan((self.x.title, y.title), answer, thoughts))


def _two_hops(entities: Mapping[str, Sequence[Entity]]) -> Iterator[LazyTask]:
    for (kind, fact), (named, _) in _REFERENCES.items():
        for x in entities[kind]:
            known, y = _fact_texts(x), x.entity_of(fact)
            for answer_fact in _PHRASES["questions"][named]:
                if y.text_of(answer_fact) not in known:
                    yield _TwoHops(x, fact, answer_fact)


@dataclass(frozen=True, slots=True)
class _SameFact:
    """A question about the only other entity with the same value of a fact as x."""

    x: Entity
    fact: str
    second: Entity

    def task(self) -> SearchTask:
        reference, kind, same = _reference(self.x, self.fact), self.x.kind, self.x.text_of(self.fact)
        question = _PHRASES["others"][kind][self.fact].format(y=reference)
        thoughts = (
            f"I need {reference}. I search for {self.x.title}.",
            f"It is {same}. I search for another {kind} of {same}.",
            f"The other {kind} of {same} is {self.second.title}.",
        )
        return SearchTask(question, SearchPlan((self.x.title, f"{kind} {same}"), self.second.title, thoughts))


def _same_facts(entities: Mapping[str, Sequence[Entity]]) -> Iterator[LazyTask]:
    for kind, fact in ((kind, fact) for kind, facts in _PHRASES["others"].items() for fact in facts):
        same = defaultdict[Entity, list[Entity]](list)
        for x in entities[kind]:
            same[x.entity_of(fact)].append(x)
        for group in same.values():
            for x, second in itertools.permutations(group if len(group) == 2 else ()):  # noqa: PLR2004 - a pair
                yield _SameFact(x, fact, second)


@dataclass(frozen=True, slots=True)
class _OfADecade:
    """A question about the only entity of a kind and a decade in the town that a fact of x names."""

    x: Entity
    fact: str
    answer: Entity

    def task(self) -> SearchTask:
        reference, town = _reference(self.x, self.fact), self.x.entity_of(self.fact).title
        kind, year = self.answer.kind, self.answer.text_of("year")
        decade = year[:-1] + "0"
        question = _PHRASES["decades"][kind].format(y=reference, decade=decade)
        thoughts = (
            f"I need {reference}. I search for {self.x.title}.",
            f"It is {town}. I search for a {kind} of {town}.",
            f"The year of {self.answer.title} is {year}, in the {decade}s.",
        )
        return SearchTask(question, SearchPlan((self.x.title, f"{kind} {town}"), self.answer.title, thoughts))


def _of_a_decade(entities: Mapping[str, Sequence[Entity]]) -> Iterator[LazyTask]:
    unique = defaultdict[Entity, list[Entity]](list)
    for kind in _PHRASES["decades"]:
        same = defaultdict[tuple[Entity, str], list[Entity]](list)
        for each in entities[kind]:
            same[each.entity_of("town"), each.text_of("year")[:-1]].append(each)
        for (town, _), group in same.items():
            if len(group) == 1:
                unique[town] += group
    for (kind, fact), (named, _) in _REFERENCES.items():
        for x in entities[kind] if named == "town" else ():
            yield from (
                _OfADecade(x, fact, answer) for answer in unique[x.entity_of(fact)] if answer is not x
            )


@dataclass(frozen=True)
class ComparisonForm:
    """A form of question: compares the entities that two things name; the answer is a fact of one of them.

    Attributes:
        things: The things.
        fact: The fact that names the compared entities.
        number: The numeric fact by which they are compared.
        pair: The phrase for the chosen one of the two.
        choose: Chooses the number of that one.
        answer_fact: The fact that is the answer.
        step: The step from one partner of a thing to the next, in a circle of half of the things. It is
            coprime to the length of that circle.
    """

    things: Sequence[Entity]
    fact: str
    number: str
    pair: str
    choose: Callable[..., int]
    answer_fact: str
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
            chosen = self._choose(one, two)
            if chosen is not None:
                partner -= 1
            if chosen is not None and partner < 0:
                return self._task_of(one, two, chosen)
        raise LookupError(f"{one.title} has too few partners")

    def _choose(self, one: Entity, two: Entity) -> Entity | None:
        """Return the entity that the question is about; None if the question would be trivial."""
        a, b = one.entity_of(self.fact), two.entity_of(self.fact)
        numbers = int(a.text_of(self.number)), int(b.text_of(self.number))
        if numbers[0] == numbers[1] or a.text_of(self.answer_fact) == b.text_of(self.answer_fact):
            return None
        chosen = a if self.choose(numbers) == numbers[0] else b
        return None if chosen.text_of(self.answer_fact) in _fact_texts(one) | _fact_texts(two) else chosen

    def _task_of(self, one: Entity, two: Entity, chosen: Entity) -> SearchTask:
        references = _reference(one, self.fact), _reference(two, self.fact)
        pair = self.pair.format(a=references[0], b=references[1])
        question = _PHRASES["questions"][chosen.kind][self.answer_fact].format(y=pair)
        a, b = one.entity_of(self.fact), two.entity_of(self.fact)
        answer = chosen.text_of(self.answer_fact)
        numbers = f"{a.title} {a.text_of(self.number)}, {b.title} {b.text_of(self.number)}"
        which = self.pair.partition(" of {a}")[0]
        thoughts = (
            f"I need {references[0]} and {references[1]}. I search for both.",
            f"They are {a.title} and {b.title}. I search for both.",
            f"{numbers}: {which} is {chosen.title}. The answer for {chosen.title} is {answer}.",
        )
        searches = f"{one.title} {two.title}", f"{a.title} {b.title}"
        return SearchTask(question, SearchPlan(searches, answer, thoughts))


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
        for answer_fact in _PHRASES["questions"][named]:
            things = [
                x for x in entities[kind] if x.entity_of(fact).text_of(answer_fact) not in _fact_texts(x)
            ]
            half = (len(things) - 1) // 2
            for choose, pair in comparison["pairs"]:
                step = draw.between(1, half)
                while math.gcd(step, half) > 1:
                    step += 1
                yield ComparisonForm(
                    things, fact, comparison["number"], pair, _CHOOSE[choose], answer_fact, step
                )
