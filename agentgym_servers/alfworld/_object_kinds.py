"""The kinds of objects and receptacles: ALFRED's rules on their treatments and on what may contain them.

The rules are from ALFRED (Shridhar et al., 2020, arXiv:1912.01734); ``tools/alfworld_facts.py`` writes them
into ``data/kinds.json``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

from agentgym_servers._frame.data_files import read_json

__all__ = [
    "LAMP",
    "OPENABLE",
    "TOOLS",
    "ObjectKind",
    "camel_case",
    "can_hold",
    "in_order",
    "kind_of",
    "object_kind",
]

LAMP = "desklamp"
"""The kind of object under which others are examined."""

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""The kinds of receptacles that are closed at the start, unless one of them cannot be closed."""

TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""The kind of receptacle that each treatment needs."""


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object.

    Attributes:
        kind: Its name in the game, such as ``soapbar``.
        treatments: The commands that change it: ``heat``, ``cool``, ``clean``, ``slice``.
        portable: Whether it can be taken.
        holders: The kinds of receptacles that may contain it.
    """

    kind: str
    treatments: frozenset[str]
    portable: bool
    holders: frozenset[str]


@cache
def _object_kinds() -> dict[str, ObjectKind]:
    return {
        name.lower(): ObjectKind(
            name.lower(), frozenset(rules["treatments"]), rules["portable"], frozenset(rules["holders"])
        )
        for name, rules in read_json("alfworld", "kinds.json").items()
    }


def object_kind(kind: str) -> ObjectKind:
    """Return a kind of object by its name."""
    return _object_kinds()[kind]


def can_hold(receptacle: str, kind: str) -> bool:
    """Return whether a kind of receptacle may contain a kind of object."""
    return receptacle in _object_kinds()[kind].holders


def kind_of(name: str) -> str:
    """Return the kind of a thing: ``soapbar`` of ``soapbar 2``."""
    return name.rpartition(" ")[0]


def in_order(names: Iterable[str]) -> tuple[str, ...]:
    """Return names in the order of ALFWorld's observations: by kind, the highest number first."""
    return tuple(sorted(names, key=lambda name: (kind_of(name), -int(name.rpartition(" ")[2]))))


@cache
def _camel_cases() -> dict[str, str]:
    return {name.lower(): name for name in read_json("alfworld", "kinds.json")}


def camel_case(kind: str) -> str:
    """Return the name of a kind as ALFRED writes it: ``SoapBar`` of ``soapbar``."""
    return _camel_cases()[kind]
