"""Thoughts of the oracle: why an action is the next one, from its words and the later actions."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

__all__ = ["thoughts"]

_ROOM = re.compile(r"(?:open door|go) to (?P<room>.+)")
_TO_ROOM = re.compile(r"go to (?P<room>.+)")
_ANSWER = re.compile(r"(?:red|green|blue|orange|yellow|purple) box")


def thoughts(path: Sequence[str]) -> list[str]:
    """Return the thought before each action of a path."""
    return [_thought(action, path[i + 1 :], path[:i]) for i, action in enumerate(path)]


def _thought(action: str, later: Sequence[str], earlier: Sequence[str]) -> str:
    if _ROOM.fullmatch(action):
        return _on_the_way(action, later)
    for pattern, explain in _REASONS:
        match = pattern.fullmatch(action)
        if match is not None:
            text = explain(*match.groups())
            return f"Once more, as before. {text}" if action in earlier[-4:] else text
    return "Nothing else is left to do here, so this is my next step."


def _on_the_way(action: str, later: Sequence[str]) -> str:
    """Explain an action that leads to another room."""
    rooms = []
    for each in [action, *later]:
        if not _ROOM.fullmatch(each):
            break
        rooms += [match["room"] for match in [_TO_ROOM.fullmatch(each)] if match is not None]
    match = _ROOM.fullmatch(action)
    room = match["room"] if match else ""
    goal = rooms[-1] if rooms else room
    via = "" if goal == room else f", and the way there leads through the {room}"
    if action.startswith("open"):
        return f"I have to go to the {goal}{via}. The door may be closed, so I open it first."
    return f"I have to go to the {goal}{via}."


def _moved(thing: str, place: str) -> str:
    if _ANSWER.fullmatch(place):
        return f"All is known that the task needs. My answer is to put the {thing} into the {place}."
    return f"For the next step the {thing} has to be in the {place}."


def _focus(thing: str) -> str:
    if _ANSWER.fullmatch(thing):
        return f"All is known that the task needs. My answer is the {thing}."
    return f"The task requires a focus, and the right thing for it is the {thing}."


def _reason(pattern: str, explain: Callable[..., str]) -> tuple[re.Pattern[str], Callable[..., str]]:
    return re.compile(pattern), explain


_REASONS = (
    _reason("look around", lambda: "I am not sure what is here, so I look around."),
    _reason("focus on (.+)", _focus),
    _reason("pick up (.+)", lambda thing: f"I will need the {thing} later, so I take it."),
    _reason("move (.+?) to (.+)", _moved),
    _reason("open (.+)", lambda thing: f"The {thing} may be closed, and I need what is in it."),
    _reason("close (.+)", lambda thing: f"The {thing} has to be closed for the next step."),
    _reason("activate (.+)", lambda thing: f"The {thing} does nothing until it is on, so I turn it on."),
    _reason("deactivate (.+)", lambda thing: f"The {thing} has done its work, so I turn it off."),
    _reason("use (.+) on (.+)", lambda tool, thing: f"The {tool} shows me the state of the {thing}."),
    _reason("(?:examine|look at|look in) (.+)", lambda thing: f"The {thing} may have changed: I look at it."),
    _reason(
        "connect (.+) to (.+)", lambda one, other: f"The circuit needs the {one} connected to the {other}."
    ),
    _reason(
        "(?:pour|dunk) (.+?) (?:into|in) (.+)", lambda one, other: f"The {other} needs what is in the {one}."
    ),
    _reason("(?:drop|put down) (.+)", lambda thing: f"The {thing} has to lie here for the next step."),
    _reason("mix (.+)", lambda thing: f"All parts are in the {thing}, so I mix them."),
    _reason("read (.+)", lambda thing: f"The {thing} may say how to continue, so I read it."),
    _reason(r"wait\d*", lambda: "The change needs time, so I wait."),
    _reason(r"\d+", lambda: "I have to choose one of the actions with a number."),
)
