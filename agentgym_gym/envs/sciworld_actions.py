"""The actions of ScienceWorld, in the syntax of its parser.

Function and argument names are those of AgentGym's client. Its waits of other lengths are omitted, because
ScienceWorld has no such commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Action, Grammar
from agentgym_gym.arguments import NO_NAMES, Integer, Name, strategies
from agentgym_gym.errors import BadArguments

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy
    from typing_extensions import Self

__all__ = [
    "GRAMMAR",
    "Activate",
    "Choose",
    "Close",
    "Connect",
    "Deactivate",
    "Disconnect",
    "Dunk",
    "Eat",
    "Examine",
    "Flush",
    "Focus",
    "GoTo",
    "Inventory",
    "LookAround",
    "LookAt",
    "LookIn",
    "Mix",
    "Move",
    "Open",
    "PickUp",
    "Pour",
    "PutDown",
    "Read",
    "Task",
    "Use",
    "Wait",
    "Wait1",
]

_SAMPLES = [
    *("metal pot", "thermometer", "door to kitchen", "substance in metal pot", "anode in red light bulb"),
    *("cup containing nothing in table", "black wire terminal 1", "self watering flower pot 4", "air"),
    *("book (pride and prejudice)", "green-blue paint", "unknown substance b", "orange", "red box", "sink"),
]


class _Thing(Name):
    """The name of a thing, optionally with its location or contents, as in ``cup containing water in sink``.

    A name cannot start or end with a preposition that joins two names: one of the two would be missing.
    """

    _joints = frozenset({"to", "on", "in", "into", "with", "at"})

    def __init__(self) -> None:
        word = r"[a-z0-9()]+(?:['-][a-z0-9()]+)*"
        super().__init__(_SAMPLES, words=rf"{word}(?: {word})*", max_chars=200, reserved=NO_NAMES)

    def read(self, text: str) -> str:
        """Parse a name, optionally in quotes."""
        return super().read(text.strip().strip("\"'`"))

    def _fits(self, value: str) -> bool:
        words = value.split(" ")
        return super()._fits(value) and self._joints.isdisjoint((words[0], words[-1]))


class _MovedThing(_Thing):
    """A name that extends to the last ``to``, as in ``instructions to make mixed nuts``."""

    greedy = True


class _MaybeThing(_Thing):
    """An optional name; the empty string if omitted."""

    def check(self, value: Any) -> None:
        """Accept names and the empty string."""
        if value != "":
            super().check(value)

    def from_json(self, value: Any) -> str:
        """Accept null too."""
        return super().from_json("" if value is None else value)

    def strategy(self) -> SearchStrategy[str]:
        """Draw a name or the empty string."""
        return strategies().just("") | super().strategy()  # type: ignore[no-any-return]


_Obj = Annotated[str, _Thing(), "the thing's name"]
_Device = Annotated[str, _Thing(), "the device's name"]
_Container = Annotated[str, _Thing(), "what it goes into"]
_Moved = Annotated[str, _MovedThing(), "the thing's name"]
_Spellings = Mapping[str, Mapping[str, Any]]


class _Named(Action):
    """An action whose function has the name that AgentGym gives it, where that is not its first words."""

    function: ClassVar[str] = ""

    @classmethod
    def name(cls) -> str:
        """Return the function name."""
        return cls.function or super().name()


_ON_OR_WITH = re.compile(r" (?:on|with) ")
_IN = re.compile(" in ", re.IGNORECASE)

# Places: an "in" before one of them gives the location of the preceding thing, not the target of the action.
_PLACES = frozenset(
    {
        *("art studio", "bathroom", "bedroom", "foundry", "greenhouse", "hallway", "inventory", "kitchen"),
        *("living room", "outside", "workshop", "desk", "table", "counter", "shelf", "bookshelf"),
        *("book shelf", "wood table", "steel table"),
    }
)


class _IntoAction(_Named):
    """An action with two names whose joint may be written ``in``, a word that names themselves hold.

    A name says where its thing is at most once, so in ``pour A in B in C in D`` the joint is in the middle;
    in ``pour A in B in C`` it is the second, unless C alone is a place.
    """

    joint: ClassVar[str]
    others: ClassVar[re.Pattern[str]] = re.compile(" (?:into|to|on) ", re.IGNORECASE)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the action."""
        parts = _IN.split(text)
        if len(parts) == 1 or cls.others.search(text):
            return super().parse(text)
        cut = len(parts) // 2
        if len(parts) == 3:  # noqa: PLR2004 - A, B and C
            middle, last = (part.lower().rstrip(" .") for part in parts[1:])
            cut = 1 if last in _PLACES and middle not in _PLACES else 2
        return super().parse(f"{' in '.join(parts[:cut])} {cls.joint} {' in '.join(parts[cut:])}")


@dataclass(frozen=True)
class Open(_Named):
    """Open a door or a container."""

    template: ClassVar[str] = "open {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Close(_Named):
    """Close a door or a container."""

    template: ClassVar[str] = "close {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Activate(_Named):
    """Turn on a device, such as a stove or a sink."""

    template: ClassVar[str] = "activate {obj}"
    accepts: ClassVar[_Spellings] = {"turn on {obj}": {}, "turn {obj} on": {}}
    obj: _Device


@dataclass(frozen=True)
class Deactivate(_Named):
    """Turn off a device."""

    template: ClassVar[str] = "deactivate {obj}"
    accepts: ClassVar[_Spellings] = {"turn off {obj}": {}, "turn {obj} off": {}}
    obj: _Device


@dataclass(frozen=True)
class Connect(_Named):
    """Connect two electrical components, or terminals of them."""

    template: ClassVar[str] = "connect {obj1} to {obj2}"
    obj1: _Obj
    obj2: _Obj


@dataclass(frozen=True)
class Disconnect(_Named):
    """Take an electrical component out of its circuit."""

    template: ClassVar[str] = "disconnect {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Use(_Named):
    """Use a tool on something, such as a thermometer on a substance; AgentGym asks for the tool only."""

    template: ClassVar[str] = "use {tool} on {obj}"
    accepts: ClassVar[_Spellings] = {"use {tool} with {obj}": {}, "use {tool}": {}}
    tool: Annotated[str, _Thing(), "the tool's name"]
    obj: Annotated[str, _MaybeThing(), "what it is used on, if on anything"] = ""

    def __post_init__(self) -> None:
        if self.obj:
            super().__post_init__()
            return
        self._check_fields()
        if _ON_OR_WITH.search(self.tool):
            raise BadArguments(f"{shown(str(self))} would be read as something else")

    def __str__(self) -> str:
        return super().__str__() if self.obj else f"use {self.tool}"

    def to_json(self) -> dict[str, Any]:
        """Return the arguments, without omitted ones."""
        return {name: value for name, value in super().to_json().items() if value}


@dataclass(frozen=True)
class LookAround(_Named):
    """See the room that you are in."""

    template: ClassVar[str] = "look around"
    accepts: ClassVar[_Spellings] = {"look": {}}
    function: ClassVar[str] = "lookaround"


@dataclass(frozen=True)
class LookAt(_Named):
    """See one thing more closely."""

    template: ClassVar[str] = "look at {obj}"
    accepts: ClassVar[_Spellings] = {"look on {obj}": {}}
    function: ClassVar[str] = "lookat"
    obj: _Obj


@dataclass(frozen=True)
class LookIn(_Named):
    """See what is in a container."""

    template: ClassVar[str] = "look in {obj}"
    accepts: ClassVar[_Spellings] = {"look into {obj}": {}, "look inside {obj}": {}}
    function: ClassVar[str] = "lookin"
    obj: _Obj


@dataclass(frozen=True)
class Read(_Named):
    """Read a note, a recipe or a book."""

    template: ClassVar[str] = "read {info}"
    info: Annotated[str, _Thing(), "what you read"]


@dataclass(frozen=True)
class PickUp(_Named):
    """Put a thing into your inventory."""

    template: ClassVar[str] = "pick up {obj}"
    accepts: ClassVar[_Spellings] = {"pick {obj} up": {}, "take {obj}": {}, "get {obj}": {}}
    function: ClassVar[str] = "pickup"
    obj: _Obj


@dataclass(frozen=True)
class PutDown(_Named):
    """Leave a thing of your inventory in the room."""

    template: ClassVar[str] = "put down {obj}"
    accepts: ClassVar[_Spellings] = {"put {obj} down": {}, "drop {obj}": {}}
    function: ClassVar[str] = "drop"
    obj: _Obj


@dataclass(frozen=True)
class Move(_IntoAction):
    """Move a thing into a container, or onto another thing."""

    template: ClassVar[str] = "move {obj} to {container}"
    accepts: ClassVar[_Spellings] = {
        f"{verb} {{obj}} {joint} {{container}}": {}
        for joint in ("to", "into", "on")
        for verb in ("move", "put")
        if (verb, joint) != ("move", "to")
    }
    joint = "to"
    obj: _Moved
    container: _Container


@dataclass(frozen=True)
class Pour(_IntoAction):
    """Pour a liquid, or all that a container holds, into another container."""

    template: ClassVar[str] = "pour {liq} into {container}"
    accepts: ClassVar[_Spellings] = {"pour {liq} to {container}": {}, "pour {liq} on {container}": {}}
    joint = "into"
    liq: Annotated[str, _MovedThing(), "the liquid, or what it is in"]
    container: _Container


@dataclass(frozen=True)
class Dunk(_IntoAction):
    """Dip a container into a liquid, to fill it."""

    template: ClassVar[str] = "dunk {container} into {liq}"
    joint = "into"
    others = re.compile(" into ", re.IGNORECASE)
    container: Annotated[str, _MovedThing(), "the container's name"]
    liq: Annotated[str, _Thing(), "the liquid, or what it is in"]


@dataclass(frozen=True)
class Mix(_Named):
    """Mix what is in a container, so that it reacts."""

    template: ClassVar[str] = "mix {container}"
    accepts: ClassVar[_Spellings] = {"stir {container}": {}}
    container: Annotated[str, _Thing(), "the container's name"]


@dataclass(frozen=True)
class GoTo(_Named):
    """Go to a neighbouring place, through an open door."""

    template: ClassVar[str] = "go to {loc}"
    accepts: ClassVar[_Spellings] = {
        f"{words} {{loc}}": {} for words in ("go through", "go into", "go", "walk to", "move to", "enter")
    }
    function: ClassVar[str] = "goto"
    loc: Annotated[str, _Thing(), "the place's name"]


@dataclass(frozen=True)
class Eat(_Named):
    """Eat a food."""

    template: ClassVar[str] = "eat {food}"
    accepts: ClassVar[_Spellings] = {"consume {food}": {}}
    food: Annotated[str, _Thing(), "the food's name"]


@dataclass(frozen=True)
class Flush(_Named):
    """Flush a toilet."""

    template: ClassVar[str] = "flush {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Focus(_Named):
    """Say that this is the thing the task asks for: the wrong thing fails the task at once."""

    template: ClassVar[str] = "focus on {obj}"
    accepts: ClassVar[_Spellings] = {"focus {obj}": {}}
    function: ClassVar[str] = "focus"
    obj: _Obj


@dataclass(frozen=True)
class Wait(_Named):
    """Let time pass, ten ticks of it."""

    template: ClassVar[str] = "wait"
    accepts: ClassVar[_Spellings] = {"wait 10": {}, "wait10": {}}


@dataclass(frozen=True)
class Wait1(_Named):
    """Let time pass, one tick of it."""

    template: ClassVar[str] = "wait1"
    accepts: ClassVar[_Spellings] = {"wait 1": {}}


@dataclass(frozen=True)
class Choose(_Named):
    """Answer a question which of several actions you meant, by its number in the list."""

    template: ClassVar[str] = "{option}"
    accepts: ClassVar[_Spellings] = {"choose {option}": {}}
    option: Annotated[int, Integer(0, 9_999), "the number in the list"]


@dataclass(frozen=True)
class Examine(_Named):
    """See what a thing is."""

    template: ClassVar[str] = "examine {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Task(_Named):
    """Read the task again."""

    template: ClassVar[str] = "task"


@dataclass(frozen=True)
class Inventory(_Named):
    """List what you carry."""

    template: ClassVar[str] = "inventory"


GRAMMAR = Grammar(
    [
        *(Open("door to kitchen"), Close("fridge"), Activate("stove"), Deactivate("sink")),
        *(Connect("battery anode", "black wire terminal 1"), Disconnect("black wire")),
        *(Use("thermometer", "substance in metal pot"), LookAround(), LookAt("table"), LookIn("cupboard")),
        *(Read("recipe"), GoTo("kitchen"), PickUp("thermometer"), PutDown("thermometer")),
        *(Move("metal pot", "stove"), Pour("cup containing blue paint", "bowl"), Dunk("glass cup", "water")),
        *(Mix("bowl"), Eat("orange"), Flush("toilet"), Focus("water in metal pot"), Wait(), Wait1()),
        *(Choose(0), Examine("substance in metal pot"), Task(), Inventory()),
    ]
)
