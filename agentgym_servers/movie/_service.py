"""The functions of the Movie server, over the world's films and people."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_servers._frame.tools import ActionInput, AnswerTools, ToolError
from agentgym_servers.movie._films import LANGUAGES

if TYPE_CHECKING:
    from agentgym_servers._frame.tool_world import ToolTask
    from agentgym_servers.movie._films import Film, Library, Person

__all__ = ["MovieTools"]

T = TypeVar("T")

_NOT_FOUND = '{"success":false,"status_code":34,"status_message":"There is nothing of this id."}'
_MAX_CHARS = 200  # of a title, a name or an id
_MOST_SHOWN = 10  # of a cast or a crew


class MovieTools(AnswerTools):
    """The functions of one trial.

    Args:
        library: The films and people of the world.
        task: The task.
    """

    names = (
        "get_search_movie",
        "get_movie_details",
        "get_movie_production_companies",
        "get_movie_production_countries",
        "get_movie_cast",
        "get_movie_crew",
        "get_movie_keywords",
        "get_search_person",
        "get_person_details",
        "get_person_cast",
        "get_person_crew",
        "get_person_external_ids",
        "get_movie_alternative_titles",
        "get_movie_translation",
        "check_valid_actions",
        "finish",
    )

    def __init__(self, library: Library, task: ToolTask) -> None:
        self.goal = task.goal
        self.answer = task.answer
        self._library = library

    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function."""
        if name == "get_search_movie":
            return self._search_movie(arguments["movie_name"])
        if name == "get_search_person":
            return self._search_person(arguments["person_name"])
        if name in _OF_FILM:
            film = _by_id(self._library.films, arguments["movie_id"])
            return _NOT_FOUND if film is None else _OF_FILM[name](film)
        person = _by_id(self._library.people, arguments["person_id"])
        return _NOT_FOUND if person is None else _OF_PERSON[name](person)

    def _search_movie(self, title: object) -> list[dict[str, Any]]:
        film = _best_match(title, self._library.films.values(), lambda film: film.title)
        if film is None:
            raise ToolError("IndexError", "list index out of range")
        return [{"id": film.id, "overview": film.overviews["US"], "title": film.title}]

    def _search_person(self, name: object) -> list[dict[str, Any]]:
        person = _best_match(name, self._library.people.values(), lambda person: person.name)
        return [] if person is None else [{"id": person.id, "name": person.name}]


def _details(film: Film) -> dict[str, Any]:
    return {
        "title": film.title,
        "budget": film.budget,
        "genres": film.genres,
        "revenue": film.revenue,
        "vote_average": film.vote_average,
        "release_date": str(film.release_date),
    }


def _cast(film: Film) -> dict[str, Any]:
    return {
        "cast": [
            {"id": credit.person.id, "name": credit.person.name, "character": credit.role}
            for credit in film.cast[:_MOST_SHOWN]
        ]
    }


def _crew(film: Film) -> dict[str, Any]:
    return {
        "crew": [
            {"id": credit.person.id, "name": credit.person.name, "job": credit.role}
            for credit in film.crew[:_MOST_SHOWN]
        ]
    }


def _alternative_titles(film: Film) -> dict[str, Any]:
    return {
        "id": film.id,
        "titles": [
            {"iso_3166_1": country, "title": title, "type": ""}
            for country, title in film.other_titles.items()
        ],
    }


def _translations(film: Film) -> dict[str, Any]:
    return {
        "id": film.id,
        "translations": [
            {
                "iso_3166_1": country,
                "iso_639_1": LANGUAGES[country][0],
                "name": LANGUAGES[country][1],
                "english_name": LANGUAGES[country][2],
                "data": {"homepage": "", "overview": overview, "runtime": 0, "tagline": ""},
            }
            for country, overview in film.overviews.items()
        ],
    }


def _person_details(person: Person) -> dict[str, Any]:
    return {
        "name": person.name,
        "biography": person.biography,
        "birthday": str(person.birthday),
        "place_of_birth": person.place_of_birth,
    }


def _person_cast(person: Person) -> dict[str, Any]:
    return {
        "cast": [
            {"id": credit.film.id, "title": credit.film.title, "character": credit.role}
            for credit in person.cast[:_MOST_SHOWN]
        ]
    }


def _person_crew(person: Person) -> dict[str, Any]:
    return {
        "crew": [
            {"id": credit.film.id, "title": credit.film.title, "job": credit.role}
            for credit in person.crew[:_MOST_SHOWN]
        ]
    }


_OF_FILM: dict[str, Callable[[Film], dict[str, Any]]] = {
    "get_movie_details": _details,
    "get_movie_production_companies": lambda film: {"production_companies": film.companies},
    "get_movie_production_countries": lambda film: {"production_countries": film.countries},
    "get_movie_cast": _cast,
    "get_movie_crew": _crew,
    "get_movie_keywords": lambda film: {"keywords": film.keywords},
    "get_movie_alternative_titles": _alternative_titles,
    "get_movie_translation": _translations,
}
_OF_PERSON: dict[str, Callable[[Person], dict[str, Any]]] = {
    "get_person_details": _person_details,
    "get_person_cast": _person_cast,
    "get_person_crew": _person_crew,
    "get_person_external_ids": lambda person: dict(person.external_ids),
}


def _by_id(items: dict[int, T], item_id: object) -> T | None:
    """Return the item with an id, which may be a number or a string of digits."""
    text = str(item_id)[:_MAX_CHARS] if isinstance(item_id, (int, str)) else ""
    return items.get(int(text)) if text.isascii() and text.isdigit() else None


def _best_match(query: object, items: Iterable[T], name_of: Callable[[T], str]) -> T | None:
    """Return the item of a name; else the first whose name begins with it; else one with all its words."""
    text = " ".join(str(query)[:_MAX_CHARS].casefold().split())
    words = set(text.split())
    if not words:
        return None
    tests: Sequence[Callable[[str], bool]] = (
        lambda name: name == text,
        lambda name: name.startswith(text),
        lambda name: words <= set(name.split()),
    )
    named = [(item, name_of(item).casefold()) for item in items]
    return next((item for test in tests for item, name in named if test(name)), None)
