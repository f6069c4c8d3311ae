"""The places of the Weather world: cities with rounded coordinates and heights."""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_servers._frame.data_files import read_text

__all__ = ["CITIES", "PLACES", "City"]


@dataclass(frozen=True)
class City:
    """A city or a town.

    Attributes:
        name: Its name, which several may share.
        country: The two-letter code of its country (ISO 3166-1).
        latitude: Degrees north.
        longitude: Degrees east.
        height: Metres above sea level.
    """

    name: str
    country: str
    latitude: float
    longitude: float
    height: float


def _read(name: str) -> tuple[City, ...]:
    rows = (line.rsplit(maxsplit=4) for line in read_text("weather", name).splitlines())
    return tuple(
        City(name, country, float(latitude), float(longitude), float(height))
        for name, country, latitude, longitude, height in rows
    )


CITIES = _read("cities.txt")
"""The cities that tasks use; their names are unique."""

PLACES = (*CITIES, *_read("namesakes.txt"))
"""All places, the more important ones first: a search lists smaller places of the same name after them."""
