"""The weather of the Weather world: a function of the place, the day and the seed.

The weather is invented but resembles the earth's: it has seasons, and is colder in the far north and south
and at great heights. Sums of waves in space and time are added, so that consecutive days and nearby places
have similar weather.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import date, timedelta

from agentgym_servers._frame.draw import Draw
from agentgym_servers.weather._places import PLACES

__all__ = ["Climate", "Day", "air_quality_level", "distance_km", "height_at", "on_grid"]

_EPOCH = date(2000, 1, 1).toordinal()
_YEAR = 365.2425  # days
_EARTH_KM = 6371.0088  # mean radius (IUGG; Moritz 2000, "Geodetic Reference System 1980")
_LAPSE = 0.0065  # degrees Celsius a metre (ICAO standard atmosphere)
_SNOW_CM = 0.7  # per millimetre of water, as in Open-Meteo: 10 mm are 7 cm of snow
_NEAR = 1e-9  # radians squared: the distance below which a place and the requested point are the same

_LEVELS = {"good": 20, "fair": 40, "moderate": 60, "poor": 80, "very poor": 100}  # by the highest index


@dataclass(frozen=True)
class Day:
    """The weather of one day at a place.

    Attributes:
        date: The day.
        highest: Highest temperature in degrees Celsius, with one decimal place.
        lowest: Lowest temperature.
        mean: Mean temperature.
        rain: In millimetres, with one decimal place.
        snow: In centimetres, with two decimal places.
        air: The European air quality index of fine dust at noon.
    """

    date: date
    highest: float
    lowest: float
    mean: float
    rain: float
    snow: float
    air: int


class _Waves:
    """A field over the globe and time: a sum of waves, with mean 0 and variance 1.

    Args:
        draw: The source of random draws.
        days: The shortest and the longest period.
        detail: The greatest wave number, in waves per radian of the globe times 2 pi.
    """

    def __init__(self, draw: Draw, days: tuple[int, int], detail: int) -> None:
        self._waves = [
            (
                2 * math.pi / draw.between(10 * days[0], 10 * days[1]) * 10,
                *(draw.between(-100 * detail, 100 * detail) / 100 for _ in range(3)),
                draw.below(10**6) / 10**6 * 2 * math.pi,
            )
            for _ in range(10)
        ]
        self._scale = math.sqrt(2 / len(self._waves))

    def at(self, point: tuple[float, float, float], day: float) -> float:
        """Return the value at a point of the unit sphere on a day."""
        x, y, z = point
        # `math.fsum` is exact; the builtin `sum` adds differently from Python 3.12 on.
        return self._scale * math.fsum(
            math.sin(pace * day + a * x + b * y + c * z + phase) for pace, a, b, c, phase in self._waves
        )


class Climate:
    """The weather of a world.

    Args:
        seed: The seed of the world.
    """

    def __init__(self, seed: int) -> None:
        draw = Draw("weather", seed, "climate")
        self._warmth = _Waves(draw, (6, 45), 9)
        self._spread = _Waves(draw, (4, 20), 9)
        self._wet = _Waves(draw, (3, 12), 14)
        self._dust = _Waves(draw, (4, 25), 14)

    def days(self, latitude: float, longitude: float, first: date, count: int) -> list[Day]:
        """Return the weather of consecutive days at a point.

        Args:
            latitude: Degrees north, -90 to 90.
            longitude: Degrees east, -180 to 180.
            first: The first day.
            count: The number of days.
        """
        latitude, longitude = on_grid(latitude), on_grid(longitude)
        point, height = _on_sphere(latitude, longitude), height_at(latitude, longitude)
        return [self._day(latitude, point, height, first + timedelta(days)) for days in range(count)]

    def day(self, latitude: float, longitude: float, when: date) -> Day:
        """Return the weather of one day at a point."""
        return self.days(latitude, longitude, when, 1)[0]

    def _day(self, latitude: float, point: tuple[float, float, float], height: float, when: date) -> Day:
        since = when.toordinal() - _EPOCH
        # The annual mean at sea level decreases with the latitude. Summer comes 200 days after the new year
        # in the north, half a year later in the south.
        season = math.cos(2 * math.pi * (since - 200) / _YEAR) * max(-14.0, min(14.0, 0.24 * latitude))
        mean = 28 - 0.0072 * latitude**2 + season - _LAPSE * height + 3.5 * self._warmth.at(point, since)
        spread = 4.5 + 1.3 * self._spread.at(point, since)
        water = 5 * max(0.0, self._wet.at(point, since) - 0.35) ** 1.5
        frozen = max(0.0, min(1.0, (3 - mean) / 4))  # the share of the water that falls as snow
        return Day(
            date=when,
            highest=round(mean + max(1.0, spread), 1),
            lowest=round(mean - max(1.0, spread), 1),
            mean=round(mean, 1),
            rain=round(water * (1 - frozen), 1),
            snow=round(water * frozen * _SNOW_CM, 2),
            air=round(22 * math.exp(0.55 * self._dust.at(point, since))),
        )


def on_grid(degrees: float) -> float:
    """Return the centre of the grid cell of a coordinate; cells have a side of a tenth of a degree."""
    return round(degrees, 1) + 0.0  # no -0.0


def height_at(latitude: float, longitude: float) -> float:
    """Return the height of a point in metres, interpolated from the places around it.

    The interpolation follows Shepard (1968), "A two-dimensional interpolation function for irregularly-spaced
    data", with the power 4, on the globe.
    """
    x, y, z = _on_sphere(latitude, longitude)
    weights = heights = 0.0
    for (a, b, c), height in _HEIGHTS:
        distance_squared = (x - a) ** 2 + (y - b) ** 2 + (z - c) ** 2
        if distance_squared < _NEAR:
            return height
        weight = 1 / distance_squared**2
        weights += weight
        heights += weight * height
    return float(round(heights / weights))


def distance_km(latitude1: float, longitude1: float, latitude2: float, longitude2: float) -> float:
    """Return the great-circle distance of two points in kilometres, with three decimal places.

    It uses the haversine formula (Sinnott 1984, "Virtues of the haversine").
    """
    first, second = math.radians(latitude1), math.radians(latitude2)
    across = math.radians(longitude2 - longitude1)
    half = (
        math.sin((second - first) / 2) ** 2 + math.cos(first) * math.cos(second) * math.sin(across / 2) ** 2
    )
    return round(2 * _EARTH_KM * math.asin(math.sqrt(min(1.0, half))), 3)


def air_quality_level(index: float) -> str:
    """Return the level of an air quality index.

    The European Environment Agency defines the levels: good up to 20, then one level per 20.
    """
    return next((level for level, most in _LEVELS.items() if index <= most), "extremely poor")


def _on_sphere(latitude: float, longitude: float) -> tuple[float, float, float]:
    north, east = math.radians(latitude), math.radians(longitude)
    return math.cos(north) * math.cos(east), math.cos(north) * math.sin(east), math.sin(north)


_HEIGHTS = [(_on_sphere(place.latitude, place.longitude), place.height) for place in PLACES]
