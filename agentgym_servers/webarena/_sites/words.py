"""Words from which the sites' data are drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["FIRST_NAMES", "LAST_NAMES", "STREETS", "TOWNS", "people", "spread"]

FIRST_NAMES = (
    "Ada Amir Anna Bela Boris Carla Celia Dario Diana Edgar Elena Emil Fatima Felix Greta Hana Hugo Ida "
    "Igor Irene Jonas Julia Kemal Kira Lars Leila Luca Marta Milan Mona Nadia Nils Nora Olga Omar Otto "
    "Paula Pavel Rosa Ruben Samir Sara Selma Simon Stella Tara Theo Tilda Vera Viktor Wanda Yara Yusuf "
    "Zora"
).split()

LAST_NAMES = (
    "Abel Almeida Bakker Berg Castro Conrad Dahl Dorn Eklund Engel Falk Ferreira Grau Haas Holm Ivanov "
    "Jansen Kaya Keller Kovac Krause Lang Lindt Maier Marin Moreau Nagy Novak Okafor Olsen Park Petrov "
    "Quist Rossi Sato Silva Sommer Tanaka Toth Ulrich Varga Vogel Weber Wirth Yilmaz Zeman"
).split()

STREETS = (
    "Acorn Alder Amber Birch Bridge Canal Castle Cedar Chapel Cherry Church Copper Crescent Elm Forge "
    "Garden Harbor Hazel Hill Juniper Lake Linden Maple Market Meadow Mill Oak Orchard Park Pine Quarry "
    "River School Station Summit Tower Valley Willow Windmill"
).split()

TOWNS = (
    "Ashford Brackwater Calder Dunmore Eastholm Fernley Glenrock Harrowgate Ironbridge Kestrel Larkhill "
    "Marlow Northwick Oakhurst Pinehaven Quarryville Ravensworth Stonebury Thornton Umberfield Valebrook "
    "Westmere Wychwood Yarrow"
).split()


def people(draw: Draw, count: int) -> list[str]:
    """Return full names, each once."""
    firsts, lasts = draw.shuffled(FIRST_NAMES), draw.shuffled(LAST_NAMES)
    return [
        f"{firsts[n % len(firsts)]} {lasts[(n * 7 + n // len(firsts)) % len(lasts)]}" for n in range(count)
    ]


def spread(draw: Draw, year: int, month: int) -> str:
    """Return a date of a month."""
    return f"{year}-{month:02d}-{draw.between(1, 28):02d}"
