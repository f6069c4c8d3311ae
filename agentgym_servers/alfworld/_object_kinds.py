"""The kinds of objects and receptacles: where objects lie, and what can be done to them.

The kinds, and which receptacle may contain which object, come from ALFRED (Shridhar et al., 2020,
arXiv:1912.01734). How often an object lies at which place is our own choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

__all__ = [
    "LAMP",
    "OPENABLE",
    "TOOLS",
    "ObjectKind",
    "camel_case",
    "can_hold",
    "kind_of",
    "object_kind",
    "object_kinds_of",
]

LAMP = "desklamp"
"""The kind of object under which others are examined."""

OPENABLE = frozenset({"cabinet", "drawer", "fridge", "microwave", "safe"})
"""The kinds of receptacles that are closed at the start."""

TOOLS = {"clean": "sinkbasin", "heat": "microwave", "cool": "fridge"}
"""The kind of receptacle that each treatment needs."""

# The name; treatments (h: heat, c: cool, w: wash, s: slice); rooms (k: kitchen, l: living room, b: bedroom,
# t: bathroom); the usual places; the other places.
_OBJECTS = """
Apple         | hcws | k   | CounterTop DiningTable Fridge    | SinkBasin GarbageCan Microwave SideTable
Bread         | hcs  | k   | CounterTop DiningTable           | Fridge GarbageCan Microwave SideTable
Egg           | hcws | k   | Fridge CounterTop                | SinkBasin GarbageCan Microwave DiningTable SideTable
Lettuce       | cws  | k   | Fridge CounterTop DiningTable    | SinkBasin GarbageCan SideTable
Potato        | hcws | k   | CounterTop Fridge                | SinkBasin GarbageCan Microwave DiningTable SideTable
Tomato        | hcws | k   | CounterTop DiningTable Fridge    | SinkBasin GarbageCan Microwave SideTable
Mug           | hcw  | kb  | CoffeeMachine CounterTop Desk    | Cabinet SinkBasin Microwave Fridge Shelf DiningTable SideTable Dresser
Cup           | hcw  | k   | Cabinet CounterTop SinkBasin     | Fridge Microwave Shelf DiningTable SideTable
Bowl          | cw   | klb | CounterTop DiningTable Shelf     | Cabinet Fridge SinkBasin CoffeeTable SideTable Desk Dresser
Plate         | hcw  | k   | CounterTop DiningTable Cabinet   | Fridge Microwave SinkBasin Shelf SideTable
Pan           | cw   | k   | StoveBurner CounterTop           | Cabinet Fridge SinkBasin DiningTable SideTable
Pot           | cw   | k   | StoveBurner CounterTop           | Cabinet Fridge SinkBasin Shelf DiningTable SideTable
Kettle        | w    | k   | StoveBurner CounterTop           | Cabinet SinkBasin Shelf DiningTable SideTable
Fork          | w    | k   | Drawer DiningTable CounterTop    | SinkBasin SideTable
Spoon         | w    | k   | Drawer DiningTable CounterTop    | SinkBasin SideTable
Knife         | w    | k   | CounterTop Drawer                | SinkBasin DiningTable SideTable
ButterKnife   | w    | k   | CounterTop Drawer                | SinkBasin DiningTable SideTable
Ladle         | w    | k   | CounterTop Drawer                | SinkBasin Cabinet DiningTable SideTable
Spatula       | w    | k   | CounterTop Drawer                | SinkBasin DiningTable SideTable
SaltShaker    |      | k   | Cabinet CounterTop               | Drawer Shelf DiningTable SideTable
PepperShaker  |      | k   | Cabinet CounterTop               | Drawer Shelf DiningTable SideTable
WineBottle    | c    | k   | CounterTop Fridge Shelf          | Cabinet GarbageCan DiningTable SideTable
Glassbottle   |      | k   | CounterTop Shelf                 | Cabinet Fridge SinkBasin DiningTable SideTable
DishSponge    | w    | kt  | SinkBasin CounterTop             | Drawer Cabinet Shelf Cart BathtubBasin Toilet GarbageCan
SoapBottle    |      | kt  | CounterTop Toilet                | Cabinet Drawer Shelf GarbageCan Cart SideTable
SoapBar       | w    | t   | SinkBasin BathtubBasin Toilet    | CounterTop Cabinet Drawer Shelf Cart GarbageCan SideTable
Cloth         | w    | t   | CounterTop BathtubBasin Cart     | Cabinet Drawer Shelf Toilet SinkBasin GarbageCan SideTable
HandTowel     |      | t   | HandTowelHolder                  | CounterTop Cabinet Toilet SinkBasin BathtubBasin Cart GarbageCan SideTable
ToiletPaper   |      | t   | ToiletPaperHanger Toilet         | CounterTop Cabinet Drawer Shelf Cart GarbageCan SideTable
SprayBottle   |      | t   | CounterTop Toilet Shelf          | Cabinet Drawer Cart GarbageCan SideTable
Candle        |      | t   | CounterTop Toilet                | Cabinet Drawer Shelf Cart SideTable
TissueBox     |      | lt  | SideTable CoffeeTable CounterTop | Shelf Drawer Cabinet Dresser TVStand Toilet Cart GarbageCan
Book          |      | lb  | Desk Bed SideTable CoffeeTable   | Shelf Drawer Sofa ArmChair Ottoman Dresser DiningTable
CD            |      | b   | Desk Drawer Shelf                | Safe SideTable Dresser GarbageCan
CellPhone     |      | lb  | Bed Desk SideTable CoffeeTable   | Drawer Shelf Sofa ArmChair Ottoman Dresser DiningTable Safe
CreditCard    |      | lb  | Desk SideTable Sofa CoffeeTable  | Drawer Shelf ArmChair Ottoman Dresser DiningTable Safe
KeyChain      |      | lb  | SideTable Desk CoffeeTable Sofa  | Drawer Shelf ArmChair Ottoman Dresser DiningTable Safe
Laptop        |      | lb  | Desk Bed CoffeeTable             | Sofa ArmChair Ottoman SideTable Dresser DiningTable
Newspaper     |      | l   | CoffeeTable Sofa SideTable       | ArmChair Ottoman Drawer Shelf Dresser DiningTable GarbageCan
Pen           |      | b   | Desk SideTable Drawer            | Shelf Dresser GarbageCan
Pencil        |      | b   | Desk SideTable Drawer            | Shelf Dresser GarbageCan
Pillow        |      | lb  | Bed Sofa ArmChair                | Ottoman
RemoteControl |      | l   | CoffeeTable Sofa TVStand         | ArmChair Ottoman SideTable Drawer Shelf Dresser DiningTable
Statue        |      | l   | Shelf Dresser SideTable TVStand  | CoffeeTable DiningTable Safe
Vase          |      | l   | Shelf CoffeeTable SideTable      | DiningTable Dresser Cabinet Safe
Watch         |      | l   | SideTable CoffeeTable Shelf      | Drawer Dresser DiningTable Safe
Box           |      | l   | Sofa CoffeeTable SideTable       | ArmChair Ottoman Shelf Dresser DiningTable Cabinet
AlarmClock    |      | b   | SideTable Desk Dresser           | Shelf
DeskLamp      |      | lb  | Desk SideTable                   | Dresser Shelf CoffeeTable DiningTable
"""  # noqa: E501 - a table

_TREATMENTS = {"h": "heat", "c": "cool", "w": "clean", "s": "slice"}
_ROOMS = {"k": "kitchen", "l": "living room", "b": "bedroom", "t": "bathroom"}


@dataclass(frozen=True)
class ObjectKind:
    """A kind of object.

    Attributes:
        kind: Its name in the game, such as ``soapbar``.
        treatments: The commands that change it: ``heat``, ``cool``, ``clean``, ``slice``.
        rooms: The kinds of rooms where it is found.
        usual: The kinds of receptacles where it usually lies.
        other: The other kinds of receptacles that may contain it.
    """

    kind: str
    treatments: frozenset[str]
    rooms: frozenset[str]
    usual: tuple[str, ...]
    other: tuple[str, ...]

    @property
    def portable(self) -> bool:
        """Whether it can be taken."""
        return self.kind != LAMP

    @property
    def holders(self) -> tuple[str, ...]:
        """The kinds of receptacles that may contain it, the likeliest first."""
        return self.usual + self.other


@cache
def _object_kinds() -> dict[str, ObjectKind]:
    rows = (tuple(part.strip() for part in line.split("|")) for line in _OBJECTS.strip().splitlines())
    return {
        name.lower(): ObjectKind(
            name.lower(),
            frozenset(_TREATMENTS[letter] for letter in treatments),
            frozenset(_ROOMS[letter] for letter in rooms),
            tuple(usual.lower().split()),
            tuple(other.lower().split()),
        )
        for name, treatments, rooms, usual, other in rows
    }


def object_kind(kind: str) -> ObjectKind:
    """Return a kind of object by its name."""
    return _object_kinds()[kind]


def object_kinds_of(room: str) -> list[ObjectKind]:
    """Return the kinds of objects that are found in a kind of room."""
    return [each for each in _object_kinds().values() if room in each.rooms]


@cache
def can_hold(receptacle: str, kind: str) -> bool:
    """Return whether a kind of receptacle may contain a kind of object."""
    return receptacle in object_kind(kind).holders


def kind_of(name: str) -> str:
    """Return the kind of a thing: ``soapbar`` of ``soapbar 2``."""
    return name.rpartition(" ")[0]


@cache
def _camel_cases() -> dict[str, str]:
    names = {word for line in _OBJECTS.split("\n") for part in line.split("|") for word in part.split()}
    return {name.lower(): name for name in names}


def camel_case(kind: str) -> str:
    """Return the name of a kind as ALFRED writes it: ``SoapBar`` of ``soapbar``."""
    return _camel_cases()[kind]
