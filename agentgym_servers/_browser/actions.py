"""The twelve actions of WebArena, read from a model's reply.

A reply has the action between two fences of three backticks. Each error's message is what AgentGym's server
shows for it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

__all__ = ["BrowserAction", "NotAnAction", "read_action", "read_command"]

_FENCED = re.compile(r"```(.*?)```", re.DOTALL)
_MOST_SHOWN = 500  # characters of a reply in an error message
_MOST_DIGITS = 9

# The arguments in the brackets of each action that has some.
_ARGUMENTS = {
    "click": re.compile(r"click ?\[(\d+)\]"),
    "hover": re.compile(r"hover ?\[(\d+)\]"),
    "type": re.compile(r"type ?\[(\d+)\] ?\[(.+)\] ?\[(\d+)\]"),
    "press": re.compile(r"press ?\[(.+)\]"),
    "scroll": re.compile(r"scroll ?\[?(up|down)\]?"),
    "goto": re.compile(r"goto ?\[(.+)\]"),
    "tab_focus": re.compile(r"tab_focus ?\[(\d+)\]"),
}
_BARE = {"new_tab", "close_tab", "go_back", "go_forward"}
_STOP = re.compile(r"stop ?\[(.+)\]")


class NotAnAction(Exception):
    """A reply has no action, or one that is not known; the message goes into the observation."""


@dataclass(frozen=True)
class BrowserAction:
    """An action.

    Attributes:
        verb: Its name.
        element: The number of the element; empty for actions without one.
        text: The text to type, the keys, the direction, the address, the number of the tab, or the answer.
        enter: Whether the Enter key is pressed after the text.
    """

    verb: str
    element: str = ""
    text: str = ""
    enter: bool = False

    def __str__(self) -> str:
        if self.verb in {"click", "hover"}:
            return f"{self.verb} [{self.element}]"
        if self.verb == "type":
            return f"type [{self.element}] [{self.text}{' ' if self.enter else ''}]"
        if self.verb in _BARE:
            return self.verb
        return f"{'page_focus' if self.verb == 'tab_focus' else self.verb} [{self.text}]"


def read_action(reply: str) -> BrowserAction:
    """Return the action between the first two fences of a reply.

    Raises:
        NotAnAction: There is none, or its form is wrong.
    """
    reply = reply.encode("utf-8", "replace").decode("utf-8")  # the browser takes no lone surrogates
    match = _FENCED.search(reply)
    if match is None:
        raise NotAnAction(f"Cannot parse action from response {reply[:_MOST_SHOWN]}")
    return read_command(match.group(1))


def read_command(action: str) -> BrowserAction:
    """Return an action from its text without fences.

    Raises:
        NotAnAction: It is empty or not known, or its form is wrong.
    """
    action = action.encode("utf-8", "replace").decode("utf-8").strip()  # as for `read_action`
    if not action:
        raise NotAnAction("list index out of range")
    verb = (action.split("[")[0] if "[" in action else action.split()[0]).strip()
    if verb in _BARE:
        return BrowserAction(verb)
    if verb == "stop":
        answer = _STOP.search(action)
        return BrowserAction("stop", text="" if answer is None else answer.group(1))
    if verb not in _ARGUMENTS:
        raise NotAnAction(f"Invalid action {action[:_MOST_SHOWN]}")
    if verb == "type" and not action.endswith(("[0]", "[1]")):
        action += " [1]"
    found = _ARGUMENTS[verb].search(action)
    if found is None:
        raise NotAnAction(f"Invalid {verb} action {action[:_MOST_SHOWN]}")
    return _command(verb, found.groups())


def _command(verb: str, values: tuple[str, ...]) -> BrowserAction:
    if verb in {"click", "hover"}:
        return BrowserAction(verb, values[0])
    if verb == "type":
        return BrowserAction(verb, values[0], values[1], enter=values[2] == "1")
    if verb == "tab_focus" and len(values[0]) > _MOST_DIGITS:
        raise NotAnAction("Exceeds the limit (9 digits) of the number of a tab")
    return BrowserAction(verb, text=values[0])
