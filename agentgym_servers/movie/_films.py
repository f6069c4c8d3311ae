"""The films and people of the Movie world, generated from a seed."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Any

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.draw import Draw

__all__ = ["ACTOR", "COUNTRIES", "FILMS", "LANGUAGES", "Credit", "Film", "Library", "Person"]

_WORDS = read_json("movie", "words.json")
_PLOTS = read_json("movie", "plots.json")

COUNTRIES: dict[str, str] = _WORDS["countries"]
"""Names of countries by their codes."""

LANGUAGES: dict[str, list[str]] = _PLOTS["languages"]
"""By country code: the language's code, its name in the language itself, and its name in English."""

FILMS = 200
"""The number of films."""

ACTOR = "Actor"

# The number of people per job, chosen so that nobody has more than ten credits in one list.
_PEOPLE = {
    ACTOR: 260,
    "Director": 45,
    "Writer": 55,
    "Producer": 50,
    "Original Music Composer": 25,
    "Director of Photography": 25,
    "Editor": 25,
}
_FIRST_RELEASE, _RELEASES = date(1985, 1, 1), 14_600  # days
_WRITES_TOO = 0.3  # the share of directors who also write


@dataclass(frozen=True, eq=False)
class Person:
    """A person.

    Attributes:
        id: The person's id.
        name: The name, which is unique.
        job: The person's main job.
        birthday: The date of birth.
        place_of_birth: The town, the region and the country.
        biography: A few sentences.
        external_ids: The ids on other sites, by the name of the field; None for a missing one.
        cast: The person's roles, by release date.
        crew: The person's other jobs, by release date.
    """

    id: int
    name: str
    job: str
    birthday: date
    place_of_birth: str
    biography: str
    external_ids: dict[str, str | None]
    cast: list[Credit] = field(default_factory=list)
    crew: list[Credit] = field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Credit:
    """A person's part in a film.

    Attributes:
        film: The film.
        person: The person.
        role: The character, or the job.
    """

    film: Film
    person: Person
    role: str


@dataclass(frozen=True, eq=False)
class Film:
    """A film.

    Attributes:
        id: The film's id.
        title: The title, which is unique.
        overviews: The plot summaries by country code; always includes ``US``.
        budget: In dollars.
        revenue: In dollars.
        vote_average: From 0 to 10, with three decimal places.
        release_date: The release date.
        genres: Pairs of an id and a name.
        keywords: Keywords of a few words.
        companies: The production companies, as the server returns them.
        countries: The production countries, as the server returns them.
        other_titles: Titles in other countries, by country code.
        cast: The actors and their roles.
        crew: The other people: directors, producers and writers first.
    """

    id: int
    title: str
    overviews: dict[str, str]
    budget: int
    revenue: int
    vote_average: float
    release_date: date
    genres: list[dict[str, Any]]
    keywords: list[str]
    companies: list[dict[str, Any]]
    countries: list[dict[str, Any]]
    other_titles: dict[str, str]
    cast: list[Credit] = field(default_factory=list)
    crew: list[Credit] = field(default_factory=list)


class Library:
    """All films and people of a world.

    Args:
        seed: The seed of the world.

    Attributes:
        films: All films by id, in order of release.
        people: All people by id.
    """

    def __init__(self, seed: int) -> None:
        draw = Draw("movie", seed, "people")
        self.people = {person.id: person for person in _people(draw)}
        draw = Draw("movie", seed, "films")
        pools = {
            job: _Pool(draw, [person for person in self.people.values() if person.job == job])
            for job in _PEOPLE
        }
        films = [
            _film(draw, *each, pools) for each in zip(_titles(draw), _ids(draw), range(FILMS), strict=False)
        ]
        self.films = {film.id: film for film in sorted(films, key=lambda film: film.release_date)}
        for film in self.films.values():
            for credit in film.cast:
                credit.person.cast.append(credit)
            for credit in film.crew:
                credit.person.crew.append(credit)


class _Pool:
    """People of one job, drawn so that all come up equally often."""

    def __init__(self, draw: Draw, people: Sequence[Person]) -> None:
        self._draw = draw
        self._people = people
        self._left: list[Person] = []

    def draw_people(self, count: int) -> list[Person]:
        """Return a number of different people."""
        drawn: list[Person] = []
        while len(drawn) < count:
            if not self._left:
                self._left = self._draw.shuffled([p for p in self._people if p not in drawn])
            drawn.append(self._left.pop())
        return drawn


def _ids(draw: Draw) -> Iterator[int]:
    number = draw.between(100, 999)
    while True:
        yield number
        number += draw.between(17, 2999)


def _names(draw: Draw) -> Iterator[str]:
    """Yield an endless sequence of names, which repeats none before all are used up."""
    used: set[str] = set()
    while True:
        name = f"{draw.one(_WORDS['first_names'])} {draw.one(_WORDS['last_names'])}"
        if name not in used:
            used.add(name)
            yield name


def _titles(draw: Draw) -> Iterator[str]:
    used: set[str] = set()
    while True:
        one, other = draw.some(_WORDS["nouns"], 2)
        title = draw.one(
            (
                f"The {draw.one(_WORDS['adjectives'])} {one}",
                f"{draw.one(_WORDS['adjectives'])} {one}",
                f"The {one} and the {other}",
                f"The {one} of {draw.one(_WORDS['cities'])}",
            )
        )
        if title.casefold() not in used:
            used.add(title.casefold())
            yield title


def _people(draw: Draw) -> Iterator[Person]:
    names, ids = _names(draw), _ids(draw)
    for job, count in _PEOPLE.items():
        for _ in range(count):
            yield _person(draw, next(ids), next(names), job)


def _person(draw: Draw, person_id: int, name: str, job: str) -> Person:
    born = date(1930, 1, 1) + timedelta(draw.below(13_900))
    place = draw.one(_WORDS["birthplaces"])
    plain = name.lower().replace(" ", "")
    handle = draw.one((plain, f"the{plain}", f"{plain}_official", f"real{plain}"))
    biography = (
        f"{name}, born in {place}, began at {draw.one(_WORDS['studies'])} and is known for "
        f"{draw.one(_WORDS['known_for'])}. The first prize came in {born.year + draw.between(24, 45)}."
    )
    return Person(
        id=person_id,
        name=name,
        job=job,
        birthday=born,
        place_of_birth=place,
        biography=biography,
        external_ids={
            "imdb_id": f"nm{draw.between(1_000_000, 9_999_999)}",
            "facebook_id": f"{plain}{draw.between(1, 99)}" if draw.chance(0.6) else None,
            "instagram_id": handle if draw.chance(0.7) else None,
            "twitter_id": f"{plain[:8]}{draw.between(100, 999)}" if draw.chance(0.7) else None,
        },
    )


def _film(draw: Draw, title: str, film_id: int, number: int, pools: dict[str, _Pool]) -> Film:
    actors = pools[ACTOR].draw_people(draw.between(6, 9))
    characters = list(itertools.islice(_names(draw), len(actors)))
    plot, ending, city = (
        number % len(_PLOTS["plots"]),
        draw.below(len(_PLOTS["endings"])),
        draw.one(_WORDS["cities"]),
    )
    budget = draw.between(8, 2500) * 100_000
    film = Film(
        id=film_id,
        title=title,
        overviews={
            country: _overview(plot, ending, country, hero=characters[0], city=city)
            for country in ("US", *draw.some([c for c in LANGUAGES if c != "US"], draw.between(2, 4)))
        },
        budget=budget,
        revenue=budget // 100 * draw.between(20, 550) + draw.below(100_000),
        vote_average=draw.between(3_800, 8_900) / 1000,
        release_date=_FIRST_RELEASE + timedelta(draw.below(_RELEASES)),
        genres=[
            {"id": 11 + 7 * place, "name": _WORDS["genres"][place]}
            for place in _some_of(draw, _WORDS["genres"], 3)
        ],
        keywords=draw.some(_WORDS["keywords"], draw.between(5, 10)),
        companies=[
            {
                "id": 101 + 13 * place,
                "logo_path": None,
                "name": _WORDS["companies"][place],
                "origin_country": list(COUNTRIES)[place % len(COUNTRIES)],
            }
            for place in _some_of(draw, _WORDS["companies"], 3)
        ],
        countries=[
            {"iso_3166_1": code, "name": COUNTRIES[code]}
            for code in draw.some(list(COUNTRIES), draw.between(1, 4))
        ],
        other_titles={
            country: " ".join(map(draw.one, _WORDS["foreign_titles"][country]))
            for country in draw.some(list(_WORDS["foreign_titles"]), draw.between(2, 4))
        },
    )
    film.cast.extend(Credit(film, *each) for each in zip(actors, characters, strict=True))
    film.crew.extend(Credit(film, person, job) for job, person in _crew(draw, pools))
    return film


def _overview(plot: int, ending: int, country: str, *, hero: str, city: str) -> str:
    """Return the plot summary of a film in the language of a country."""
    first: str = _PLOTS["plots"][plot][country].format(hero=hero, city=city)
    space = "" if country in {"CN", "JP"} else " "
    return f"{first}{space}{_PLOTS['endings'][ending][country]}"


def _crew(draw: Draw, pools: dict[str, _Pool]) -> Iterator[tuple[str, Person]]:
    (director,) = pools["Director"].draw_people(1)
    yield "Director", director
    for job in ("Producer", "Writer"):
        if job == "Writer" and draw.chance(_WRITES_TOO):
            yield job, director
        for person in pools[job].draw_people(draw.between(1, 2)):
            yield job, person
    for job in ("Original Music Composer", "Director of Photography", "Editor"):
        yield job, pools[job].draw_people(1)[0]


def _some_of(draw: Draw, items: Sequence[str], most: int) -> list[int]:
    """Return the ascending indices of one or more items of a sequence, drawn at random."""
    return sorted(draw.some(range(len(items)), draw.between(1, most)))
