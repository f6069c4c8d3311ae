"""The data of the map: towns with places, and the ways between these."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agentgym_servers.webarena._sites.words import LAST_NAMES, STREETS, TOWNS

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["KINDS", "MODES", "Map", "Place", "Route", "draw_map", "route"]

KINDS = {
    "cafe": "Cafe",
    "museum": "Museum",
    "hotel": "Hotel",
    "library": "Library",
    "pharmacy": "Pharmacy",
    "bakery": "Bakery",
}
_TOWN_COUNT = 6
_PER_TOWN = ("cafe", "cafe", "cafe", "museum", "hotel", "hotel", "library", "pharmacy", "bakery")

MODES = {"car": 9.0, "bicycle": 4.5, "foot": 1.25}
"""Metres a second by the way of travel."""

_DETOUR = {"car": 1.35, "bicycle": 1.2, "foot": 1.1}


@dataclass(frozen=True)
class Place:
    """A place; its coordinates are in metres."""

    number: int
    name: str
    kind: str
    town: str
    street: str
    postcode: str
    phone: str
    opens: int
    closes: int
    x: int
    y: int

    @property
    def address(self) -> str:
        """The address on one line."""
        return f"{self.street}, {self.town} {self.postcode}"

    @property
    def hours(self) -> str:
        """The opening hours."""
        return f"{self.opens:02d}:00 - {self.closes:02d}:00"

    def metres_to(self, other: Place) -> int:
        """Return the straight distance."""
        return round(math.hypot(self.x - other.x, self.y - other.y))


@dataclass(frozen=True)
class Route:
    """A way between two places: hundreds of metres and minutes, both rounded."""

    hectometres: int
    minutes: int

    @property
    def distance(self) -> str:
        """The distance as text, such as ``1.2 km``."""
        return f"{self.hectometres / 10:.1f} km"

    @property
    def time(self) -> str:
        """The time as text, such as ``1 h 05 min``."""
        hours, minutes = divmod(self.minutes, 60)
        return f"{hours} h {minutes:02d} min" if hours else f"{minutes} min"


@dataclass
class Map:
    """All data of the map."""

    places: list[Place]
    towns: list[str]

    def of(self, kind: str) -> list[Place]:
        """Return the places of a kind."""
        return [each for each in self.places if each.kind == kind]

    def near(self, place: Place, kind: str) -> list[Place]:
        """Return the places of a kind in the same town, the nearest first."""
        found = [each for each in self.of(kind) if each.town == place.town and each is not place]
        return sorted(found, key=lambda each: (place.metres_to(each), each.number))


def route(start: Place, end: Place, mode: str) -> Route:
    """Return the way between two places."""
    metres = start.metres_to(end) * _DETOUR[mode]
    return Route(max(1, round(metres / 100)), max(1, round(metres / MODES[mode] / 60)))


def draw_map(draw: Draw) -> Map:
    """Draw the data of a map."""
    towns = draw.some(TOWNS, _TOWN_COUNT)
    names = iter(draw.shuffled(LAST_NAMES) + draw.shuffled(STREETS))
    places: list[Place] = []
    for n, town in enumerate(towns):
        left, top = (n % 3) * 21_000 + draw.below(5_000), (n // 3) * 17_000 + draw.below(5_000)
        base = draw.between(100, 989) * 100
        for kind in _PER_TOWN:
            street = f"{draw.between(1, 120)} {draw.one(STREETS)} Street"
            phone = f"555-{draw.between(100, 999)}-{draw.between(1000, 9999)}"
            x, y = left + draw.below(3_000), top + draw.below(3_000)
            opens = draw.between(6, 11)
            name = f"{next(names)} {KINDS[kind]}"
            postcode = f"{base + draw.between(1, 40):05d}"
            places.append(
                Place(
                    len(places), name, kind, town, street, postcode, phone, opens, draw.between(15, 23), x, y
                )
            )
    return Map(places, towns)
