"""A page of MiniWoB as its solutions see it: the text of an observation, and the actions on its elements."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from agentgym_gym.envs.webarena import ClickElement, TypeText

__all__ = ["Line", "NoSolution", "PageView"]

_QUOTED = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_LINE = re.compile(rf"(?P<tabs>\t*)\[(?P<number>\d+)\] (?P<role>[\w-]+) (?P<name>{_QUOTED})(?P<rest>.*)")
_VALUE = re.compile(rf" value: (?P<value>{_QUOTED}|\S+)")
_LABEL = re.compile(rf" class: (?P<label>{_QUOTED})")


class NoSolution(Exception):
    """The page is not as a solution expects it."""


@dataclass(frozen=True)
class Line:
    """An element of a page.

    Attributes:
        number: Its number.
        role: Its role.
        name: Its name.
        rest: Its properties.
        depth: The number of elements around it.
    """

    number: int
    role: str
    name: str
    rest: str
    depth: int

    @property
    def value(self) -> str:
        """The value of a field."""
        match = _VALUE.search(self.rest)
        if match is None:
            return ""
        text = match["value"]
        return str(ast.literal_eval(text)) if text[0] in "'\"" else text

    @property
    def label(self) -> str:
        """The class or id of an element without a name."""
        match = _LABEL.search(self.rest)
        return "" if match is None else str(ast.literal_eval(match["label"]))

    def click(self) -> ClickElement:
        """Return the action that clicks it."""
        return ClickElement(self.number)

    def enter(self, text: str, *, then_enter: bool = False) -> TypeText:
        """Return the action that types a text into it."""
        return TypeText(self.number, text, int(then_enter))


class PageView:
    """The last observation of an episode."""

    def __init__(self, observation: str) -> None:
        self.show(observation)

    def show(self, observation: str) -> None:
        """Replace the observation."""
        head, _, page = observation.partition("\n\n")
        self.goal = head.partition("\n")[0].removeprefix("OBJECTIVE: ")
        self.lines = [
            Line(int(m["number"]), m["role"], ast.literal_eval(m["name"]), m["rest"], len(m["tabs"]))
            for m in map(_LINE.fullmatch, page.splitlines())
            if m is not None
        ]

    def quoted(self, count: int = 1) -> list[str]:
        """Return the quoted words of the goal.

        Raises:
            NoSolution: There are fewer.
        """
        found = re.findall(r'"([^"]*)"', self.goal)
        if len(found) < count:
            raise NoSolution(self.goal)
        return found

    def words(self, pattern: str) -> tuple[str, ...]:
        """Return the groups of a pattern in the goal.

        Raises:
            NoSolution: It does not match.
        """
        match = re.search(pattern, self.goal)
        if match is None:
            raise NoSolution(self.goal)
        return match.groups()

    def all(self, role: str, name: str | None = None) -> list[Line]:
        """Return the elements of a role, and of a name if one is given."""
        return [line for line in self.lines if line.role == role and name in {None, line.name.strip()}]

    def one(self, role: str, name: str | None = None, index: int = 0) -> Line:
        """Return one of the elements of a role and a name.

        Raises:
            NoSolution: There are fewer.
        """
        found = self.all(role, name)
        if not -len(found) <= index < len(found):
            raise NoSolution(f"no {role} {name!r}")
        return found[index]

    def text(self, name: str, index: int = 0) -> Line:
        """Return a text that is no other element's name."""
        return self.one("StaticText", name, index)

    def named(self, name: str) -> Line:
        """Return the last element with a name, of any role.

        Raises:
            NoSolution: There is none.
        """
        found = [line for line in self.lines if line.name.strip() == name]
        if not found:
            raise NoSolution(f"nothing is named {name!r}")
        return found[-1]

    def labelled(self, label: str) -> list[Line]:
        """Return the elements without a name that have a word in their class or id."""
        return [
            line
            for line in self.lines
            if label in line.label.split() or (line.role == "clickable" and label in line.name.split())
        ]

    def submit(self) -> ClickElement:
        """Return the action that clicks the button Submit."""
        return self.named("Submit").click()

    def after(self, line: Line) -> Iterator[Line]:
        """Return the elements after one, in the order of the page."""
        return iter(self.lines[self.lines.index(line) + 1 :])

    def inside(self, line: Line) -> Iterator[Line]:
        """Return the elements inside one."""
        for each in self.after(line):
            if each.depth <= line.depth:
                return
            yield each
