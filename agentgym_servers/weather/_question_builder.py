"""How a question of the Weather world is made: who asks, where and when, and the calls that answer it."""

from __future__ import annotations

from datetime import date, timedelta
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.tool_tasks import Call
from agentgym_servers.weather._climate import distance_km, height_at
from agentgym_servers.weather._places import CITIES, City

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.weather._climate import Climate, Day

__all__ = ["NUMBER", "Asking"]

NUMBER = "Please provide the answer as a number, to one decimal place."

_FIRST = date(2021, 1, 1)
_DAYS = 1095  # of three years; none of their dates is a 29 February


class Asking:
    """Draws what a question is about, and keeps the calls by which its answer is found.

    Args:
        draw: What it draws from.
        climate: The weather of the world.

    Attributes:
        draw: What it draws from.
        today: The user's date.
        home: Where the user is.
        calls: What has been called, in order.
    """

    def __init__(self, draw: Draw, climate: Climate) -> None:
        self.draw = draw
        self.today = _FIRST + timedelta(draw.below(_DAYS))
        self.home, *self._others = draw.some(CITIES, 5)
        self.calls: list[Call] = []
        self._climate = climate

    def place(self) -> City:
        """Return a place that has not come up yet, which the goal names."""
        return self._others.pop()

    def somewhere(self) -> tuple[City, str]:
        """Return a place and how the goal speaks of it: a named one, or where the user is."""
        if self.draw.chance(0.4):
            return self.home, "where I am now"
        place = self.place()
        return place, f"in {place.name}"

    def day(self, offset: int) -> date:
        """Return a day by how many days it is from today."""
        return self.today + timedelta(offset)

    def temperatures(self, place: City, first: int, last: int) -> list[Day]:
        """Look up days by how many days they are from today: both ends before it, both it, or both after."""
        return self._days("temp", place, first, last)

    def rain(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the rain of such days."""
        return self._days("rain", place, first, last)

    def snow(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the snow of such days."""
        return self._days("snow", place, first, last)

    def air(self, place: City, first: int, last: int) -> list[Day]:
        """Look up the air quality of such days, none of which is to come."""
        return self._days("air_quality_index", place, first, last)

    def height(self, place: City) -> float:
        """Look up how high a place lies."""
        self._call("get_elevation", **self._where(place))
        return height_at(place.latitude, place.longitude)

    def distance(self, one: City, other: City) -> float:
        """Look up how far two places are from each other, in kilometres."""
        ends: list[float] = []
        arguments = {}
        for number, place in enumerate((one, other), 1):
            for name, degrees in self._where(place).items():
                arguments[f"{name}{number}"] = degrees
                ends.append(degrees)
        self._call("get_distance", **arguments)
        return distance_km(*ends)

    def level(self, index: int) -> None:
        """Look up how good an air quality index is."""
        self._call("get_air_quality_level", air_quality_index=index)

    def same_day_last_year(self) -> int:
        """Return how many days the same day of last year is from today."""
        return (self.today.replace(year=self.today.year - 1) - self.today).days

    def _days(self, kind: str, place: City, first: int, last: int) -> list[Day]:
        where = self._where(place)
        if first == last == 0:
            self._call(f"get_current_{kind}", **where, current_date=self.today.isoformat())
        else:
            name = f"get_historical_{kind}" if last < 0 else f"get_{kind}_forecast"
            dates = {"start_date": self.day(first).isoformat(), "end_date": self.day(last).isoformat()}
            self._call(name, **where, **dates)
        return self._climate.days(place.latitude, place.longitude, self.day(first), last - first + 1)

    def _where(self, place: City) -> dict[str, Any]:
        """Look up where a place is, once."""
        if place is self.home and not self._has_called("get_user_current_location"):
            self._call("get_user_current_location")
        if not self._has_called("get_latitude_longitude", name=place.name):
            self._call("get_latitude_longitude", name=place.name)
        return {"latitude": place.latitude, "longitude": place.longitude}

    def _call(self, name: str, /, **arguments: Any) -> None:
        self.calls.append(Call(name, arguments))

    def _has_called(self, name: str, /, **arguments: Any) -> bool:
        return (name, arguments) in self.calls
