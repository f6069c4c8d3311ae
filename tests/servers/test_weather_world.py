"""The Weather world: its weather, its functions, its tasks and their solutions, without a server."""

from __future__ import annotations

import contextlib
import hashlib
import json
import math
import re
from datetime import date
from itertools import pairwise

import pytest

from agentgym_gym.envs.weather import WEATHER
from agentgym_servers._frame.tools import ActionInput, ToolError
from agentgym_servers.weather._climate import Climate, air_quality_level, distance_km, height_at
from agentgym_servers.weather._places import CITIES, PLACES
from agentgym_servers.weather._service import WeatherTools, find_places
from agentgym_servers.weather._world import world_of
from clock import cpu_seconds

DIGEST = "312c50fbf4ed9daa60da4ec1880572b4b7e5f9c0c269fce8076e9c204f5e632b"

TODAY = world_of(0).tasks[0].today


def tools_of(task_id: int = 0, seed: int = 0) -> WeatherTools:
    world = world_of(seed)
    return WeatherTools(world.setting, world.tasks[task_id])


def call(name: str, **arguments: object) -> object:
    return tools_of().call(name, ActionInput(arguments))


def played(seed: int, task_id: int) -> tuple[list, object, float]:
    """Return what the calls of a solution return, what its end returns, and the score."""
    tools, task = tools_of(task_id, seed), world_of(seed).tasks[task_id]
    *calls, (last, finish) = task.solution
    assert last == "finish"
    told = [tools.call(name, ActionInput(arguments)) for name, arguments in calls]
    return told, *tools.finish(ActionInput(finish))


# --- the world ---


def test_the_world_is_the_same_everywhere():
    world = world_of(0)
    days = [
        world.setting.day(place.latitude, place.longitude, date(1990 + n, 1 + n % 12, 1 + n % 28))
        for n, place in enumerate(PLACES)
    ]
    said = repr(
        (days, [(t.goal, t.today, t.home.name, t.answer, tuple(map(tuple, t.solution))) for t in world.tasks])
    )
    assert hashlib.sha256(said.encode()).hexdigest() == DIGEST


def test_there_is_a_task_of_its_own_for_each_id():
    tasks = world_of(0).tasks
    assert range(len(tasks)) == WEATHER.splits["all"]
    assert len({task.goal for task in tasks}) == len(tasks)
    assert len({json.dumps(task.answer) for task in tasks}) > 200


def test_another_seed_is_another_world():
    one, other = world_of(0), world_of(1)
    same = [1 for task, another in zip(one.tasks, other.tasks, strict=True) if task == another]
    assert not same
    here = (52.5, 13.4, date(2023, 5, 1))
    assert one.setting.day(*here) != other.setting.day(*here)


def test_it_is_made_quickly():
    assert cpu_seconds(lambda: world_of.__wrapped__(1), enough=5) <= 5


@pytest.mark.parametrize("city", CITIES[::12], ids=lambda city: city.name)
def test_the_weather_is_that_of_the_earth(city):
    days = Climate(0).days(city.latitude, city.longitude, date(2023, 1, 1), 365)
    assert all(day.lowest < day.mean < day.highest for day in days)
    assert all(abs(one.mean - next_.mean) < 9 for one, next_ in pairwise(days))
    assert -50 < min(day.lowest for day in days) < max(day.highest for day in days) < 55
    assert 30 < sum(day.rain + day.snow > 0 for day in days) < 250
    assert all(day.snow == 0 for day in days if day.mean >= 3.1)
    assert all(day.rain == 0 for day in days if day.mean <= -1.1)
    assert min(day.air for day in days) > 0
    summer = sum(day.mean for day in days[170:230]) - sum(day.mean for day in days[:60])
    assert abs(city.latitude) < 25 or (summer > 0) == (city.latitude > 0)


def test_places_side_by_side_have_like_weather():
    here, there = (Climate(0).day(lat, 2.3, date(2023, 6, 1)) for lat in (48.8, 48.9))
    assert abs(here.mean - there.mean) < 1
    assert Climate(0).day(48.8, 180, date(2023, 6, 1)) == Climate(0).day(48.8, -180, date(2023, 6, 1))


# --- facts of geography ---


@pytest.mark.parametrize(
    ("ends", "km"),
    [
        ((40.71, -74.01, 51.51, -0.13), 5570),  # New York to London
        ((0, 0, 0, 180), math.pi * 6371.0088),
        ((90, 0, -90, 0), math.pi * 6371.0088),
        ((12, 34, 12, 34), 0),
    ],
)
def test_distances_are_those_of_the_globe(ends, km):
    assert distance_km(*ends) == pytest.approx(km, rel=0.001)
    assert distance_km(*ends) == distance_km(*ends[2:], *ends[:2])


def test_a_place_is_as_high_as_it_is_and_between_two_it_is_between():
    assert [height_at(p.latitude, p.longitude) for p in PLACES] == [p.height for p in PLACES]
    assert 0 <= height_at(0, -150) <= 4000


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
def test_air_quality_levels_have_no_gaps(index, level):
    assert air_quality_level(index) == level
    assert call("get_air_quality_level", air_quality_index=index) == level


def test_a_name_finds_the_city_first_and_its_namesakes_after_it():
    assert find_places(" new york ")["results"] == [
        {"name": "New York", "latitude": 40.71, "longitude": -74.01, "country_code": "US"}
    ]
    assert [found["country_code"] for found in find_places("Paris, France")["results"]] == ["FR", "US"]
    assert len(find_places("Ber")["results"]) == 3
    assert all(find_places(city.name)["results"][0]["latitude"] == city.latitude for city in CITIES)
    with pytest.raises(ToolError) as missing:
        find_places("Atlantis")
    assert (missing.value.kind, missing.value.text) == ("KeyError", "'results'")


# --- the functions ---

HERE = {"latitude": 31.22222, "longitude": 121.45806}
PAST = {"start_date": "2015-01-01", "end_date": "2015-01-03"}
TO_COME = {"start_date": "2050-01-01", "end_date": "2050-01-03"}


def test_the_reply_is_that_of_open_meteo():
    told = call("get_historical_temp", **HERE, **PAST)
    assert list(told) == ["latitude", "longitude", "daily_units", "daily"]
    assert (told["latitude"], told["longitude"]) == (31.2, 121.5)
    names = ["temperature_2m_max", "temperature_2m_min", "temperature_2m_mean"]
    assert told["daily_units"] == {"time": "iso8601", **dict.fromkeys(names, "°C")}
    assert told["daily"]["time"] == ["2015-01-01", "2015-01-02", "2015-01-03"]
    assert {name: list(map(type, told["daily"][name])) for name in names} == dict.fromkeys(names, [float] * 3)
    rain, snow, air = (
        call(f"get_historical_{kind}", **HERE, **PAST) for kind in ("rain", "snow", "air_quality_index")
    )
    assert (rain["daily_units"]["rain_sum"], snow["daily_units"]["snowfall_sum"]) == ("mm", "cm")
    assert air["daily"]["time"][0] == "2015-01-01T12:00"
    assert [type(index) for index in air["daily"]["european_aqi_pm2_5"]] == [int] * 3
    assert type(call("get_elevation", **HERE)["elevation"][0]) is float


@pytest.mark.parametrize("kind", ["temp", "rain", "snow"])
def test_past_present_and_future_are_of_one_weather(kind):
    dates = {"start_date": "2050-01-02", "end_date": "2050-01-02"}
    assert call(f"get_current_{kind}", **HERE, current_date="2050-01-02") == call(
        f"get_{kind}_forecast", **HERE, **dates
    )


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("get_historical_temp", {**HERE, **TO_COME}, "Error: start_date should be earlier"),
        (
            "get_historical_rain",
            {**HERE, **PAST, "end_date": str(TODAY)},
            "Error: end_date should be earlier",
        ),
        ("get_snow_forecast", {**HERE, **PAST}, "Error: start_date should be later"),
        (
            "get_temp_forecast",
            {**HERE, **TO_COME, "start_date": str(TODAY)},
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
def test_a_question_without_an_answer_is_told_why(name, arguments, said):
    told = call(name, **arguments)
    assert isinstance(told, str)
    assert told.startswith(said)
    if told.startswith("{"):
        assert json.loads(told)["error"] is True


def test_thirty_days_are_told_in_one_call():
    told = call("get_historical_temp", **HERE, start_date="2015-01-01", end_date="2015-01-31")
    assert len(told["daily"]["time"]) == 31


ODD = [
    None,
    True,
    "",
    "\0",
    "\ud800",
    "x" * 100_000,
    10**400,
    -1e308,
    float("nan"),
    float("inf"),
    [],
    {},
    [[1]],
]


@pytest.mark.parametrize("odd", ODD, ids=range(len(ODD)))
def test_no_argument_does_harm(odd):
    tools = tools_of()
    sound = {**HERE, **PAST, "latitude1": 1, "longitude1": 1, "latitude2": 1, "longitude2": 1, "name": "Oslo"}
    for name in WeatherTools.names[:-2]:
        for key in [*sound, "current_date", "air_quality_index"]:
            try:
                told = tools.call(name, ActionInput({**sound, key: odd}))
            except ToolError as error:
                told = error.text
            assert len(str(told)) < 1000
        with contextlib.suppress(ToolError):
            tools.call(name, ActionInput(odd))


# --- the tasks ---


@pytest.mark.parametrize("seed", [0, *(pytest.param(n, marks=pytest.mark.slow) for n in range(1, 6))])
def test_the_solution_of_every_task_reaches_the_top_within_the_turns(seed):
    for task_id, task in enumerate(world_of(seed).tasks):
        told, _, score = played(seed, task_id)
        assert score == 1.0, task
        assert len(task.solution) <= WEATHER.max_turns
        assert not [text for text in told if "error" in str(text).lower()], task


def daily(reply: dict) -> list:
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
"""How an answer follows from the last reply, by what the goal says."""


@pytest.mark.parametrize("words", ANSWERS)
def test_the_answer_is_what_the_replies_say(words):
    found = 0
    for task_id, task in enumerate(world_of(0).tasks):
        told = re.search(words, task.goal)
        if told:
            replies, _, _ = played(0, task_id)
            assert tools_of(task_id).judge(ANSWERS[words](replies[-1], told)) == 1.0, task
            found += 1
    assert found >= 10


def test_what_the_goal_says_is_enough():
    """A city of a goal or the user's own: nothing else is looked up."""
    for task in world_of(0).tasks:
        for name, arguments in task.solution:
            if name == "get_latitude_longitude":
                place = arguments["name"]
                assert place in task.goal or (
                    place == task.home.name and ("get_user_current_location", {}) in task.solution
                )


def by_answer(kind: type) -> int:
    return next(n for n, task in enumerate(world_of(0).tasks) if type(task.answer) is kind)


def test_a_number_may_be_rounded_and_must_be_a_number():
    task_id = by_answer(float)
    right = world_of(0).tasks[task_id].answer
    worth = tools_of(task_id).judge
    assert [worth(right), worth(right + 0.05), worth(right - 0.05), worth(round(right, 1))] == [1.0] * 4
    wrong = [right + 0.06, right - 0.06, str(right), [right], None, True, 10**400, math.nan, math.inf, "\0"]
    assert [worth(each) for each in wrong] == [0.0] * len(wrong)


def test_a_list_may_be_in_any_order():
    task_id = next(
        n for n, task in enumerate(world_of(0).tasks) if type(task.answer) is list and len(task.answer) > 1
    )
    right = world_of(0).tasks[task_id].answer
    worth = tools_of(task_id)
    assert worth.finish(ActionInput({"answer": right[::-1]}))[1] == 1.0
    wrong = [right[1:], [*right, right[0]], str(right), tuple(right), [], None]
    assert [worth.finish(ActionInput({"answer": each}))[1] for each in wrong] == [0.0] * len(wrong)
    with pytest.raises(ToolError):
        worth.finish(ActionInput({"answer": [1, "a"]}))


def test_a_text_must_be_equal():
    task_id = by_answer(str)
    right = world_of(0).tasks[task_id].answer
    assert [tools_of(task_id).judge(each) for each in (right, right.upper() + "!", [right], 1)] == [
        1.0,
        0,
        0,
        0,
    ]


def test_the_longest_call_is_quick():
    tools = tools_of()
    longest = ActionInput({**HERE, "start_date": "2015-01-01", "end_date": "2015-01-31"})
    assert cpu_seconds(lambda: tools.call("get_historical_temp", longest), enough=0.05) <= 0.05
