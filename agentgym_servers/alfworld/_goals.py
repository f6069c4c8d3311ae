"""The six types of tasks: their shares, their wording, and when they are done."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from agentgym_servers.alfworld._house import CLEAN, COOL, HOT, TOGGLED
from agentgym_servers.alfworld._object_kinds import TOOLS, kind_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agentgym_servers.alfworld._house import House, State

__all__ = ["LOOK", "TYPES", "HouseGoal", "TaskType"]


class TaskType(NamedTuple):
    """A type of task.

    Attributes:
        wordings: The ways to state the task, with places for the object and the receptacle.
        treatment: The command that the object needs first; empty if none.
        needed: How many objects are needed.
    """

    wordings: tuple[str, ...]
    treatment: str = ""
    needed: int = 1


LOOK = "look_at_obj_in_light"
"""The one type with an object to hold under a lamp."""

TYPES: dict[str, TaskType] = {
    "pick_and_place_simple": TaskType(("put a {} in {}", "put some {} on {}")),
    LOOK: TaskType(("look at {} under the {}", "examine the {} with the {}")),
    "pick_clean_then_place_in_recep": TaskType(
        ("put a clean {} in {}", "clean some {} and put it in {}"), "clean"
    ),
    "pick_heat_then_place_in_recep": TaskType(
        ("put a hot {} in {}", "heat some {} and put it in {}"), "heat"
    ),
    "pick_cool_then_place_in_recep": TaskType(
        ("put a cool {} in {}", "cool some {} and put it in {}"), "cool"
    ),
    "pick_two_obj_and_place": TaskType(("put two {} in {}", "find two {} and put them in {}"), "", 2),
}
"""The types of tasks by ALFRED's names."""

_MARKS = {"clean": CLEAN, "heat": HOT, "cool": COOL}


@dataclass(frozen=True)
class HouseGoal:
    """A goal.

    Attributes:
        type: The name of its type.
        object: The kind of the object.
        receptacle: The kind of the receptacle where it belongs, or of the lamp.
        text: How the task is stated.
    """

    type: str
    object: str
    receptacle: str
    text: str

    @property
    def is_look(self) -> bool:
        """Whether the object must be held under a lamp, not put down."""
        return self.type == LOOK

    @property
    def count(self) -> int:
        """The number of objects that it needs."""
        return TYPES[self.type].needed

    @property
    def treatment(self) -> str:
        """The command that the object needs first, such as ``clean``; empty if none."""
        return TYPES[self.type].treatment

    @property
    def mark(self) -> str:
        """The mark that the object needs, such as ``hot``; empty if none."""
        return _MARKS.get(self.treatment, "")

    @property
    def tool(self) -> str:
        """The kind of receptacle that treats the object; empty if none is needed."""
        return TOOLS.get(self.treatment, "")

    def is_met(self, house: House, state: State) -> bool:
        """Return whether a state fulfils it."""
        if self.is_look:
            lamps = {name for name, mark in state.marks if mark == TOGGLED}
            here = house.inside(state, state.at) if state.at else []
            return kind_of(state.held) == self.object and not lamps.isdisjoint(here)
        return any(count >= self.count for count in Counter(self._done(house, state)).values())

    def _done(self, house: House, state: State) -> Iterable[str]:
        """Return the receptacle of each object that meets the goal."""
        for name, place in house.of_kind(state, self.object):
            if kind_of(place) == self.receptacle and (not self.mark or (name, self.mark) in state.marks):
                yield place
