"""What the functions of Weather return, and which answers are right."""

from __future__ import annotations

import ast
import json
import re
from datetime import date, timedelta
from itertools import pairwise

import pytest

from agentgym_gym import find
from clock import cpu_seconds
from local_game import LocalGame

WEATHER = find("Weather")
CITIES = ("Amsterdam", "Birmingham", "Casablanca", "Hanoi", "Lagos", "Mumbai", "Quito", "Sydney")
TODAY = "2023-07-21"  # of the first task


@pytest.fixture(scope="module")
def shared():
    with LocalGame("Weather") as game:
        yield game


@pytest.fixture
def game(shared):
    shared.reset(0)
    return shared


@pytest.fixture(scope="module", params=[60, pytest.param(len(WEATHER.task_ids), marks=pytest.mark.slow)])
def solutions(shared, request):
    """The goal of each task, the actions that win it, and what is observed."""
    return {
        task: (shared.reset(task).goal, shared.win(task)[0], shared.seen[1:])
        for task in WEATHER.task_ids[: request.param]
    }


@pytest.fixture(scope="module")
def answers(solutions):
    return {task: actions[-1].answer for task, (_, actions, _) in solutions.items()}


def value(game, function, **arguments):
    return ast.literal_eval(game.call(function, **arguments))


def place(game, name):
    """Return the coordinates of a place, as arguments."""
    found = value(game, "get_latitude_longitude", name=name)["results"][0]
    return {"latitude": found["latitude"], "longitude": found["longitude"]}


def worth(game, task, answer):
    return game.play(task, [f"Action: finish with Action Input: {{'answer': {answer!r}}}"]).reward


# --- the weather ---


def year(game, point):
    """Return the columns of a place's weather in a year."""
    columns = {}
    days = [date(2022, 1, 1) + timedelta(n) for n in range(0, 365, 31)]
    for kind in ("temp", "rain", "snow", "air_quality_index"):
        for first in days:
            last = min(first + timedelta(30), date(2022, 12, 31))
            dates = {"start_date": str(first), "end_date": str(last)}
            told = value(game, f"get_historical_{kind}", **point, **dates)
            for name, numbers in told["daily"].items():
                columns.setdefault(name, []).extend(numbers)
    return columns


@pytest.mark.parametrize(
    "city", [CITIES[0], *(pytest.param(each, marks=pytest.mark.slow) for each in CITIES[1:])]
)
def test_the_weather_is_as_on_earth(game, city):
    point = place(game, city)
    told = year(game, point)
    low, mean, high = (told[f"temperature_2m_{name}"] for name in ("min", "mean", "max"))
    rain, snow, air = told["rain_sum"], told["snowfall_sum"], told["european_aqi_pm2_5"]
    assert len(low) == len(rain) == len(snow) == len(air) == 365
    assert all(one < other < another for one, other, another in zip(low, mean, high, strict=True))
    assert all(abs(one - other) < 9 for one, other in pairwise(mean))
    assert -50 < min(low) < max(high) < 55
    assert 30 < sum(one + other > 0 for one, other in zip(rain, snow, strict=True)) < 250
    assert all(each == 0 for each, warm in zip(snow, mean, strict=True) if warm >= 3.1)
    assert all(each == 0 for each, warm in zip(rain, mean, strict=True) if warm <= -1.1)
    assert min(air) > 0
    summer = sum(mean[170:230]) - sum(mean[:60])
    assert abs(point["latitude"]) < 25 or (summer > 0) == (point["latitude"] > 0)


def test_places_side_by_side_have_like_weather(game):
    def told(latitude, longitude):
        point = {"latitude": latitude, "longitude": longitude}
        return value(game, "get_current_temp", **point, current_date="2023-06-01")["daily"]

    here, there = (told(latitude, 2.3)["temperature_2m_mean"][0] for latitude in (48.8, 48.9))
    assert abs(here - there) < 1
    assert told(48.8, 180) == told(48.8, -180)


# --- facts of geography ---


@pytest.mark.parametrize(
    ("ends", "km"),
    [
        ((40.71, -74.01, 51.51, -0.13), 5570),  # New York to London
        ((0, 0, 0, 180), 20015),  # half of the way around
        ((90, 0, -90, 0), 20015),
        ((12, 34, 12, 34), 0),
    ],
)
def test_distances_are_measured_on_the_globe(game, ends, km):
    names = ("latitude1", "longitude1", "latitude2", "longitude2")
    there, back = (
        value(game, "get_distance", **dict(zip(names, each, strict=True)))
        for each in (ends, (*ends[2:], *ends[:2]))
    )
    assert there == pytest.approx(km, rel=0.001)
    assert there == back


def test_a_place_is_as_high_as_it_is_and_between_two_it_is_between(game):
    for name, height in (("Amsterdam", 3), ("Belgrade", 117), ("Brussels", 28), ("Casablanca", 30)):
        assert value(game, "get_elevation", **place(game, name)) == {"elevation": [height]}
    (height,) = value(game, "get_elevation", latitude=0, longitude=-150)["elevation"]
    assert 0 <= height <= 4000


@pytest.mark.parametrize(
    ("index", "level"),
    [
        (0, "good"),
        (20, "good"),
        (20.5, "fair"),
        (21, "fair"),
        (60, "moderate"),
        (61, "poor"),
        (100, "very poor"),
        (101, "extremely poor"),
        (10**400, "extremely poor"),
    ],
)
def test_air_quality_levels_have_no_gaps(game, index, level):
    assert game.call("get_air_quality_level", air_quality_index=index) == level


def test_a_name_finds_the_city_first_and_its_namesakes_after_it(game):
    def found(name):
        return value(game, "get_latitude_longitude", name=name)["results"]

    assert found(" new york ") == [
        {"name": "New York", "latitude": 40.71, "longitude": -74.01, "country_code": "US"}
    ]
    assert [each["country_code"] for each in found("Paris, France")] == ["FR", "US"]
    assert len(found("Ber")) == 3
    assert game.call("get_latitude_longitude", name="Atlantis") == "ERROR | KeyError('results')"


# --- the functions ---

HERE = {"latitude": 31.22222, "longitude": 121.45806}
PAST = {"start_date": "2015-01-01", "end_date": "2015-01-03"}
TO_COME = {"start_date": "2050-01-01", "end_date": "2050-01-03"}


def test_the_reply_matches_open_meteo(game):
    told = value(game, "get_historical_temp", **HERE, **PAST)
    assert list(told) == ["latitude", "longitude", "daily_units", "daily"]
    assert (told["latitude"], told["longitude"]) == (31.2, 121.5)
    names = ["temperature_2m_max", "temperature_2m_min", "temperature_2m_mean"]
    assert told["daily_units"] == {"time": "iso8601", **dict.fromkeys(names, "°C")}
    assert told["daily"]["time"] == ["2015-01-01", "2015-01-02", "2015-01-03"]
    assert {name: list(map(type, told["daily"][name])) for name in names} == dict.fromkeys(names, [float] * 3)
    rain, snow, air = (
        value(game, f"get_historical_{kind}", **HERE, **PAST)
        for kind in ("rain", "snow", "air_quality_index")
    )
    assert (rain["daily_units"]["rain_sum"], snow["daily_units"]["snowfall_sum"]) == ("mm", "cm")
    assert air["daily"]["time"][0] == "2015-01-01T12:00"
    assert [type(index) for index in air["daily"]["european_aqi_pm2_5"]] == [int] * 3
    assert type(value(game, "get_elevation", **HERE)["elevation"][0]) is float


@pytest.mark.parametrize("kind", ["temp", "rain", "snow"])
def test_past_present_and_future_are_of_one_weather(game, kind):
    dates = {"start_date": "2050-01-02", "end_date": "2050-01-02"}
    assert game.call(f"get_current_{kind}", **HERE, current_date="2050-01-02") == game.call(
        f"get_{kind}_forecast", **HERE, **dates
    )


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("get_historical_temp", {**HERE, **TO_COME}, "Error: start_date should be earlier"),
        (
            "get_historical_rain",
            {**HERE, **PAST, "end_date": TODAY},
            "Error: end_date should be earlier",
        ),
        ("get_snow_forecast", {**HERE, **PAST}, "Error: start_date should be later"),
        (
            "get_temp_forecast",
            {**HERE, **TO_COME, "start_date": TODAY},
            "Error: start_date should be lat",
        ),
        (
            "get_historical_snow",
            {**HERE, **PAST, "end_date": "2015-02-01"},
            "Error: one call covers at most 30",
        ),
        (
            "get_historical_temp",
            {**HERE, **PAST, "latitude": 90.5},
            '{"error":true,"reason":"latitude must be',
        ),
        (
            "get_historical_temp",
            {**HERE, **PAST, "longitude": "x"},
            '{"error":true,"reason":"longitude must be',
        ),
        ("get_elevation", {**HERE, "latitude": None}, '{"error":true,"reason":"latitude must be a number'),
        (
            "get_historical_rain",
            {**HERE, **PAST, "end_date": "2014-12-31"},
            '{"error":true,"reason":"end_date',
        ),
        (
            "get_current_temp",
            {**HERE, "current_date": "1939-12-31"},
            '{"error":true,"reason":"There is weather',
        ),
        (
            "get_rain_forecast",
            {**HERE, "start_date": "9999-12-01", "end_date": "9999-12-31"},
            '{"error":true',
        ),
    ],
)
def test_a_question_without_an_answer_returns_the_reason(game, name, arguments, said):
    assert game.call("get_user_current_date") == TODAY
    told = game.call(name, **arguments)
    assert told.startswith(said)
    if told.startswith("{"):
        assert json.loads(told)["error"] is True


def test_one_call_returns_thirty_days(game):
    told = value(game, "get_historical_temp", **HERE, start_date="2015-01-01", end_date="2015-01-31")
    assert len(told["daily"]["time"]) == 31


# --- the tasks ---


def daily(reply):
    (numbers,) = [numbers for name, numbers in reply["daily"].items() if name != "time"]
    return numbers


ANSWERS = {
    r"average temperature in Celsius .* (ago|yesterday)\?": lambda r, m: r["daily"]["temperature_2m_mean"][0],
    r"highest temperature in Celsius .* last year\?": lambda r, m: r["daily"]["temperature_2m_max"][0],
    r"millimetres of rain fell": lambda r, m: sum(daily(r)),
    r"centimetres of snow fell .* over": lambda r, m: sum(daily(r)),
    r"any rain": lambda r, m: "Yes" if daily(r)[0] else "No",
    r"more than (\d+) mm of rain": lambda r, m: sum(x > int(m[1]) for x in daily(r)),
    r"rise above (-?\d+)": lambda r, m: [
        day
        for day, top in zip(r["daily"]["time"], r["daily"]["temperature_2m_max"], strict=True)
        if top > int(m[1])
    ],
    r"the most snow": lambda r, m: r["daily"]["time"][daily(r).index(max(daily(r)))],
    r"metres above the sea is": lambda r, m: r["elevation"][0],
    r"How many kilometres": lambda r, m: r,
    r"air quality index .* (today|on \S+)\?": lambda r, m: daily(r)[0],
    r"air quality level .* (ago|yesterday|today)": lambda r, m: r,
    r"lowest and the highest": lambda r, m: (
        r["daily"]["temperature_2m_max"][0] - r["daily"]["temperature_2m_min"][0]
    ),
    r"one with the lowest temperature": lambda r, m: min(
        zip(r["daily"]["temperature_2m_min"], r["daily"]["time"], strict=True)
    )[1],
    r"mean of the average temperatures": lambda r, m: (
        sum(r["daily"]["temperature_2m_mean"]) / len(r["daily"]["time"])
    ),
}
"""How an answer follows from the last reply, by the goal."""


@pytest.mark.parametrize("words", ANSWERS)
def test_the_answer_follows_from_the_replies(shared, solutions, words):
    found = 0
    for task, (goal, _, seen) in solutions.items():
        if match := re.search(words, goal):
            reply = seen[-2].removeprefix("Observation: ").removesuffix("\nGive me one action.")
            if "level" not in words:
                reply = ast.literal_eval(reply)
            assert worth(shared, task, ANSWERS[words](reply, match)) == 1.0, goal
            found += 1
    assert found >= len(solutions) // 30


def test_the_goal_is_enough(solutions):
    """A city of a goal or the user's own: nothing else is looked up."""
    for goal, actions, seen in solutions.values():
        told = goal
        for action, observation in zip(actions, seen, strict=True):
            if action.name() == "get_latitude_longitude":
                assert action.name_ in told
            if action.name() == "get_user_current_location":
                told += observation


def test_a_number_may_be_rounded_and_must_be_a_number(shared, answers):
    task, right = next((task, each) for task, each in answers.items() if type(each) is float)
    assert [worth(shared, task, right + more) for more in (0, 0.05, -0.05)] == [1.0] * 3
    wrong = [right + 0.06, right - 0.06, str(right), [right], None, True, 10**400, "\0"]
    assert [worth(shared, task, each) for each in wrong] == [0.0] * len(wrong)
    infinite = "Action: finish with Action Input: {'answer': 1e999}"
    assert shared.play(task, [infinite]).reward == 0


def test_a_list_may_be_in_any_order(shared, answers):
    task, right = next(
        (task, list(each)) for task, each in answers.items() if type(each) is tuple and len(each) > 1
    )
    assert worth(shared, task, right[::-1]) == 1.0
    wrong = [right[1:], [*right, right[0]], str(right), tuple(right), [], None, [1, "a"]]
    assert [worth(shared, task, each) for each in wrong] == [0.0] * len(wrong)


def test_a_text_must_be_equal(shared, answers):
    task, right = next((task, each) for task, each in answers.items() if type(each) is str)
    assert [worth(shared, task, each) for each in (right, f"{right.upper()}!", [right], 1)] == [1, 0, 0, 0]


def test_the_longest_call_is_quick(game):
    dates = {"start_date": "2015-01-01", "end_date": "2015-01-31"}
    assert cpu_seconds(lambda: game.call("get_historical_temp", **HERE, **dates), enough=0.05) <= 0.05
