"""The names that the rows of the local SQLGym server's databases have."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["COUNTRIES", "TOWNS", "name_of"]

TOWNS = (
    "Ashford",
    "Birkdale",
    "Castleton",
    "Dunmore",
    "Eastleigh",
    "Fairhaven",
    "Glenrock",
    "Harwick",
    "Ivybridge",
    "Kingsley",
    "Lynton",
    "Marlow",
    "Northgate",
    "Oakham",
    "Penrose",
    "Quarry",
    "Redcliff",
    "Stanton",
    "Thornbury",
    "Westbrook",
)
"""Towns."""

COUNTRIES = ("Brazil", "Canada", "Denmark", "Egypt", "France", "Ghana", "India", "Japan", "Kenya", "Mexico")
"""Countries."""

_FIRST = (
    "Ada",
    "Ben",
    "Carla",
    "David",
    "Elena",
    "Felix",
    "Grace",
    "Henry",
    "Irene",
    "Jonas",
    "Karin",
    "Louis",
    "Maria",
    "Nadia",
    "Oscar",
    "Paula",
    "Quentin",
    "Rosa",
    "Simon",
    "Tara",
    "Umar",
    "Vera",
    "Walter",
    "Xenia",
    "Yusuf",
    "Zoe",
)
_LAST = (
    "Abbott",
    "Baker",
    "Carter",
    "Dawson",
    "Ellis",
    "Foster",
    "Grant",
    "Hughes",
    "Irving",
    "Jensen",
    "Keller",
    "Lambert",
    "Mason",
    "Norris",
    "Owens",
    "Parker",
    "Quinn",
    "Reyes",
    "Sutton",
    "Turner",
    "Underhill",
    "Vance",
    "Weaver",
    "Young",
    "Zimmer",
)
_ADJECTIVES = (
    "Amber",
    "Bright",
    "Broken",
    "Distant",
    "Empty",
    "Final",
    "Golden",
    "Hidden",
    "Iron",
    "Lonely",
    "Little",
    "Lost",
    "Northern",
    "Old",
    "Quiet",
    "Red",
    "Secret",
    "Silent",
    "Silver",
    "Slow",
    "Southern",
    "Wild",
    "Winter",
    "Young",
)
_NOUNS = (
    "Anchor",
    "Bridge",
    "Candle",
    "Cloud",
    "Forest",
    "Garden",
    "Harbour",
    "Horizon",
    "Island",
    "Journey",
    "Lantern",
    "Meadow",
    "Mirror",
    "Mountain",
    "Orchard",
    "River",
    "Road",
    "Shadow",
    "Storm",
    "Summer",
    "Tower",
    "Valley",
    "Window",
    "Wolf",
)
_LETTERS = "ABCDEFGHJKLMNPRSTUVWXYZ"


def name_of(kind: str, draw: Draw) -> str:
    """Return a name.

    Args:
        kind: Of whom or what: ``person``, ``title``, ``place``, ``firm`` or ``code``.
        draw: What it is drawn by.
    """
    if kind == "person":
        return f"{draw.one(_FIRST)} {draw.one(_LAST)}"
    if kind == "title":
        return f"The {draw.one(_ADJECTIVES)} {draw.one(_NOUNS)}"
    if kind == "place":
        return f"{draw.one(TOWNS)} {draw.one(_NOUNS)}"
    if kind == "firm":
        return f"{draw.one(_ADJECTIVES)} {draw.one(_LAST)}"
    return f"{draw.one(_LETTERS)}{draw.one(_LETTERS)}{draw.between(100, 999)}"
