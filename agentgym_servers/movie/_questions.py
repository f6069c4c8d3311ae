"""The kinds of questions of the Movie world.

Each kind is a function that draws a question and answers it. It raises `Unfit` if the draw has several
answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.tool_tasks import Question, require, single_best, yes_or_no
from agentgym_servers.movie._films import ACTOR, COUNTRIES, LANGUAGES

if TYPE_CHECKING:
    from agentgym_servers.movie._films import Film
    from agentgym_servers.movie._question_builder import MovieQuestionBuilder

__all__ = ["KINDS"]

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


def _birthplace_of_crew(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    job = builder.draw.one(("Director", "Editor"))
    person = builder.of_person("details", builder.crew(film, job))
    return Question(
        f'Where was the {job.lower()} of "{film.title}" born? {_BIRTHPLACE}',
        person.place_of_birth,
        reason=f"The place of birth is {person.place_of_birth}.",
    )


def _same_director(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    director = builder.crew(film, "Director")
    if builder.draw.chance(0.5):
        other = builder.draw.one(_others(director.crew, film))
        builder.find_film(other)
    else:
        other = builder.film()
    require(other is not film)
    second = builder.crew(other, "Director")
    return Question(
        f'Is the director of "{film.title}" the same as the director of "{other.title}"? {_YES_OR_NO}',
        yes_or_no(director is second),
        reason=f"The directors are {director.name} and {second.name}.",
    )


def _made_a_profit(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("details", builder.film())
    return Question(
        f'How much more did the movie "{film.title}" earn than it cost? Give its revenue less its budget in '
        f"dollars. {_NUMBER}",
        film.revenue - film.budget,
        reason=f"{film.revenue} - {film.budget} = {film.revenue - film.budget}.",
    )


def _role(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    credit = builder.role(film)
    return Question(
        f'What role did {credit.person.name} play in "{film.title}"? {_CHARACTER}',
        credit.role,
        reason=f"{credit.person.name} is {credit.role}.",
    )


def _role_elsewhere(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    credit = builder.role(film)
    other = builder.draw.one([c for c in builder.of_person("cast", credit.person).cast if c.film is not film])
    return Question(
        f'The person who played {credit.role} in "{film.title}", what role did this person play in '
        f'"{other.film.title}"? {_CHARACTER}',
        other.role,
        reason=f'In "{other.film.title}", {credit.person.name} is {other.role}.',
    )


def _actor_of_role(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    credit = builder.role(film)
    return Question(
        f'Who played {credit.role} in "{film.title}"? {_NAME}',
        credit.person.name,
        reason=f"{credit.role} is {credit.person.name}.",
    )


def _greater(builder: MovieQuestionBuilder) -> Question:
    field, words = builder.draw.one(
        (
            ("revenue", "higher revenue"),
            ("budget", "larger budget"),
            ("vote_average", "higher average vote score"),
        )
    )
    films = [builder.of_film("details", film) for film in builder.two_films()]
    return Question(
        f'Which movie has the {words}, "{films[0].title}" or "{films[1].title}"? {_TITLE}',
        single_best(films, lambda film: getattr(film, field)).title,
        reason=_values(films, field),
    )


def _number_of_film(builder: MovieQuestionBuilder) -> Question:
    field, words = builder.draw.one(
        (("vote_average", "average vote score"), ("budget", "budget"), ("revenue", "revenue"))
    )
    film = builder.of_film("details", builder.film())
    return Question(
        f'What is the {words} of the movie "{film.title}"? {_NUMBER}',
        getattr(film, field),
        reason=f"The {words} is {getattr(film, field)}.",
    )


def _release_date(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("details", builder.film())
    return Question(
        f'What is the release date of "{film.title}"? {_DATE}',
        str(film.release_date),
        reason=f"The release date is {film.release_date}.",
    )


def _released_first(builder: MovieQuestionBuilder) -> Question:
    films = [builder.of_film("details", film) for film in builder.two_films()]
    first = single_best(films, lambda film: -film.release_date.toordinal())
    return Question(
        f'Which movie was released first, "{films[0].title}" or "{films[1].title}"? {_TITLE}',
        first.title,
        reason=_values(films, "release_date"),
    )


def _external_id(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    credit = builder.role(film)
    ids = builder.of_person("external_ids", credit.person).external_ids
    site = builder.draw.one([site for site in _SITES if ids[site]])
    return Question(
        f'What is the {_SITES[site]} of the person who played {credit.role} in "{film.title}"? {_STRING}',
        ids[site],
        reason=f"The {_SITES[site]} is {ids[site]}.",
    )


def _external_id_by_name(builder: MovieQuestionBuilder) -> Question:
    person = builder.person(ACTOR)
    ids = builder.of_person("external_ids", person).external_ids
    site = builder.draw.one([site for site in _SITES if ids[site]])
    return Question(
        f"What is the {_SITES[site]} of the actor {person.name}? {_STRING}",
        ids[site],
        reason=f"The {_SITES[site]} is {ids[site]}.",
    )


def _who_made(builder: MovieQuestionBuilder) -> Question:
    film, job = builder.film(), builder.draw.one(list(_WORKS))
    name = builder.crew(film, job).name
    return Question(f'Who {_WORKS[job]} "{film.title}"? {_NAME}', name, reason=f"The {job} is {name}.")


def _writers(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("crew", builder.film())
    job = builder.draw.one(("Writer", "Producer"))
    names = sorted(credit.person.name for credit in film.crew if credit.role == job)
    return Question(
        f'Who is named as {job.lower()} of "{film.title}"? Please provide the names as an array.',
        names,
        reason=f"{job}: {', '.join(names)}.",
    )


def _common_keywords(builder: MovieQuestionBuilder) -> Question:
    films = [builder.of_film("keywords", film) for film in builder.two_films()]
    common = sorted(set(films[0].keywords) & set(films[1].keywords))
    require(bool(common))
    return Question(
        f'Which keywords do "{films[0].title}" and "{films[1].title}" have in common? {_ARRAY}',
        common,
        reason=f"In both: {', '.join(common)}.",
    )


def _keywords(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("keywords", builder.film())
    return Question(
        f'What are the keywords associated with the movie "{film.title}"? {_ARRAY}',
        sorted(film.keywords),
        reason="I give all the keywords.",
    )


def _biography(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    person = builder.of_person("details", builder.crew(film, "Director"))
    return Question(
        f'What is the biography of the director of "{film.title}"? {_STRING}',
        person.biography,
        reason="I give the biography in full.",
    )


def _birth_of_actor(builder: MovieQuestionBuilder) -> Question:
    film = builder.film()
    credit = builder.role(film)
    person = builder.of_person("details", credit.person)
    words, how, answer = builder.draw.one(
        (
            ("When", _DATE, str(person.birthday)),
            ("Where", _BIRTHPLACE, person.place_of_birth),
        )
    )
    return Question(
        f'{words} was the person born who played {credit.role} in "{film.title}"? {how}',
        answer,
        reason=f"The {'date' if words == 'When' else 'place'} of birth is {answer}.",
    )


def _companies(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("production_companies", builder.film())
    return Question(
        f'What are the production companies behind the movie "{film.title}"? {_ARRAY}',
        sorted(company["name"] for company in film.companies),
        reason="I give the names of all the companies.",
    )


def _countries(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("production_countries", builder.film())
    return Question(
        f'In which countries was "{film.title}" produced? {_ARRAY}',
        sorted(country["name"] for country in film.countries),
        reason="I give the names of all the countries.",
    )


def _translation(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("translation", builder.film())
    country = builder.draw.one([country for country in film.overviews if country != "US"])
    return Question(
        f'What is the {LANGUAGES[country][2]} translation of the overview of "{film.title}"? {_STRING}',
        film.overviews[country],
        reason=f"I give the overview in {LANGUAGES[country][2]} in full.",
    )


def _other_title(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("alternative_titles", builder.film())
    country = builder.draw.one(list(film.other_titles))
    return Question(
        f'What is the title of "{film.title}" in {COUNTRIES[country]}? {_TITLE}',
        film.other_titles[country],
        reason=f"{COUNTRIES[country]} is {country}. The title is {film.other_titles[country]}.",
    )


def _films_of_director(builder: MovieQuestionBuilder) -> Question:
    person = builder.of_person("crew", builder.person("Director"))
    titles = sorted(credit.film.title for credit in person.crew if credit.role == "Director")
    return Question(
        f"Which movies did {person.name} direct? {_ARRAY}", titles, reason="I give the films as Director."
    )


def _best_of_director(builder: MovieQuestionBuilder) -> Question:
    person = builder.of_person("crew", builder.person("Director"))
    films = [credit.film for credit in person.crew if credit.role == "Director"]
    for film in films:
        builder.of_film("details", film)
    field, words = builder.draw.one(
        (("vote_average", "highest average vote score"), ("budget", "largest budget"))
    )
    return Question(
        f"Among the movies directed by {person.name}, which one has the {words}? {_TITLE}",
        single_best(films, lambda film: getattr(film, field)).title,
        reason=_values(films, field),
    )


def _together(builder: MovieQuestionBuilder) -> Question:
    one = builder.person(ACTOR)
    film = builder.draw.one(builder.of_person("cast", one).cast).film
    other = builder.draw.one([credit.person for credit in film.cast if credit.person is not one])
    builder.find_person(other)
    other_ids = {credit.film.id for credit in builder.of_person("cast", other).cast}
    titles = sorted(credit.film.title for credit in one.cast if credit.film.id in other_ids)
    return Question(
        f"In which movies did both {one.name} and {other.name} play? {_ARRAY}",
        titles,
        reason=f"In both: {', '.join(titles)}.",
    )


def _genres(builder: MovieQuestionBuilder) -> Question:
    film = builder.of_film("details", builder.film())
    return Question(
        f'What are the genres of the movie "{film.title}"? {_ARRAY}',
        sorted(genre["name"] for genre in film.genres),
        reason="I give the names of all the genres.",
    )


def _older(builder: MovieQuestionBuilder) -> Question:
    people = [builder.of_person("details", builder.person(ACTOR)) for _ in range(2)]
    first = single_best(people, lambda person: -person.birthday.toordinal())
    return Question(
        f"Who was born earlier, {people[0].name} or {people[1].name}? {_NAME}",
        first.name,
        reason=f"{people[0].name}: {people[0].birthday}. {people[1].name}: {people[1].birthday}.",
    )


def _directed_an_actor(builder: MovieQuestionBuilder) -> Question:
    person = builder.of_person("cast", builder.person(ACTOR))
    credit = builder.draw.one(person.cast)
    director = builder.crew(credit.film, "Director")
    return Question(
        f"Who directed the movie in which {person.name} played {credit.role}? {_NAME}",
        director.name,
        reason=f"The Director is {director.name}.",
    )


KINDS: Sequence[Callable[[MovieQuestionBuilder], Question]] = (
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


def _values(films: Iterable[Film], field: str) -> str:
    """Return a property of some films as the reason for the choice of one."""
    return " ".join(f'"{film.title}": {getattr(film, field)}.' for film in films)


def _others(credits_: Iterable[Any], film: Film) -> list[Film]:
    """Return the films of the credits, except the given film.

    Raises:
        Unfit: There are none.
    """
    films = [credit.film for credit in credits_ if credit.film is not film and credit.role == "Director"]
    require(bool(films))
    return films
