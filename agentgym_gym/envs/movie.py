"""Movie: answer questions about films with The Movie Database (Ma et al., 2024, arXiv:2401.13178).

If the server cannot reach the database, it retries ten times at intervals of 15 s, and then returns the error
as an observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from agentgym_gym.actions import Grammar
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._scalar_arguments import Id, ShortText
from agentgym_gym.envs._tools import (
    QUIRKS,
    CheckValidActions,
    Finish,
    Tool,
    ToolWire,
    launch_of,
    read_as_agentgym,
)

__all__ = [
    "MOVIE",
    "GetMovieAlternativeTitles",
    "GetMovieCast",
    "GetMovieCrew",
    "GetMovieDetails",
    "GetMovieKeywords",
    "GetMovieProductionCompanies",
    "GetMovieProductionCountries",
    "GetMovieTranslation",
    "GetPersonCast",
    "GetPersonCrew",
    "GetPersonDetails",
    "GetPersonExternalIds",
    "GetSearchMovie",
    "GetSearchPerson",
]

_Title = Annotated[str, ShortText("Scream VI", "Minions: The Rise of Gru", "Black Swan"), "the film's title"]
_Person = Annotated[str, ShortText("Natalie Portman", "Kyle Balda", "Christopher Nolan"), "the person's name"]
_MovieId = Annotated[str, Id("934433", "438148", "44214"), "the film's id"]
_PersonId = Annotated[str, Id("524", "525", "121830"), "the person's id"]


@dataclass(frozen=True, eq=False)
class GetSearchMovie(Tool):
    """Find a film by its title: its id, title and plot."""

    movie_name: _Title


@dataclass(frozen=True, eq=False)
class GetMovieDetails(Tool):
    """Get the budget, genres, revenue, average vote and release date of a film."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieProductionCompanies(Tool):
    """Get the companies that produced a film."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieProductionCountries(Tool):
    """Get the countries where a film was produced."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieCast(Tool):
    """Get the first ten of a film's cast."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieCrew(Tool):
    """Get up to ten of a film's crew, directors, producers and writers first."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieKeywords(Tool):
    """Get the keywords of a film."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetSearchPerson(Tool):
    """Find a person by name: the id and the name."""

    person_name: _Person


@dataclass(frozen=True, eq=False)
class GetPersonDetails(Tool):
    """Get the biography, birthday and place of birth of a person."""

    person_id: _PersonId


@dataclass(frozen=True, eq=False)
class GetPersonCast(Tool):
    """Get the first ten films a person played in."""

    person_id: _PersonId


@dataclass(frozen=True, eq=False)
class GetPersonCrew(Tool):
    """Get the first ten films a person worked on behind the camera."""

    person_id: _PersonId


@dataclass(frozen=True, eq=False)
class GetPersonExternalIds(Tool):
    """Get a person's ids at IMDb, Facebook, Instagram and Twitter."""

    person_id: _PersonId


@dataclass(frozen=True, eq=False)
class GetMovieAlternativeTitles(Tool):
    """Get the other titles of a film."""

    movie_id: _MovieId


@dataclass(frozen=True, eq=False)
class GetMovieTranslation(Tool):
    """Get the plot of a film in other languages."""

    movie_id: _MovieId


_GRAMMAR = Grammar(
    [
        GetSearchMovie("Scream VI"),
        GetMovieDetails("934433"),
        GetMovieProductionCompanies("934433"),
        GetMovieProductionCountries("934433"),
        GetMovieCast("934433"),
        GetMovieCrew("934433"),
        GetMovieKeywords("934433"),
        GetSearchPerson("Natalie Portman"),
        GetPersonDetails("524"),
        GetPersonCast("524"),
        GetPersonCrew("524"),
        GetPersonExternalIds("524"),
        GetMovieAlternativeTitles("934433"),
        GetMovieTranslation("934433"),
        CheckValidActions(),
        Finish("2023-03-08"),
    ]
)

_RULES = """\
You answer a user's question about films and the people who make them by calling functions. The first \
message is the question; after each of your actions you are told what the function returned.

- Take the id of a film from `get_search_movie` and that of a person from `get_search_person` or from a \
cast or crew, never from memory.
- Call `finish` with the answer when you know it: that ends the task and cannot be taken back. The answer \
must be of the type that the question asks for: the number 105 is not the text "105". Several things are a \
list."""

_LOCAL_QUIRKS = """\
- All films and people are invented, from a seed: 200 films and 485 people. The 238 questions of 28 kinds \
are our own; AgentGym's answers are not correct here.
- A search finds a title or name by its beginning, or by its words in any order, but not if it is \
misspelled.
- A crew has at most ten credits, all shown; AgentGym's server may omit some jobs of the people shown.
- A translation is in Dutch, German, Mandarin or Japanese; on AgentGym's server also in Russian.
- As on AgentGym's server, an answer must be equal and have the right type: 105 is not "105", and the order \
of a list does not count.
- Only the first `finish` is scored, and it ends the episode. On AgentGym's server any function that returns \
the answer scores, and an episode continues to pay after its end.
- The word "finish" ends an episode only as the function, not anywhere in the text.
- Nothing is evaluated: an `Action Input` that is not a plain value is refused as unreadable.
- A negative task id is refused; on AgentGym's server it counts from the end.
- An environment without a request for an hour is deleted; AgentGym's server deletes none.
- It needs no key and no network. Errors of the database have the same form and other words."""

MOVIE = Environment(
    name="Movie",
    summary=(
        "Answer questions about films by calling functions (the tool tasks of AgentBoard, Ma et "
        "al., 2024, arXiv:2401.13178)."
    ),
    wire=ToolWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=12,
    splits=make_splits(range(238), test=range(190, 238)),
    cheap_wins=dict.fromkeys(
        ("answer 'Yes'", "answer 'No'"), "some questions are answered by yes or no, as 54 of AgentGym's 238"
    ),
    on_unknown="refuse",
    agentgym_readers={"react": read_as_agentgym},
    local_server="agentgym_servers.movie:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers._tool_oracles:MovieOracle",
    quirks=f"""\
{QUIRKS}
- Its server needs a key of The Movie Database in `MOVIE_KEY` and asks it over the network at each call. \
Where it cannot reach it, a step takes 150 s, and the episode ends as a fault.""",
    launch=f"export MOVIE_KEY=...\n{launch_of('movie')}",
    transcript=(
        (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: Where was the "
            "director of Minions: The Rise of Gru born? Please answer me with the birthplace as a "
            "string.\nGive me one action."
        ),
        'Action: finish with Action Input: {"answer": "Tucson, Arizona, USA"}',
        "Observation: Tucson, Arizona, USA\nGive me one action.",
    ),
)
