"""The observations: sentences of the same structure as in ALFWorld's games."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from agentgym_servers.alfworld._house import CLEAN, COOL, HOT, SLICED

if TYPE_CHECKING:
    from agentgym_servers.alfworld._house import House, HouseCommand, State

__all__ = ["NOTHING", "feedback", "welcome"]

NOTHING = "Nothing happens."
"""The observation after a text that is not a command of the state."""

_HELP = """\
Available commands:
  look:                             where you are
  inventory:                        what you carry
  go to (receptacle):               walk to a receptacle
  open (receptacle):                open the receptacle where you are
  close (receptacle):               close the receptacle where you are
  take (object) from (receptacle):  pick up an object
  put (object) in/on (receptacle):  lay down the object that you carry
  examine (something):              what the receptacle holds, or how the object is
  use (object):                     turn on a lamp
  heat (object) with (receptacle):  heat the object that you carry
  clean (object) with (receptacle): clean the object that you carry
  cool (object) with (receptacle):  cool the object that you carry
  slice (object) with (object):     slice an object with the knife that you carry
"""

_SENTENCES = {
    "close": "You close the {receptacle}.",
    "take": "You pick up the {object} from the {receptacle}.",
    "put": "You put the {object} in/on the {receptacle}.",
    "heat": "You heat the {object} using the {receptacle}.",
    "cool": "You cool the {object} using the {receptacle}.",
    "clean": "You clean the {object} using the {receptacle}.",
    "slice": "You sliced the {object} with the {held}.",
    "use": "You turn on the {object}.",
    "help": _HELP,
}
"""The observations that name only the things of the command."""


def welcome(house: House, goal: str) -> str:
    """Return the first observation: the receptacles of the room, and the task."""
    return f"{_in_the_middle(house.receptacles)}\nYour task is to: {goal}."


def feedback(house: House, state: State, command: HouseCommand) -> str:
    """Return the observation after a command.

    Args:
        house: The house.
        state: The state after the command.
        command: The command.
    """
    verb, name, receptacle = command
    if verb in _SENTENCES:
        return _SENTENCES[verb].format(object=name, receptacle=receptacle, held=state.held)
    if verb in ("go", "open"):
        start = "arrive at" if verb == "go" else "open the"
        return f"You {start} {receptacle}. {_contents(house, state, receptacle)}"
    if verb == "examine":
        return _contents(house, state, receptacle) if receptacle else _condition(state, name)
    if verb == "inventory":
        return (
            f"You are carrying: {_listed([state.held])}." if state.held else "You are not carrying anything."
        )
    here = f"You are facing the {state.at}. Next to it, you see nothing."
    return here if state.at else _in_the_middle(())


def _in_the_middle(seen: Iterable[str]) -> str:
    return f"You are in the middle of a room. Looking quickly around you, you see {_listed(seen)}."


def _contents(house: House, state: State, receptacle: str) -> str:
    if house.is_closed(state, receptacle):
        return f"The {receptacle} is closed."
    seen = _listed(house.inside(state, receptacle))
    if receptacle in house.openable:
        return f"The {receptacle} is open. In it, you see {seen}."
    return f"On the {receptacle}, you see {seen}."


def _condition(state: State, name: str) -> str:
    marks = {mark for each, mark in state.marks if each == name}
    clean, sliced = CLEAN in marks, SLICED in marks
    heat = "hot" if HOT in marks else "cool" if COOL in marks else ""
    if heat == "cool" and not clean and not sliced:
        heat = "cold"  # ALFWorld uses another word if it is the only one
    words = " and ".join(word for word in (heat, "clean" * clean) if word)
    words = " ".join(word for word in (words, "sliced" * sliced) if word)
    return f"This is a {words} {name}." if words else f"There's nothing special about {name}."


def _listed(names: Iterable[str]) -> str:
    items = [f"a {name}" for name in names]
    if len(items) > 1:
        items[-1] = f"and {items[-1]}"
    return ", ".join(items) or "nothing"
