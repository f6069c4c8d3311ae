"""Weather: answer questions about the weather with Open-Meteo's data (Ma et al., 2024, arXiv:2401.13178).

The task determines the user's date and location. The server rounds any positive reward up to 1.0. It does not
score a ``finish`` whose text contains "Invalid".
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from agentgym_gym.actions import Grammar
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._scalar_arguments import Date, Number, ShortText
from agentgym_gym.envs._tools import (
    QUIRKS,
    CheckValidActions,
    Finish,
    GetUserCurrentDate,
    GetUserCurrentLocation,
    Tool,
    ToolWire,
    launch_of,
    read_as_agentgym,
)

__all__ = [
    "WEATHER",
    "GetAirQualityLevel",
    "GetCurrentAirQualityIndex",
    "GetCurrentRain",
    "GetCurrentSnow",
    "GetCurrentTemp",
    "GetDistance",
    "GetElevation",
    "GetHistoricalAirQualityIndex",
    "GetHistoricalRain",
    "GetHistoricalSnow",
    "GetHistoricalTemp",
    "GetLatitudeLongitude",
    "GetRainForecast",
    "GetSnowForecast",
    "GetTempForecast",
]

_Latitude = Annotated[float, Number(-90, 90), "degrees north"]
_Longitude = Annotated[float, Number(-180, 180), "degrees east"]
_First = Annotated[str, Date(), "the first day"]
_Last = Annotated[str, Date(), "the last day, at most 30 days later"]
_Today = Annotated[str, Date(), "the current date"]
_Place = Annotated[str, ShortText("New York", "Shanghai", "São Paulo"), "the name of a place, such as a city"]
_Index = Annotated[float, Number(0, 1_000), "the air quality index"]


@dataclass(frozen=True, eq=False)
class GetHistoricalTemp(Tool):
    """Get the daily temperatures of days in the past."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetHistoricalRain(Tool):
    """Get the daily rainfall of days in the past."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetHistoricalSnow(Tool):
    """Get the daily snowfall of days in the past."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetSnowForecast(Tool):
    """Get the daily snowfall of days to come."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetCurrentSnow(Tool):
    """Get the snowfall of the current day."""

    latitude: _Latitude
    longitude: _Longitude
    current_date: _Today


@dataclass(frozen=True, eq=False)
class GetCurrentTemp(Tool):
    """Get the temperatures of the current day."""

    latitude: _Latitude
    longitude: _Longitude
    current_date: _Today


@dataclass(frozen=True, eq=False)
class GetLatitudeLongitude(Tool):
    """Find where a place is."""

    name_: _Place


@dataclass(frozen=True, eq=False)
class GetElevation(Tool):
    """Get the height of a point above the sea."""

    latitude: _Latitude
    longitude: _Longitude


@dataclass(frozen=True, eq=False)
class GetTempForecast(Tool):
    """Get the daily temperatures of days to come."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetRainForecast(Tool):
    """Get the daily rainfall of days to come."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetCurrentRain(Tool):
    """Get the rainfall of the current day."""

    latitude: _Latitude
    longitude: _Longitude
    current_date: _Today


@dataclass(frozen=True, eq=False)
class GetDistance(Tool):
    """Get the distance between two points in kilometres."""

    latitude1: _Latitude
    longitude1: _Longitude
    latitude2: _Latitude
    longitude2: _Longitude


@dataclass(frozen=True, eq=False)
class GetHistoricalAirQualityIndex(Tool):
    """Get the daily air quality index of days in the past."""

    latitude: _Latitude
    longitude: _Longitude
    start_date: _First
    end_date: _Last


@dataclass(frozen=True, eq=False)
class GetCurrentAirQualityIndex(Tool):
    """Get the air quality index of the current day."""

    latitude: _Latitude
    longitude: _Longitude
    current_date: _Today


@dataclass(frozen=True, eq=False)
class GetAirQualityLevel(Tool):
    """Say in words how good an air quality index is."""  # plain: prompt

    air_quality_index: _Index


_SHANGHAI = (31.22222, 121.45806)
_DAYS = ("2015-01-01", "2015-01-03")

_GRAMMAR = Grammar(
    [
        GetUserCurrentDate(),
        GetUserCurrentLocation(),
        GetLatitudeLongitude("Shanghai"),
        GetHistoricalTemp(*_SHANGHAI, *_DAYS),
        GetHistoricalRain(*_SHANGHAI, *_DAYS),
        GetHistoricalSnow(*_SHANGHAI, *_DAYS),
        GetCurrentTemp(*_SHANGHAI, "2015-01-04"),
        GetCurrentRain(*_SHANGHAI, "2015-01-04"),
        GetCurrentSnow(*_SHANGHAI, "2015-01-04"),
        GetTempForecast(*_SHANGHAI, "2015-01-05", "2015-01-06"),
        GetRainForecast(*_SHANGHAI, "2015-01-05", "2015-01-06"),
        GetSnowForecast(*_SHANGHAI, "2015-01-05", "2015-01-06"),
        GetElevation(*_SHANGHAI),
        GetDistance(*_SHANGHAI, 35.6895, 139.69171),
        GetHistoricalAirQualityIndex(*_SHANGHAI, *_DAYS),
        GetCurrentAirQualityIndex(*_SHANGHAI, "2015-01-04"),
        GetAirQualityLevel(35),
        CheckValidActions(),
        Finish(-0.1),
    ]
)

_RULES = """\
You answer a user's question about the weather by calling functions. The first message is the question; \
after each of your actions you are told what the function returned.

- The user's place and date are those of the task, not of today: ask for both before you rely on either.
- Take the latitude and longitude of a place from `get_latitude_longitude`, never from memory.
- Days in the past, the current day and days to come each have functions of their own. One call covers at \
most 30 days.
- Call `finish` with the answer when you know it: that ends the task and cannot be taken back. The answer \
must be of the type that the question asks for: the number 18.5 is not the text "18.5"."""

_LOCAL_QUIRKS = """\
- The weather is invented: it is computed from the place, the day and the seed, with the earth's seasons and \
climate zones. The cities are real, with rounded coordinates and heights. The 343 questions of 26 kinds are \
our own; AgentGym's answers are not correct here.
- Some 120 places have a name; others are found only by their coordinates. There is weather from 1940 to \
2099, on a grid of a tenth of a degree.
- A number as an answer may be off by 0.05, because the questions ask for one decimal place; on AgentGym's \
server it must be equal to the last digit. As there, 105 is not "105", and the order of a list does not count.
- Distances are along the great circle, to a metre; on AgentGym's server, on an ellipsoid, to every digit.
- `get_air_quality_level` has no gaps: 20.5 and 21 are fair, not extremely poor.
- Only the first `finish` is scored, and it ends the episode. On AgentGym's server any function that returns \
the answer scores, and an episode continues to pay after its end.
- The word "finish" ends an episode only as the function, not anywhere in the text.
- Nothing is evaluated: an `Action Input` that is not a plain value is refused as unreadable.
- A negative task id is refused; on AgentGym's server it counts from the end.
- An environment without a request for an hour is deleted; AgentGym's server deletes none.
- Errors of Open-Meteo have the same form and other words. No request is rejected for its rate."""

WEATHER = Environment(
    name="Weather",
    summary=(
        "Answer questions about the weather by calling functions (the tool tasks of AgentBoard, Ma "
        "et al., 2024, arXiv:2401.13178)."
    ),
    wire=ToolWire(),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=10,
    splits=make_splits(range(343), test=range(274, 343)),
    cheap_wins={
        **dict.fromkeys(
            ("answer 'Yes'", "answer 'No'"),
            "some questions are answered by yes or no, as 45 of AgentGym's 343",
        ),
        **dict.fromkeys(("answer 1", "answer 2", "answer 3"), "some questions ask for a small number"),
    },
    on_unknown="refuse",
    agentgym_readers={"react": read_as_agentgym},
    local_server="agentgym_servers.weather:SERVER",
    local_quirks=_LOCAL_QUIRKS,
    oracle="agentgym_servers._tool_oracles:WeatherOracle",
    quirks=f"""\
{QUIRKS}
- Any positive reward is rounded up to 1.0: one subgoal of two scores as much as both.
- Its server sends each call to Open-Meteo over the network. If that fails, or exceeds Open-Meteo's rate \
limit, the episode ends as a fault.""",
    launch=launch_of("weather"),
    transcript=(
        (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: What was the "
            "average temperature in Celsius yesterday? Please provide the answer as a number.\nGive me "
            "one action."
        ),
        "Action: get_user_current_date with Action Input: {}",
        "Observation: 2023-06-15\nGive me one action.",
        "Action: get_user_current_location with Action Input: {}",
        "Observation: New York\nGive me one action.",
    ),
)
