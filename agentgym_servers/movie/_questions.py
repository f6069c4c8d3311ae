"""The kinds of questions of the Movie world.

Each kind is a function that draws a question and answers it. It raises `Unfit` if the draw has several
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from agentgym_servers._frame.tool_tasks import Question, Unfit
from agentgym_servers.movie._films import ACTOR, COUNTRIES, LANGUAGES

if TYPE_CHECKING:
    from agentgym_servers.movie._films import Film
    from agentgym_servers.movie._question_builder import Asking

__all__ = ["KINDS"]

T = TypeVar("T")

_STRING = "Please answer me with a string."
_NAME = "Please answer me with the name as a string."
_TITLE = "Please answer me with the film name as a string."
_ARRAY = "Please answer me with an array of strings."
_BIRTHPLACE = "Please answer me with the birthplace as a string."
_CHARACTER = "Please answer me with the character name as a string."
_NUMBER = "Please provide the answer as a number."
_DATE = "Please provide the date in the format YYYY-MM-DD."
_YES_OR_NO = "Please answer me with Yes or No."

_WORKS = {
    "Director": "directed the movie",
    "Original Music Composer": "composed the music of the movie",
    "Director of Photography": "was the director of photography of the movie",
    "Editor": "edited the movie",
}
_SITES = {
    "imdb_id": "IMDB id",
    "facebook_id": "Facebook id",
    "instagram_id": "Instagram id",
    "twitter_id": "Twitter id",
}


def _birthplace_of_crew(ask: Asking) -> Question:
    film = ask.film()
    job = ask.draw.one(("Director", "Editor"))
    person = ask.of_person("details", ask.crew(film, job))
    return Question(
        f'Where was the {job.lower()} of "{film.title}" born? {_BIRTHPLACE}',
        person.place_of_birth,
    )


def _same_director(ask: Asking) -> Question:
    film = ask.film()
    director = ask.crew(film, "Director")
    if ask.draw.chance(0.5):
        other = ask.draw.one(_others(director.crew, film))
        ask.find_film(other)
    else:
        other = ask.film()
    _need(other is not film)
    same = ask.crew(other, "Director") is director
    return Question(
        f'Is the director of "{film.title}" the same as the director of "{other.title}"? {_YES_OR_NO}',
        _yes(same),
    )


def _made_a_profit(ask: Asking) -> Question:
    film = ask.of_film("details", ask.film())
    return Question(
        f'How much more did the movie "{film.title}" earn than it cost? Give its revenue less its budget in '
        f"dollars. {_NUMBER}",
        film.revenue - film.budget,
    )


def _role(ask: Asking) -> Question:
    film = ask.film()
    credit = ask.role(film)
    return Question(
        f'What role did {credit.person.name} play in "{film.title}"? {_CHARACTER}',
        credit.role,
    )


def _role_elsewhere(ask: Asking) -> Question:
    film = ask.film()
    credit = ask.role(film)
    found = ask.draw.one([c for c in ask.of_person("cast", credit.person).cast if c.film is not film])
    return Question(
        f'The person who played {credit.role} in "{film.title}", what role did this person play in '
        f'"{found.film.title}"? {_CHARACTER}',
        found.role,
    )


def _actor_of_role(ask: Asking) -> Question:
    film = ask.film()
    credit = ask.role(film)
    return Question(f'Who played {credit.role} in "{film.title}"? {_NAME}', credit.person.name)


def _greater(ask: Asking) -> Question:
    field, words = ask.draw.one(
        (
            ("revenue", "higher revenue"),
            ("budget", "larger budget"),
            ("vote_average", "higher average vote score"),
        )
    )
    films = [ask.of_film("details", film) for film in ask.two_films()]
    return Question(
        f'Which movie has the {words}, "{films[0].title}" or "{films[1].title}"? {_TITLE}',
        _most(films, lambda film: getattr(film, field)).title,
    )


def _number_of_film(ask: Asking) -> Question:
    field, words = ask.draw.one(
        (("vote_average", "average vote score"), ("budget", "budget"), ("revenue", "revenue"))
    )
    film = ask.of_film("details", ask.film())
    return Question(f'What is the {words} of the movie "{film.title}"? {_NUMBER}', getattr(film, field))


def _release_date(ask: Asking) -> Question:
    film = ask.of_film("details", ask.film())
    return Question(f'What is the release date of "{film.title}"? {_DATE}', str(film.release_date))


def _released_first(ask: Asking) -> Question:
    films = [ask.of_film("details", film) for film in ask.two_films()]
    first = _most(films, lambda film: -film.release_date.toordinal())
    return Question(
        f'Which movie was released first, "{films[0].title}" or "{films[1].title}"? {_TITLE}', first.title
    )


def _external_id(ask: Asking) -> Question:
    film = ask.film()
    credit = ask.role(film)
    ids = ask.of_person("external_ids", credit.person).external_ids
    site = ask.draw.one([site for site in _SITES if ids[site]])
    return Question(
        f'What is the {_SITES[site]} of the person who played {credit.role} in "{film.title}"? {_STRING}',
        ids[site],
    )


def _external_id_by_name(ask: Asking) -> Question:
    person = ask.person(ACTOR)
    ids = ask.of_person("external_ids", person).external_ids
    site = ask.draw.one([site for site in _SITES if ids[site]])
    return Question(f"What is the {_SITES[site]} of the actor {person.name}? {_STRING}", ids[site])


def _who_made(ask: Asking) -> Question:
    film, job = ask.film(), ask.draw.one(list(_WORKS))
    return Question(f'Who {_WORKS[job]} "{film.title}"? {_NAME}', ask.crew(film, job).name)


def _writers(ask: Asking) -> Question:
    film = ask.of_film("crew", ask.film())
    job = ask.draw.one(("Writer", "Producer"))
    found = sorted(credit.person.name for credit in film.crew if credit.role == job)
    return Question(
        f'Who is named as {job.lower()} of "{film.title}"? Please provide the names as an array.', found
    )


def _common_keywords(ask: Asking) -> Question:
    films = [ask.of_film("keywords", film) for film in ask.two_films()]
    found = sorted(set(films[0].keywords) & set(films[1].keywords))
    _need(bool(found))
    return Question(
        f'Which keywords do "{films[0].title}" and "{films[1].title}" have in common? {_ARRAY}', found
    )


def _keywords(ask: Asking) -> Question:
    film = ask.of_film("keywords", ask.film())
    return Question(
        f'What are the keywords associated with the movie "{film.title}"? {_ARRAY}', sorted(film.keywords)
    )


def _biography(ask: Asking) -> Question:
    film = ask.film()
    person = ask.of_person("details", ask.crew(film, "Director"))
    return Question(f'What is the biography of the director of "{film.title}"? {_STRING}', person.biography)


def _birth_of_actor(ask: Asking) -> Question:
    film = ask.film()
    credit = ask.role(film)
    person = ask.of_person("details", credit.person)
    words, how, answer = ask.draw.one(
        (
            ("When", _DATE, str(person.birthday)),
            ("Where", _BIRTHPLACE, person.place_of_birth),
        )
    )
    return Question(f'{words} was the person born who played {credit.role} in "{film.title}"? {how}', answer)


def _companies(ask: Asking) -> Question:
    film = ask.of_film("production_companies", ask.film())
    return Question(
        f'What are the production companies behind the movie "{film.title}"? {_ARRAY}',
        sorted(company["name"] for company in film.companies),
    )


def _countries(ask: Asking) -> Question:
    film = ask.of_film("production_countries", ask.film())
    return Question(
        f'In which countries was "{film.title}" produced? {_ARRAY}',
        sorted(country["name"] for country in film.countries),
    )


def _translation(ask: Asking) -> Question:
    film = ask.of_film("translation", ask.film())
    country = ask.draw.one([country for country in film.overviews if country != "US"])
    return Question(
        f'What is the {LANGUAGES[country][2]} translation of the overview of "{film.title}"? {_STRING}',
        film.overviews[country],
    )


def _other_title(ask: Asking) -> Question:
    film = ask.of_film("alternative_titles", ask.film())
    country = ask.draw.one(list(film.other_titles))
    return Question(
        f'What is the title of "{film.title}" in {COUNTRIES[country]}? {_TITLE}', film.other_titles[country]
    )


def _films_of_director(ask: Asking) -> Question:
    person = ask.of_person("crew", ask.person("Director"))
    found = sorted(credit.film.title for credit in person.crew if credit.role == "Director")
    return Question(f"Which movies did {person.name} direct? {_ARRAY}", found)


def _best_of_director(ask: Asking) -> Question:
    person = ask.of_person("crew", ask.person("Director"))
    films = [credit.film for credit in person.crew if credit.role == "Director"]
    for film in films:
        ask.of_film("details", film)
    field, words = ask.draw.one(
        (("vote_average", "highest average vote score"), ("budget", "largest budget"))
    )
    return Question(
        f"Among the movies directed by {person.name}, which one has the {words}? {_TITLE}",
        _most(films, lambda film: getattr(film, field)).title,
    )


def _together(ask: Asking) -> Question:
    one = ask.person(ACTOR)
    film = ask.draw.one(ask.of_person("cast", one).cast).film
    other = ask.draw.one([credit.person for credit in film.cast if credit.person is not one])
    ask.find_person(other)
    theirs = {credit.film.id for credit in ask.of_person("cast", other).cast}
    found = sorted(credit.film.title for credit in one.cast if credit.film.id in theirs)
    return Question(f"In which movies did both {one.name} and {other.name} play? {_ARRAY}", found)


def _genres(ask: Asking) -> Question:
    film = ask.of_film("details", ask.film())
    return Question(
        f'What are the genres of the movie "{film.title}"? {_ARRAY}',
        sorted(genre["name"] for genre in film.genres),
    )


def _older(ask: Asking) -> Question:
    people = [ask.of_person("details", ask.person(ACTOR)) for _ in range(2)]
    first = _most(people, lambda person: -person.birthday.toordinal())
    return Question(
        f"Who was born earlier, {people[0].name} or {people[1].name}? {_NAME}",
        first.name,
    )


def _directed_an_actor(ask: Asking) -> Question:
    person = ask.of_person("cast", ask.person(ACTOR))
    credit = ask.draw.one(person.cast)
    director = ask.crew(credit.film, "Director")
    return Question(
        f"Who directed the movie in which {person.name} played {credit.role}? {_NAME}", director.name
    )


KINDS: Sequence[Callable[[Asking], Question]] = (
    _birthplace_of_crew,
    _same_director,
    _made_a_profit,
    _role_elsewhere,
    _greater,
    _number_of_film,
    _external_id,
    _who_made,
    _common_keywords,
    _films_of_director,
    _translation,
    _best_of_director,
    _release_date,
    _together,
    _role,
    _biography,
    _birth_of_actor,
    _companies,
    _other_title,
    _released_first,
    _actor_of_role,
    _writers,
    _keywords,
    _older,
    _directed_an_actor,
    _countries,
    _external_id_by_name,
    _genres,
)
"""All kinds of questions."""


def _need(holds: bool) -> None:
    if not holds:
        raise Unfit


def _others(credits_: Iterable[Any], film: Film) -> list[Film]:
    """Return the films of the credits, except the given film.

    Raises:
        Unfit: There are none.
    """
    found = [credit.film for credit in credits_ if credit.film is not film and credit.role == "Director"]
    _need(bool(found))
    return found


def _most(of: Iterable[T], value: Callable[[T], Any]) -> T:
    """Return the item with the greatest value.

    Raises:
        Unfit: Several items have it.
    """
    each = list(of)
    greatest = max(map(value, each))
    found = [one for one in each if value(one) == greatest]
    _need(len(found) == 1)
    return found[0]


def _yes(holds: bool) -> str:
    return "Yes" if holds else "No"
