"""The rooms: ALFRED's 120, each with its own receptacles and kinds of objects.

Twelve of them are never in training. They are the twelve rooms that AgentGym's training tasks lack.
``tools/alfworld_facts.py`` writes ``data/rooms.json``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, cached_property

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.alfworld._object_kinds import in_order, kind_of

__all__ = ["KINDS", "UNSEEN", "Room", "rooms"]

KINDS: dict[str, range] = {
    "kitchen": range(1, 31),
    "living room": range(201, 231),
    "bedroom": range(301, 331),
    "bathroom": range(401, 431),
}
"""The numbers of the rooms of each kind."""

UNSEEN = frozenset({9, 10, 29, 215, 219, 226, 308, 315, 325, 404, 424, 425})
"""The rooms that no training task is in."""


@dataclass(frozen=True)
class Room:
    """A room.

    Attributes:
        number: Its number.
        kind: Its kind, such as ``kitchen``.
        receptacles: The names of its receptacles, in the order of ALFWorld's observations.
        fixed: The cabinets, drawers and safes among them that cannot be closed.
        objects: The kinds of objects that are found in it.
    """

    number: int
    kind: str
    receptacles: tuple[str, ...]
    fixed: frozenset[str]
    objects: tuple[str, ...]

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of its receptacles."""
        return frozenset(map(kind_of, self.receptacles))


@cache
def rooms() -> dict[int, Room]:
    """Return the rooms by their numbers."""
    found = {}
    rows = read_json("alfworld", "rooms.json")
    for kind, numbers in KINDS.items():
        for number in numbers:
            row = rows[str(number)]
            names = (
                f"{name} {each + 1}" for name, count in row["receptacles"].items() for each in range(count)
            )
            found[number] = Room(
                number, kind, in_order(names), frozenset(row["fixed"]), tuple(row["objects"])
            )
    return found
