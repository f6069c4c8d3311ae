"""The rooms: 120 of a seed, each with its own receptacles, numbered as in ALFRED.

Twelve of them are never in training. They are the twelve rooms that AgentGym's training tasks lack.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from agentgym_servers._frame.draw import Draw

__all__ = ["KINDS", "UNSEEN", "Room", "room_of", "rooms_of"]

KINDS: dict[str, range] = {
    "kitchen": range(1, 31),
    "living room": range(201, 231),
    "bedroom": range(301, 331),
    "bathroom": range(401, 431),
}
"""The numbers of the rooms of each kind."""

UNSEEN = frozenset({9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425})
"""The rooms that no training task is in."""

# How many of each receptacle a room has: at least and at most.
_RECEPTACLES: dict[str, dict[str, tuple[int, int]]] = {
    "kitchen": {
        "cabinet": (2, 6),
        "coffeemachine": (1, 1),
        "countertop": (1, 3),
        "diningtable": (0, 1),
        "drawer": (1, 4),
        "fridge": (1, 1),
        "garbagecan": (1, 1),
        "microwave": (1, 1),
        "shelf": (0, 3),
        "sidetable": (0, 1),
        "sinkbasin": (1, 1),
        "stoveburner": (2, 4),
        "toaster": (1, 1),
    },
    "living room": {
        "armchair": (1, 2),
        "cabinet": (0, 3),
        "coffeetable": (0, 2),
        "diningtable": (0, 1),
        "drawer": (0, 4),
        "dresser": (0, 1),
        "garbagecan": (1, 1),
        "ottoman": (0, 1),
        "safe": (0, 1),
        "shelf": (0, 4),
        "sidetable": (1, 3),
        "sofa": (1, 2),
        "tvstand": (0, 1),
    },
    "bedroom": {
        "armchair": (0, 1),
        "bed": (1, 2),
        "desk": (1, 2),
        "drawer": (1, 6),
        "dresser": (0, 1),
        "garbagecan": (1, 1),
        "laundryhamper": (0, 1),
        "safe": (0, 1),
        "shelf": (0, 5),
        "sidetable": (1, 2),
    },
    "bathroom": {
        "bathtubbasin": (0, 1),
        "cabinet": (1, 4),
        "cart": (0, 1),
        "countertop": (1, 2),
        "drawer": (0, 4),
        "garbagecan": (1, 1),
        "handtowelholder": (1, 2),
        "shelf": (0, 3),
        "sidetable": (0, 1),
        "sinkbasin": (1, 2),
        "toilet": (1, 1),
        "toiletpaperhanger": (1, 1),
        "towelholder": (1, 1),
    },
}


@dataclass(frozen=True)
class Room:
    """A room.

    Attributes:
        number: Its number.
        kind: Its kind, such as ``kitchen``.
        receptacles: The names of its receptacles, in alphabetical order.
    """

    number: int
    kind: str
    receptacles: tuple[str, ...]


@lru_cache(maxsize=2 * len(KINDS))
def rooms_of(seed: int, kind: str) -> dict[int, Room]:
    """Return the rooms of a kind by their numbers; no two of them have the same receptacles."""
    draw = Draw("alfworld", seed, kind)
    taken: set[tuple[str, ...]] = set()
    rooms = {}
    for number in KINDS[kind]:
        receptacles = _receptacles(draw, kind)
        while receptacles in taken:
            receptacles = _receptacles(draw, kind)
        taken.add(receptacles)
        rooms[number] = Room(number, kind, receptacles)
    return rooms


def room_of(seed: int, number: int) -> Room:
    """Return a room by its number."""
    kind = next(kind for kind, numbers in KINDS.items() if number in numbers)
    return rooms_of(seed, kind)[number]


def _receptacles(draw: Draw, kind: str) -> tuple[str, ...]:
    counts = {name: draw.between(*limits) for name, limits in _RECEPTACLES[kind].items()}
    return tuple(f"{name} {number + 1}" for name, count in counts.items() for number in range(count))
