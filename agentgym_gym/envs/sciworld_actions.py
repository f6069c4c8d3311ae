"""The actions of ScienceWorld, in the syntax of its parser.

Functions and arguments have the names of AgentGym's client. Its waits of other lengths are omitted, because
ScienceWorld has no such commands.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from agentgym_gym._text import shown
from agentgym_gym.actions import Grammar
from agentgym_gym.arguments import Integer
from agentgym_gym.envs._sciworld_names import (
    IntoAction,
    MovedThingName,
    NamedAction,
    OptionalThingName,
    ThingName,
)
from agentgym_gym.errors import BadArguments

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

_Obj = Annotated[str, ThingName(), "the thing's name"]
_Device = Annotated[str, ThingName(), "the device's name"]
_Container = Annotated[str, ThingName(), "what it goes into"]
_Moved = Annotated[str, MovedThingName(), "the thing's name"]
_Spellings = Mapping[str, Mapping[str, Any]]


_ON_OR_WITH = re.compile(r" (?:on|with) ")


@dataclass(frozen=True)
class Open(NamedAction):
    """Open a door or a container."""

    template: ClassVar[str] = "open {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Close(NamedAction):
    """Close a door or a container."""

    template: ClassVar[str] = "close {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Activate(NamedAction):
    """Turn on a device, such as a stove or a sink."""

    template: ClassVar[str] = "activate {obj}"
    accepts: ClassVar[_Spellings] = {"turn on {obj}": {}, "turn {obj} on": {}}
    obj: _Device


@dataclass(frozen=True)
class Deactivate(NamedAction):
    """Turn off a device."""

    template: ClassVar[str] = "deactivate {obj}"
    accepts: ClassVar[_Spellings] = {"turn off {obj}": {}, "turn {obj} off": {}}
    obj: _Device


@dataclass(frozen=True)
class Connect(NamedAction):
    """Connect two electrical components, or terminals of them."""

    template: ClassVar[str] = "connect {obj1} to {obj2}"
    obj1: _Obj
    obj2: _Obj


@dataclass(frozen=True)
class Disconnect(NamedAction):
    """Take an electrical component out of its circuit."""

    template: ClassVar[str] = "disconnect {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Use(NamedAction):
    """Use a tool on something, such as a thermometer on a substance; in AgentGym, only the tool is named."""

    template: ClassVar[str] = "use {tool} on {obj}"
    accepts: ClassVar[_Spellings] = {"use {tool} with {obj}": {}, "use {tool}": {}}
    tool: Annotated[str, ThingName(), "the tool's name"]
    obj: Annotated[str, OptionalThingName(), "what it is used on, if on anything"] = ""

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
class LookAround(NamedAction):
    """See the room that you are in."""

    template: ClassVar[str] = "look around"
    accepts: ClassVar[_Spellings] = {"look": {}}
    function: ClassVar[str] = "lookaround"


@dataclass(frozen=True)
class LookAt(NamedAction):
    """See one thing more closely."""

    template: ClassVar[str] = "look at {obj}"
    accepts: ClassVar[_Spellings] = {"look on {obj}": {}}
    function: ClassVar[str] = "lookat"
    obj: _Obj


@dataclass(frozen=True)
class LookIn(NamedAction):
    """See what is in a container."""

    template: ClassVar[str] = "look in {obj}"
    accepts: ClassVar[_Spellings] = {"look into {obj}": {}, "look inside {obj}": {}}
    function: ClassVar[str] = "lookin"
    obj: _Obj


@dataclass(frozen=True)
class Read(NamedAction):
    """Read a note, a recipe or a book."""

    template: ClassVar[str] = "read {info}"
    info: Annotated[str, ThingName(), "what you read"]


@dataclass(frozen=True)
class PickUp(NamedAction):
    """Put a thing into your inventory."""

    template: ClassVar[str] = "pick up {obj}"
    accepts: ClassVar[_Spellings] = {"pick {obj} up": {}, "take {obj}": {}, "get {obj}": {}}
    function: ClassVar[str] = "pickup"
    obj: _Obj


@dataclass(frozen=True)
class PutDown(NamedAction):
    """Leave a thing of your inventory in the room."""

    template: ClassVar[str] = "put down {obj}"
    accepts: ClassVar[_Spellings] = {"put {obj} down": {}, "drop {obj}": {}}
    function: ClassVar[str] = "drop"
    obj: _Obj


@dataclass(frozen=True)
class Move(IntoAction):
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
class Pour(IntoAction):
    """Pour a liquid, or all that a container holds, into another container."""

    template: ClassVar[str] = "pour {liq} into {container}"
    accepts: ClassVar[_Spellings] = {"pour {liq} to {container}": {}, "pour {liq} on {container}": {}}
    joint = "into"
    liq: Annotated[str, MovedThingName(), "the liquid, or what it is in"]
    container: _Container


@dataclass(frozen=True)
class Dunk(IntoAction):
    """Dip a container into a liquid, to fill it."""

    template: ClassVar[str] = "dunk {container} into {liq}"
    joint = "into"
    others = re.compile(" into ", re.IGNORECASE)
    container: Annotated[str, MovedThingName(), "the container's name"]
    liq: Annotated[str, ThingName(), "the liquid, or what it is in"]


@dataclass(frozen=True)
class Mix(NamedAction):
    """Mix what is in a container, so that it reacts."""

    template: ClassVar[str] = "mix {container}"
    accepts: ClassVar[_Spellings] = {"stir {container}": {}}
    container: Annotated[str, ThingName(), "the container's name"]


@dataclass(frozen=True)
class GoTo(NamedAction):
    """Go to a neighbouring place, through an open door."""

    template: ClassVar[str] = "go to {loc}"
    accepts: ClassVar[_Spellings] = {
        f"{words} {{loc}}": {} for words in ("go through", "go into", "go", "walk to", "move to", "enter")
    }
    function: ClassVar[str] = "goto"
    loc: Annotated[str, ThingName(), "the place's name"]


@dataclass(frozen=True)
class Eat(NamedAction):
    """Eat a food."""

    template: ClassVar[str] = "eat {food}"
    accepts: ClassVar[_Spellings] = {"consume {food}": {}}
    food: Annotated[str, ThingName(), "the food's name"]


@dataclass(frozen=True)
class Flush(NamedAction):
    """Flush a toilet."""

    template: ClassVar[str] = "flush {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Focus(NamedAction):
    """Select the thing that the task is about; a wrong thing fails the task at once."""

    template: ClassVar[str] = "focus on {obj}"
    accepts: ClassVar[_Spellings] = {"focus {obj}": {}}
    function: ClassVar[str] = "focus"
    obj: _Obj


@dataclass(frozen=True)
class Wait(NamedAction):
    """Let time pass, ten ticks of it."""

    template: ClassVar[str] = "wait"
    accepts: ClassVar[_Spellings] = {"wait 10": {}, "wait10": {}}


@dataclass(frozen=True)
class Wait1(NamedAction):
    """Let time pass, one tick of it."""

    template: ClassVar[str] = "wait1"
    accepts: ClassVar[_Spellings] = {"wait 1": {}}


@dataclass(frozen=True)
class Choose(NamedAction):
    """Answer a question which of several actions you meant, by its number in the list."""

    template: ClassVar[str] = "{option}"
    accepts: ClassVar[_Spellings] = {"choose {option}": {}}
    option: Annotated[int, Integer(0, 9_999), "the number in the list"]


@dataclass(frozen=True)
class Examine(NamedAction):
    """See what a thing is."""

    template: ClassVar[str] = "examine {obj}"
    obj: _Obj


@dataclass(frozen=True)
class Task(NamedAction):
    """Read the task again."""

    template: ClassVar[str] = "task"


@dataclass(frozen=True)
class Inventory(NamedAction):
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
