"""What the functions of Movie return, and which answers are right."""

from __future__ import annotations

import ast
import json
import re

import pytest

from agentgym_gym import find
from clock import cpu_seconds
from local_game import LocalGame

MOVIE = find("Movie")


@pytest.fixture(scope="module")
def game():
    with LocalGame("Movie") as game:
        game.reset(0)
        yield game


@pytest.fixture(scope="module", params=[40, pytest.param(len(MOVIE.task_ids), marks=pytest.mark.slow)])
def solutions(game, request):
    """The goal of each task, the actions that win it, and what is observed."""
    return {
        task: (game.reset(task).goal, game.win(task)[0], game.seen[1:])
        for task in MOVIE.task_ids[: request.param]
    }


@pytest.fixture(scope="module")
def names(solutions):
    """The films and people that solutions search for."""
    actions = [action for _, each, _ in solutions.values() for action in each]
    return tuple(
        list(dict.fromkeys(getattr(action, name) for action in actions if hasattr(action, name)))
        for name in ("movie_name", "person_name")
    )


@pytest.fixture(scope="module")
def films(game, names):
    """The ids of these films by their titles."""
    return {title: value(game, "get_search_movie", movie_name=title)[0]["id"] for title in names[0]}


def value(game, function, **arguments):
    return ast.literal_eval(game.call(function, **arguments))


# --- the functions ---


def test_a_film_is_found_by_its_title_its_beginning_or_its_words(game, films):
    title = next(each for each in films if " of " in each)
    first, last = title.split()[1], title.split()[-1]
    for words in (title, f"  {title.upper()} ", title[:-1], f"{last} {first}"):
        (found,) = value(game, "get_search_movie", movie_name=words)
        assert list(found) == ["id", "overview", "title"]
        assert (found["title"], found["id"]) == (title, films[title])


def test_every_title_and_name_finds_its_own(game, solutions, names):
    assert len(names[0]) > 0.4 * len(solutions)
    for title in names[0]:
        assert value(game, "get_search_movie", movie_name=title)[0]["title"] == title
    for name in names[1]:
        assert [each["name"] for each in value(game, "get_search_person", person_name=name)] == [name]


def test_a_film_and_its_people_agree(game, films):
    """Nobody has more than the ten credits that are shown, and all were grown up at the time."""
    for film in list(films.values())[::20]:
        released = value(game, "get_movie_details", movie_id=film)["release_date"]
        for kind, role in (("cast", "character"), ("crew", "job")):
            credited = value(game, f"get_movie_{kind}", movie_id=film)[kind]
            assert 6 <= len(credited) <= 10
            for each in credited:
                own = value(game, f"get_person_{kind}", person_id=each["id"])[kind]
                assert len(own) <= 10
                assert (film, each[role]) in {(one["id"], one[role]) for one in own}
                born = value(game, "get_person_details", person_id=each["id"])["birthday"]
                assert int(released[:4]) - int(born[:4]) > 16


def test_missing_entries_are_reported_as_by_the_movie_database(game):
    assert game.call("get_search_movie", movie_name="Nothing of that name") == (
        "ERROR | IndexError(list index out of range)"
    )
    assert game.call("get_search_person", person_name="Nobody") == "[]"
    for name, given in (("get_movie_details", {"movie_id": "1"}), ("get_person_cast", {"person_id": -5})):
        told = json.loads(game.call(name, **given))
        assert (told["success"], told["status_code"]) == (False, 34)
    assert game.call("get_movie_cast", person_id="1") == "ERROR | KeyError('movie_id')"


def test_the_replies_match_the_movie_database(game, films):
    film = next(iter(films.values()))

    def told(what):
        assert game.call(f"get_movie_{what}", movie_id=str(film)) == game.call(
            f"get_movie_{what}", movie_id=film
        )
        return value(game, f"get_movie_{what}", movie_id=film)

    kinds = {name: type(each) for name, each in told("details").items()}
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


def test_the_replies_of_people_match_the_movie_database(game, films):
    film = next(iter(films.values()))
    actor = value(game, "get_movie_cast", movie_id=film)["cast"][0]["id"]
    maker = value(game, "get_movie_crew", movie_id=film)["crew"][0]["id"]
    details = value(game, "get_person_details", person_id=actor)
    assert list(details) == ["name", "biography", "birthday", "place_of_birth"]
    assert list(value(game, "get_person_cast", person_id=actor)["cast"][0]) == ["id", "title", "character"]
    assert list(value(game, "get_person_crew", person_id=maker)["crew"][0]) == ["id", "title", "job"]
    ids = value(game, "get_person_external_ids", person_id=actor)
    assert list(ids) == ["imdb_id", "facebook_id", "instagram_id", "twitter_id"]


# --- the tasks ---


def test_no_question_uses_an_id_and_each_answer_was_shown(solutions):
    for goal, actions, seen in solutions.values():
        told = ""
        *calls, last = actions
        for action, observation in zip(calls, seen, strict=False):
            (given,) = ast.literal_eval(str(action).partition("Input: ")[2]).values()
            assert given in goal + told if "search" in action.name() else f"'id': {given}," in told
            told += observation
        assert_told(goal, last.answer, told)


def assert_told(goal, answer, told):
    """Check that an answer is in the replies, or follows from numbers in them."""
    if answer in ("Yes", "No"):
        return
    if "less its budget" in goal:
        budget, revenue = (int(re.search(rf"'{key}': (\d+)", told)[1]) for key in ("budget", "revenue"))
        assert answer == revenue - budget
        return
    for each in answer if isinstance(answer, tuple) else [answer]:
        assert repr(each) in told, goal


@pytest.mark.slow
@pytest.mark.parametrize("solutions", [len(MOVIE.task_ids)], indirect=True)
def test_yes_and_no_are_both_right_at_times(solutions):
    asked = [
        actions[-1].answer for goal, actions, _ in solutions.values() if "the same as the director" in goal
    ]
    assert {"Yes", "No"} == set(asked)


def test_an_answer_must_be_equal_and_of_the_type(game, solutions):
    answers = {task: actions[-1].answer for task, (_, actions, _) in solutions.items()}

    def worth(task, answer):
        return game.play(task, [f"Action: finish with Action Input: {{'answer': {answer!r}}}"]).reward

    number = next(n for n, answer in answers.items() if type(answer) is int)
    right = answers[number]
    assert [worth(number, each) for each in (right, float(right))] == [1.0, 1.0]
    assert [worth(number, each) for each in (str(right), right + 1, [right], None, 10**400)] == [0.0] * 5
    names = next(n for n, answer in answers.items() if type(answer) is tuple and len(answer) > 1)
    right = list(answers[names])
    assert [worth(names, each) for each in (right, right[::-1])] == [1.0, 1.0]
    assert [worth(names, each) for each in (right[1:], [*right, right[0]], str(right), [])] == [0.0] * 4
    text = next(n for n, answer in answers.items() if type(answer) is str)
    right = answers[text]
    assert worth(text, right) == 1.0
    assert [worth(text, each) for each in (f"{right}.", [right], None, "\0", "\ud800")] == [0.0] * 5


def test_a_search_is_quick(game):
    assert cpu_seconds(lambda: game.call("get_search_person", person_name="x " * 100), enough=0.05) <= 0.05
