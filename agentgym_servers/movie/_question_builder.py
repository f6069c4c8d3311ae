"""The building blocks of Movie's questions: random subjects, and the calls that find an answer."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import QuestionBuilder, require

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.movie._films import Credit, Film, Library, Person

__all__ = ["MovieQuestionBuilder"]


class MovieQuestionBuilder(QuestionBuilder):
    """Draws films and people, and records the calls that look them up.

    Args:
        draw: The source of random draws.
        library: The films and people.
    """

    def __init__(self, draw: Draw, library: Library) -> None:
        super().__init__(draw)
        self._films = list(library.films.values())
        self._people = list(library.people.values())
        self._named: set[Film | Person] = set()  # by the goal

    def film(self) -> Film:
        """Draw a film, and look it up by its title."""
        film = self.draw.one(self._films)
        self.find_film(film)
        return film

    def two_films(self) -> tuple[Film, Film]:
        """Draw two films, and look them up by their titles."""
        one, other = self.draw.some(self._films, 2)
        self.find_film(one)
        self.find_film(other)
        return one, other

    def person(self, job: str) -> Person:
        """Draw a person with a job, and look up the person by name."""
        person = self.draw.one([person for person in self._people if person.job == job])
        self.find_person(person)
        return person

    def find_film(self, film: Film) -> None:
        """Look up a film by its title."""
        self.record("get_search_movie", f'the id of "{film.title}"', movie_name=film.title)
        self.found(f'The id of "{film.title}" is {film.id}.')
        self._named.add(film)

    def find_person(self, person: Person) -> None:
        """Look up a person by the name."""
        self.record("get_search_person", f"the id of {person.name}", person_name=person.name)
        self.found(f"The id of {person.name} is {person.id}.")
        self._named.add(person)

    def of_film(self, name: str, film: Film) -> Film:
        """Look up a property of a film, such as ``details``."""
        which = (
            (f'"{film.title}"', "") if film in self._named else ("that film", f': "{film.title}", {film.id}')
        )
        self.record(f"get_movie_{name}", f"the {_words(name)} of {which[0]}", which[1], movie_id=str(film.id))
        return film

    def of_person(self, name: str, person: Person) -> Person:
        """Look up a property of a person, such as ``details``."""
        which = (
            (person.name, "") if person in self._named else ("that person", f": {person.name}, {person.id}")
        )
        self.record(
            f"get_person_{name}", f"the {_words(name)} of {which[0]}", which[1], person_id=str(person.id)
        )
        return person

    def crew(self, film: Film, job: str) -> Person:
        """Look up the person with a job in a film.

        Raises:
            Unfit: Several people had it.
        """
        people = [credit.person for credit in self.of_film("crew", film).crew if credit.role == job]
        require(len(people) == 1)
        self.found(f"The {job} is {people[0].name}.")
        return people[0]

    def role(self, film: Film) -> Credit:
        """Look up a film's cast, and draw one of its roles."""
        credit = self.draw.one(self.of_film("cast", film).cast)
        self.found(f"{credit.role} is {credit.person.name}.")
        return credit


def _words(name: str) -> str:
    """Return the name of a property in words."""
    return name.replace("_", " ")
