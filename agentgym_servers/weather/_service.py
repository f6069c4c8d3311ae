"""The functions of the Weather server, over the world's places and its climate."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.tools import ActionInput, AnswerTools, ToolError
from agentgym_servers.weather._climate import (
    Climate,
    Day,
    air_quality_level,
    distance_km,
    height_at,
    on_grid,
)
from agentgym_servers.weather._places import PLACES, City

if TYPE_CHECKING:
    from agentgym_servers.weather._world import WeatherTask

__all__ = ["FIRST_DAY", "LAST_DAY", "MOST_DAYS", "WeatherTools", "find_places"]

FIRST_DAY, LAST_DAY = date(1940, 1, 1), date(2099, 12, 31)
"""The first and the last day with weather data."""

MOST_DAYS = 30
"""The maximum number of days between the first and the last day of a request."""

_TOLERANCE = 0.05 + 1e-6  # half of the tenth that goals require, plus the error of floating point
_MAX_PLACES = 3
_MAX_NAME_CHARS = 100

_Column = Callable[[Day], object]
_NUMBERS: dict[str, dict[str, tuple[str, _Column]]] = {
    "temp": {
        "temperature_2m_max": ("°C", lambda day: day.highest),
        "temperature_2m_min": ("°C", lambda day: day.lowest),
        "temperature_2m_mean": ("°C", lambda day: day.mean),
    },
    "rain": {"rain_sum": ("mm", lambda day: day.rain)},
    "snow": {"snowfall_sum": ("cm", lambda day: day.snow)},
    "air_quality_index": {"european_aqi_pm2_5": ("EAQI", lambda day: day.air)},
}


class WeatherTools(AnswerTools):
    """The functions of one trial.

    Args:
        climate: The weather of the world.
        task: The task.
    """

    names = (
        "get_user_current_date",
        "get_user_current_location",
        "get_historical_temp",
        "get_historical_rain",
        "get_historical_snow",
        "get_snow_forecast",
        "get_current_snow",
        "get_current_temp",
        "get_latitude_longitude",
        "get_elevation",
        "get_temp_forecast",
        "get_rain_forecast",
        "get_current_rain",
        "get_distance",
        "get_historical_air_quality_index",
        "get_current_air_quality_index",
        "get_air_quality_level",
        "check_valid_actions",
        "finish",
    )

    def __init__(self, climate: Climate, task: WeatherTask) -> None:
        self.goal = task.goal
        self.answer = task.answer
        self._climate = climate
        self._today = task.today
        self._home = task.home

    def judge(self, answer: Any) -> float:
        """Return 1 for the right answer, else 0. Numbers may differ by half of a tenth."""
        if not _is_number(self.answer):
            return super().judge(answer)
        number = _number(answer) if _is_number(answer) else None
        return float(number is not None and abs(number - self.answer) <= _TOLERANCE)

    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function."""
        kind = name.removeprefix("get_")
        if kind == "user_current_date":
            return self._today.isoformat()
        if kind == "user_current_location":
            return self._home.name
        if kind in _OF_PLACES:
            return _OF_PLACES[kind](arguments)
        return self._weather(kind, arguments)

    def _weather(self, kind: str, arguments: ActionInput) -> object:
        """Return the weather of past days, of the current day, or of future days."""
        point = _point(arguments)
        if kind.startswith("current_"):
            first = last = _date(arguments["current_date"])
            return self._reply(kind.removeprefix("current_"), point, first, last)
        first, last = _date(arguments["start_date"]), _date(arguments["end_date"])
        past = kind.startswith("historical_")
        for name, day in (("start_date", first), ("end_date", last)):
            if past and day >= self._today:
                return f"Error: {name} should be earlier than current_date"
            if not past and day <= self._today:
                return f"Error: {name} should be later than current_date"
        return self._reply(kind.removeprefix("historical_").removesuffix("_forecast"), point, first, last)

    def _reply(self, kind: str, point: tuple[float, float] | str, first: date, last: date) -> object:
        if (last - first).days > MOST_DAYS:
            return (
                f"Error: one call covers at most {MOST_DAYS} days between start_date and end_date. Ask for a "
                "longer time in several calls."
            )
        if isinstance(point, str):
            return point
        if not FIRST_DAY <= first <= LAST_DAY or not FIRST_DAY <= last <= LAST_DAY:
            return _refusal(f"There is weather from {FIRST_DAY} to {LAST_DAY} only")
        if last < first:
            return _refusal("end_date must not be before start_date")
        columns = _NUMBERS[kind]
        days = self._climate.days(*point, first, (last - first).days + 1)
        noon = "T12:00" if kind == "air_quality_index" else ""
        return {
            "latitude": on_grid(point[0]),
            "longitude": on_grid(point[1]),
            "daily_units": {"time": "iso8601", **{name: unit for name, (unit, _) in columns.items()}},
            "daily": {
                "time": [f"{day.date}{noon}" for day in days],
                **{name: [column(day) for day in days] for name, (_, column) in columns.items()},
            },
        }


def find_places(name: object) -> dict[str, Any]:
    """Return the places with a name: up to three, the best known first.

    Raises:
        ToolError: There is none.
    """
    query = " ".join(str(name)[:_MAX_NAME_CHARS].split(",")[0].casefold().split())
    matches = [place for place in PLACES if place.name.casefold() == query]
    if len(query) > 1:
        matches += [p for p in PLACES if p.name.casefold().startswith(query) and p not in matches]
    if not matches:
        raise ToolError("KeyError", "'results'")
    return {"results": [_place_record(place) for place in matches[:_MAX_PLACES]]}


def _place_record(place: City) -> dict[str, Any]:
    return {
        "name": place.name,
        "latitude": place.latitude,
        "longitude": place.longitude,
        "country_code": place.country,
    }


def _distance(arguments: ActionInput) -> float:
    degrees = []
    for number in "12":
        for name, most in (("latitude", 90), ("longitude", 180)):
            value = _number(arguments[name + number])
            if value is None or abs(value) > most:
                raise ToolError("ValueError", f"{name}{number} must be a number from -{most} to {most}")
            degrees.append(value)
    return distance_km(*degrees)


def _level(arguments: ActionInput) -> str:
    index = arguments["air_quality_index"]
    if not _is_number(index):
        raise ToolError("TypeError", "air_quality_index must be a number")
    return air_quality_level(index)


def _elevation(arguments: ActionInput) -> object:
    point = _point(arguments)
    return point if isinstance(point, str) else {"elevation": [height_at(*point)]}


_OF_PLACES: dict[str, Callable[[ActionInput], object]] = {
    "latitude_longitude": lambda arguments: find_places(arguments["name"]),
    "elevation": _elevation,
    "distance": _distance,
    "air_quality_level": _level,
}


def _point(arguments: ActionInput) -> tuple[float, float] | str:
    """Return the requested point, or the observation if it does not exist."""
    point = []
    for name, most in (("latitude", 90), ("longitude", 180)):
        value = _number(arguments[name])
        if value is None:
            return _refusal(f"{name} must be a number")
        if abs(value) > most:
            return _refusal(f"{name} must be in the range of -{most} to {most}°. Given: {value:g}.")
        point.append(value)
    return point[0], point[1]


def _refusal(reason: str) -> str:
    return f'{{"error":true,"reason":"{reason}"}}'


def _number(value: object) -> float | None:
    """Return a finite number, which the agent may write as text; None for any other value."""
    if (
        isinstance(value, bool)
        or not isinstance(value, (int, float, str))
        or len(str(value)) > _MAX_NAME_CHARS
    ):
        return None
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _date(value: object) -> date:
    """Parse a date.

    Raises:
        ToolError: The value is not a date.
    """
    if not isinstance(value, str):
        raise ToolError("TypeError", f"strptime() argument 1 must be str, not {type(value).__name__}")
    try:
        return datetime.strptime(value, "%Y-%m-%d").date()  # noqa: DTZ007 - a day, which has no zone
    except ValueError:
        excerpt = value[:_MAX_NAME_CHARS]
        raise ToolError("ValueError", f"time data {excerpt!r} does not match format '%Y-%m-%d'") from None
