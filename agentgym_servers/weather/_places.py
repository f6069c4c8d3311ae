"""The places of the Weather world: cities with their coordinates and heights, rounded."""

from __future__ import annotations

from dataclasses import dataclass

from agentgym_servers._frame.data_files import read_text

__all__ = ["CITIES", "PLACES", "City"]


@dataclass(frozen=True)
class City:
    """A city or a town.

    Attributes:
        name: Its name; several may have the same.
        country: The code of its country, of two letters (ISO 3166-1).
        latitude: Degrees north.
        longitude: Degrees east.
        height: Metres above the sea.
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
"""The cities that tasks are about, each of another name."""

PLACES = (*CITIES, *_read("namesakes.txt"))
"""All places, the more important ones first: a search lists smaller places of the same names below."""
