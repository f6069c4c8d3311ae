"""The steps of a solution, which name elements as a page does, and not by number."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Step", "click", "fill", "goto", "pick", "press", "push", "put", "replaced", "stop"]


@dataclass(frozen=True)
class Step:
    """One action of a solution.

    Attributes:
        verb: The action.
        role: The role of the element; empty for actions without one.
        name: The name of the element.
        text: The text to type, the address, the keys or the answer.
        enter: Whether the Enter key follows the text.
    """

    verb: str
    role: str = ""
    name: str = ""
    text: str = ""
    enter: bool = False


def click(name: str) -> Step:
    """Click a link."""
    return Step("click", "link", name)


def push(name: str) -> Step:
    """Click a button."""
    return Step("click", "button", name)


def pick(name: str) -> Step:
    """Choose an option."""
    return Step("click", "radio", name)


def fill(name: str, text: str) -> Step:
    """Type into a field, and press Enter."""
    return Step("type", "textbox", name, text, enter=True)


def put(name: str, text: str) -> Step:
    """Type into a field."""
    return Step("type", "textbox", name, text)


def replaced(name: str, text: str) -> tuple[Step, ...]:
    """Type into a field in place of what it contains."""
    focus = Step("click", "textbox", name)
    return (focus, press("Control+a"), press("Delete"), put(name, text))


def press(keys: str) -> Step:
    """Press keys."""
    return Step("press", text=keys)


def goto(url: str) -> Step:
    """Open an address, which may begin with a placeholder."""
    return Step("goto", text=url)


def stop(answer: str = "") -> Step:
    """End the task."""
    return Step("stop", text=answer)
