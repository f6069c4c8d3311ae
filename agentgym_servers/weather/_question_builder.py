"""The building blocks of Weather's questions: random users, places and dates, look-up calls, and reasons."""

from __future__ import annotations

import math
from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.tool_tasks import FunctionCall, QuestionBuilder, listed
from agentgym_servers.weather._climate import distance_km, height_at
from agentgym_servers.weather._places import CITIES, City

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.weather._climate import Climate, Day

__all__ = [
    "NUMBER",
    "WeatherQuestionBuilder",
    "added",
    "compared",
    "dated",
    "days_counted",
    "exact_sum",
]

NUMBER = "Please provide the answer as a number, to one decimal place."

_FIRST = date(2021, 1, 1)
_DAYS = 1095  # of three years; none of their dates is a 29 February
_YEAR = 365  # days, of the shorter years

_NOUNS = {"temp": "temperature", "rain": "rain", "snow": "snow", "air_quality_index": "air quality index"}


class WeatherQuestionBuilder(QuestionBuilder):
    """Draws the user, places and dates, and records the calls that look up the weather.

    Args:
        draw: The source of random draws.
        climate: The weather of the world.

    Attributes:
        today: The user's date.
        home: The user's city.
    """

    def __init__(self, draw: Draw, climate: Climate) -> None:
        super().__init__(draw)
        self.today = _FIRST + timedelta(draw.below(_DAYS))
        self.home, *self._unused = draw.some(CITIES, 5)
        self._climate = climate
        self.record("get_user_current_date", "today's date")
        self.found(f"Today is {self.today}.")

    def place(self) -> City:
        """Return an unused place, which the goal names."""
        return self._unused.pop()

    def somewhere(self) -> tuple[City, str]:
        """Return a place and its phrase in the goal: a named place, or the user's location."""
        if self.draw.chance(0.4):
            return self.home, "where I am now"
        place = self.place()
        return place, f"in {place.name}"

    def day(self, offset: int) -> date:
        """Return the date at an offset in days from today."""
        return self.today + timedelta(offset)

    def temperatures(self, place: City, first: int, last: int) -> list[Day]:
        """Look up days by their offsets from today: both past, both today, or both future."""
        return self._days("temp", place, first, last)

    def rain(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the rain of such days."""
        return self._days("rain", place, first, last)

    def snow(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the snow of such days."""
        return self._days("snow", place, first, last)

    def air(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the air quality of such days, none in the future."""
        return self._days("air_quality_index", place, first, last)

    def height(self, place: City) -> float:
        """Look up the height of a place."""
        where = self._where(place)
        self.record("get_elevation", f"the height of {self._name(place)}", **where)
        height = height_at(place.latitude, place.longitude)
        self.found(f"The height of {self._name(place)} is {height}.")
        return height

    def distance(self, one: City, other: City) -> float:
        """Look up the distance between two places, in kilometres."""
        ends: list[float] = []
        arguments = {}
        for number, place in enumerate((one, other), 1):
            for name, degrees in self._where(place).items():
                arguments[f"{name}{number}"] = degrees
                ends.append(degrees)
        names = f"{self._name(one)} and {self._name(other)}"
        self.record("get_distance", f"the distance between {names}", **arguments)
        distance = distance_km(*ends)
        self.found(f"The distance between {names} is {distance}.")
        return distance

    def level(self, index: int) -> None:
        """Look up the level of an air quality index."""
        self.found(f"The air quality index is {index}.")
        self.record("get_air_quality_level", "the level of that index", air_quality_index=index)

    def same_day_last_year(self) -> int:
        """Return the offset in days from today to the same date last year."""
        return (self.today.replace(year=self.today.year - 1) - self.today).days

    def _days(self, kind: str, place: City, first: int, last: int) -> list[Day]:
        where = self._where(place)
        noun = f"{_NOUNS[kind]} of {self._name(place)}"
        if first == last == 0:
            self.record(f"get_current_{kind}", f"today's {noun}", **where, current_date=str(self.today))
        else:
            name, when = f"get_{kind}_forecast", "coming"
            if last < 0:
                name, when = f"get_historical_{kind}", "past"
            start, end = self.day(first), self.day(last)
            span = f": {start} ({_relative(first)})" + (
                f" to {end} ({_relative(last)})" if end > start else ""
            )
            self.record(name, f"the {when} {noun}", span, **where, start_date=str(start), end_date=str(end))
        return self._climate.days(place.latitude, place.longitude, self.day(first), last - first + 1)

    def _where(self, place: City) -> dict[str, Any]:
        """Look up the coordinates of a place, once."""
        if place is self.home and not self._has_called("get_user_current_location"):
            self.record("get_user_current_location", "the user's city")
            self.found(f"The user's city is {place.name}.")
        if not self._has_called("get_latitude_longitude", name=place.name):
            name = self._name(place)
            self.record("get_latitude_longitude", f"the coordinates of {name}", name=place.name)
            self.found(f"{name[0].upper()}{name[1:]} is at {place.latitude}, {place.longitude}.")
        return {"latitude": place.latitude, "longitude": place.longitude}

    def _name(self, place: City) -> str:
        """Return a place in the words of the goal, which does not name the user's city."""
        return "the user's city" if place is self.home else place.name

    def _has_called(self, name: str, /, **arguments: Any) -> bool:
        return FunctionCall(name, arguments) in self.calls


def _relative(offset: int) -> str:
    """Return an offset in days from today in words."""
    count = abs(offset)
    if count >= _YEAR:
        return "a year ago"
    if count == 1:
        return "yesterday" if offset < 0 else "tomorrow"
    return f"{count} days ago" if offset < 0 else f"in {count} days"


def exact_sum(numbers: Iterable[float]) -> float:
    """Return a sum, to two decimal places."""
    return round(math.fsum(numbers), 2)


def days_counted(count: int) -> str:
    """Return a number of listed days."""
    return "That is 1 day" if count == 1 else f"These are {count} days"


def dated(days: Iterable[Day], value: Callable[[Day], float]) -> str:
    """Return the dates of days, each with a value."""
    return listed(f"{day.date} {value(day)}" for day in days)


def added(noun: str, numbers: Iterable[float], total: float) -> str:
    """Return a sum of daily values, without zeros."""
    return f"The {noun}: {' + '.join(str(number) for number in numbers if number) or '0'} = {total}."


def compared(nouns: str, values: Mapping[str, float], comparison: str) -> str:
    """Return the values of cities, and the city with the comparison: the greatest, lowest or nearest."""
    choose = min if comparison in {"lower", "nearer"} else max
    best = choose(values, key=lambda name: values[name])
    return (
        f"The {nouns}: {listed(f'{name} {value}' for name, value in values.items())}. {best} is {comparison}."
    )
