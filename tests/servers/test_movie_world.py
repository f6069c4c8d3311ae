"""The Movie world: its films, its functions, its tasks and their solutions, without a server."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import TYPE_CHECKING

import pytest

from agentgym_gym.envs.movie import MOVIE
from agentgym_servers._frame.tools import ActionInput, ToolError
from agentgym_servers.movie._films import FILMS
from agentgym_servers.movie._service import MovieTools
from agentgym_servers.movie._world import world_of
from clock import cpu_seconds

if TYPE_CHECKING:
    from agentgym_servers._frame.tool_world import ToolWorld

DIGEST = "c8c5569774eee711d26a66b3ac3e5cb9b53aad7eba4552496917350e33326caf"


def tools_of(task_id: int = 0, seed: int = 0) -> MovieTools:
    world = world_of(seed)
    return MovieTools(world.setting, world.tasks[task_id])


def call(name: str, **arguments: object) -> object:
    return tools_of().call(name, ActionInput(arguments))


def everything(world: ToolWorld) -> str:
    """Return all that the functions tell of all films and people, and all tasks, as text."""
    tools = MovieTools(world.setting, world.tasks[0])
    told = [
        tools.call(name, ActionInput({"movie_id": film} if "movie" in name else {"person_id": film}))
        for name in MovieTools.names
        if name.startswith("get_") and "search" not in name
        for film in (world.setting.films if "movie" in name else world.setting.people)
    ]
    return json.dumps([told, [(task.goal, task.answer, task.solution) for task in world.tasks]])


# --- the world ---


def test_the_world_is_the_same_everywhere():
    said = everything(world_of(0))
    assert hashlib.sha256(said.encode()).hexdigest() == DIGEST


def test_there_is_a_task_of_its_own_for_each_id():
    tasks = world_of(0).tasks
    assert range(len(tasks)) == MOVIE.splits["all"]
    assert len({task.goal for task in tasks}) == len(tasks)
    assert len({json.dumps(task.answer) for task in tasks}) > 180


def test_another_seed_is_another_world():
    one, other = world_of(0), world_of(1)
    assert not {task.goal for task in one.tasks} & {task.goal for task in other.tasks}
    assert [film.title for film in one.setting.films.values()] != [
        film.title for film in other.setting.films.values()
    ]


def test_it_is_made_quickly():
    assert cpu_seconds(lambda: world_of.__wrapped__(1), enough=5) <= 5


def test_titles_and_names_are_those_of_one():
    library = world_of(0).setting
    assert len({film.title.casefold() for film in library.films.values()}) == len(library.films) == FILMS
    assert len({person.name for person in library.people.values()}) == len(library.people)


def test_nothing_is_cut_off():
    """A function shows ten credits, and nobody has more: what is not shown cannot be asked for."""
    library = world_of(0).setting
    for each in (*library.films.values(), *library.people.values()):
        assert len(each.cast) <= 10
        assert len(each.crew) <= 10
    assert all(len(film.cast) >= 6 and len(film.crew) >= 6 for film in library.films.values())
    assert all(person.cast or person.crew for person in library.people.values())


def test_people_are_grown_up_when_their_films_come_out():
    for film in world_of(0).setting.films.values():
        for credit in (*film.cast, *film.crew):
            assert film.release_date.year - credit.person.birthday.year > 16


def test_a_cast_and_its_people_tell_the_same():
    library = world_of(0).setting
    of_films = {(f.id, c.person.id, c.role) for f in library.films.values() for c in (*f.cast, *f.crew)}
    of_people = {(c.film.id, p.id, c.role) for p in library.people.values() for c in (*p.cast, *p.crew)}
    assert of_films == of_people


# --- the functions ---


def test_a_film_is_found_by_its_title_its_beginning_or_its_words():
    film = next(f for f in world_of(0).setting.films.values() if " of " in f.title)
    first, last = film.title.split()[1], film.title.split()[-1]
    for words in (film.title, f"  {film.title.upper()} ", film.title[:-1], f"{last} {first}"):
        (found,) = call("get_search_movie", movie_name=words)
        assert list(found) == ["id", "overview", "title"]
        assert (found["title"], found["id"]) == (film.title, film.id)


def test_every_title_and_name_finds_its_own():
    library = world_of(0).setting
    for film in library.films.values():
        assert call("get_search_movie", movie_name=film.title)[0]["id"] == film.id
    for person in library.people.values():
        assert call("get_search_person", person_name=person.name) == [{"id": person.id, "name": person.name}]


def test_what_there_is_not_is_said_as_by_the_movie_database():
    with pytest.raises(ToolError) as missing:
        call("get_search_movie", movie_name="Nothing of that name")
    assert (missing.value.kind, missing.value.text) == ("IndexError", "list index out of range")
    assert call("get_search_person", person_name="Nobody") == []
    for told in (call("get_movie_details", movie_id="1"), call("get_person_cast", person_id=-5)):
        assert (json.loads(told)["success"], json.loads(told)["status_code"]) == (False, 34)
    with pytest.raises(ToolError) as without:
        call("get_movie_cast", person_id="1")
    assert (without.value.kind, without.value.text) == ("KeyError", "'movie_id'")


def test_the_replies_are_those_of_the_movie_database():
    film = next(iter(world_of(0).setting.films.values()))

    def told(what: str) -> dict:
        assert call(f"get_movie_{what}", movie_id=str(film.id)) == call(f"get_movie_{what}", movie_id=film.id)
        return call(f"get_movie_{what}", movie_id=film.id)

    kinds = {name: type(value) for name, value in told("details").items()}
    assert kinds == {
        "title": str,
        "budget": int,
        "genres": list,
        "revenue": int,
        "vote_average": float,
        "release_date": str,
    }
    assert list(told("details")["genres"][0]) == ["id", "name"]
    assert list(told("production_companies")) == ["production_companies"]
    company = told("production_companies")["production_companies"][0]
    assert list(company) == ["id", "logo_path", "name", "origin_country"]
    assert list(told("production_countries")["production_countries"][0]) == ["iso_3166_1", "name"]
    assert list(told("cast")["cast"][0]) == ["id", "name", "character"]
    assert list(told("crew")["crew"][0]) == ["id", "name", "job"]
    assert [c["job"] for c in told("crew")["crew"]][:2] == ["Director", "Producer"]
    assert all(type(word) is str for word in told("keywords")["keywords"])
    assert list(told("alternative_titles")) == ["id", "titles"]
    assert list(told("translation")) == ["id", "translations"]
    assert list(told("alternative_titles")["titles"][0]) == ["iso_3166_1", "title", "type"]
    translation = told("translation")["translations"][0]
    assert list(translation) == ["iso_3166_1", "iso_639_1", "name", "english_name", "data"]
    assert list(translation["data"]) == ["homepage", "overview", "runtime", "tagline"]


def test_the_replies_of_people_are_those_of_the_movie_database():
    library = world_of(0).setting
    actor = next(person for person in library.people.values() if person.cast)
    maker = next(person for person in library.people.values() if person.crew)
    details = call("get_person_details", person_id=actor.id)
    assert list(details) == ["name", "biography", "birthday", "place_of_birth"]
    assert list(call("get_person_cast", person_id=actor.id)["cast"][0]) == ["id", "title", "character"]
    assert list(call("get_person_crew", person_id=maker.id)["crew"][0]) == ["id", "title", "job"]
    ids = call("get_person_external_ids", person_id=actor.id)
    assert list(ids) == ["imdb_id", "facebook_id", "instagram_id", "twitter_id"]


ODD = [None, True, "", "\0", "\ud800", "x" * 100_000, 10**400, "9" * 5000, "²", float("nan"), [], {}, [[1]]]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_no_argument_does_harm(odd):
    tools = tools_of()
    for name in MovieTools.names[:-2]:
        for given in (
            ActionInput(dict.fromkeys(("movie_name", "movie_id", "person_name", "person_id"), odd)),
            ActionInput(odd),
        ):
            with contextlib.suppress(ToolError):
                assert len(str(tools.call(name, given))) < 1000


# --- the tasks ---


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 9))])
def test_the_solution_of_every_task_reaches_the_top_within_the_turns(seed):
    for task_id, task in enumerate(world_of(seed).tasks):
        tools = tools_of(task_id, seed)
        *calls, (last, finish) = task.solution
        told = [tools.call(name, ActionInput(arguments)) for name, arguments in calls]
        assert not [text for text in told if isinstance(text, str)]
        assert (last, tools.finish(ActionInput(finish))[1]) == ("finish", 1.0)
        assert len(task.solution) <= MOVIE.max_turns
        assert_told(task, json.dumps(told, ensure_ascii=False))


def assert_told(task, told: str) -> None:
    """Check that an answer stands in the replies, or follows from numbers that do."""
    answers = task.answer if isinstance(task.answer, list) else [task.answer]
    if answers in (["Yes"], ["No"]):
        return
    if "less its budget" in task.goal:
        budget, revenue = (
            int(told.partition(f'"{key}": ')[2].partition(",")[0]) for key in ("budget", "revenue")
        )
        assert task.answer == revenue - budget
        return
    for answer in answers:
        assert json.dumps(answer, ensure_ascii=False) in told, task


def test_nothing_is_asked_by_an_id_that_was_not_told():
    for task_id, task in enumerate(world_of(0).tasks):
        tools, told = tools_of(task_id), ""
        for name, arguments in task.solution[:-1]:
            if "search" in name:
                assert next(iter(arguments.values())) in task.goal + told
            else:
                assert f'"id": {next(iter(arguments.values()))},' in told
            told += json.dumps(tools.call(name, ActionInput(arguments)))


def test_yes_and_no_are_both_right_at_times():
    asked = [task.answer for task in world_of(0).tasks if "the same as the director" in task.goal]
    assert {"Yes", "No"} == set(asked)


def test_an_answer_must_be_equal_and_of_the_type():
    tasks = world_of(0).tasks
    number = next(n for n, task in enumerate(tasks) if type(task.answer) is int)
    names = next(n for n, task in enumerate(tasks) if type(task.answer) is list and len(task.answer) > 1)
    text = next(n for n, task in enumerate(tasks) if type(task.answer) is str)

    def worth(task_id: int, answer: object) -> float:
        return tools_of(task_id).finish(ActionInput({"answer": answer}))[1]

    right = tasks[number].answer
    assert [worth(number, each) for each in (right, float(right))] == [1.0, 1.0]
    assert [worth(number, each) for each in (str(right), right + 1, [right], None, 10**400)] == [0.0] * 5
    right = tasks[names].answer
    assert [worth(names, each) for each in (right, right[::-1])] == [1.0, 1.0]
    assert [worth(names, each) for each in (right[1:], [*right, right[0]], str(right), [])] == [0.0] * 4
    right = tasks[text].answer
    assert worth(text, right) == 1.0
    assert [worth(text, each) for each in (f"{right}.", [right], None, "\0", "\ud800")] == [0.0] * 5


def test_a_search_is_quick():
    tools, given = tools_of(), ActionInput({"person_name": "x " * 100})
    assert cpu_seconds(lambda: tools.call("get_search_person", given), enough=0.05) <= 0.05
