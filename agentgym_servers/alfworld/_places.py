"""Where objects lie: how many of a kind a room has, and in or on which receptacles, as in ALFWorld's games.

``tools/alfworld_facts.py`` counts them in ALFWorld's games and writes ``data/places.json``.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.data_files import read_json
from agentgym_servers.alfworld._object_kinds import kind_of
from agentgym_servers.alfworld._rooms import rooms

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["FOR_ONE", "Places", "places_of"]

FOR_ONE = frozenset({"coffeemachine", "handtowelholder", "stoveburner", "toiletpaperhanger", "towelholder"})
"""The kinds of receptacles with room for one object at the start."""


@dataclass(frozen=True)
class Places:
    """The objects of a kind in a room.

    Attributes:
        copies: The weights of one object, of two, and so on.
        hidden: The percentage of objects that lie in no receptacle, and so are never shown.
        weights: The weight of each receptacle of the room that may contain them.
    """

    copies: tuple[int, ...]
    hidden: int
    weights: Mapping[str, int]

    def number(self, draw: Draw) -> int:
        """Return a number of objects."""
        return 1 + _index(draw, self.copies)

    def place(self, draw: Draw, full: Container[str], without: str = "") -> str:
        """Return a receptacle for an object; empty if none is left.

        Args:
            draw: Random draws.
            full: Receptacles that are left out.
            without: A kind of receptacle that is left out.
        """
        name = self._names[bisect(self._totals, draw.below(self._totals[-1]))]
        if name not in full and kind_of(name) != without:
            return name
        names = [name for name in self._names if name not in full and kind_of(name) != without]
        return names[_index(draw, [self.weights[name] for name in names])] if names else ""

    @cached_property
    def _names(self) -> tuple[str, ...]:
        return tuple(self.weights)

    @cached_property
    def _totals(self) -> tuple[int, ...]:
        return tuple(accumulate(self.weights.values()))


@cache
def places_of(number: int) -> Mapping[str, Places]:
    """Return the objects of a room, by their kinds."""
    room = rooms()[number]
    found = {}
    for kind in room.objects:
        its = _places()[room.kind][kind]
        weights = {name: its["weights"].get(kind_of(name), 0) for name in room.receptacles}
        weights = {name: weight for name, weight in weights.items() if weight}
        if weights:
            found[kind] = Places(tuple(its["copies"]), its["hidden"], weights)
    return found


@cache
def _places() -> Any:
    return read_json("alfworld", "places.json")


def _index(draw: Draw, weights: Sequence[int]) -> int:
    """Return a random index, drawn in proportion to the weights."""
    totals = list(accumulate(weights))
    return bisect(totals, draw.below(totals[-1]))
