"""Solutions that look for things as a player must, in the order of ALFWorld's own expert.

The expert looks into the receptacles that may contain an object, the last listed first. The solution uses
only what a player has seen, with one exception: where looking further would take more turns than the turn
limit leaves, it goes to a receptacle that has what it looks for. Each command has the thought before it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from agentgym_servers.alfworld._house import HouseCommand
from agentgym_servers.alfworld._object_kinds import LAMP, can_hold, kind_of

if TYPE_CHECKING:
    from agentgym_servers.alfworld._tasks import HouseTask

__all__ = ["searching"]

_TURNS_FOR_EACH = 6  # go, open, take, go, open, put
_TURNS_FOR_TOOL = 2


def searching(task: HouseTask, turns: int) -> list[tuple[str, str]]:
    """Return commands that do a task, each with the thought before it.

    Args:
        task: The task.
        turns: The turn limit.
    """
    needed = task.goal.count * _TURNS_FOR_EACH + bool(task.goal.tool) * _TURNS_FOR_TOOL
    player = _Player(task, turns - needed)
    player.play()
    return player.turns


class _Player:
    """Plays a task, and notes each command.

    Args:
        task: The task.
        spare: The number of turns that it may spend in vain.
    """

    def __init__(self, task: HouseTask, spare: int) -> None:
        self._house = task.house
        self._goal = task.goal
        self._state = task.start
        self._spare = spare
        self._visited: set[str] = set()
        self.turns: list[tuple[str, str]] = []

    def play(self) -> None:
        """Play the task to its end."""
        goal = self._goal
        for number in range(goal.count):
            target = self._find(goal.object, "another" if number else _a(goal.object))
            self._do("take", f"I see {target} here. I take it.", target, self._state.at)
            if goal.is_look:
                self._hold_under_lamp(target)
                return
            if goal.tool:
                self._treat(target)
            self._lay_down(target, is_last=number + 1 == goal.count)

    def _hold_under_lamp(self, target: str) -> None:
        lamp = self._find(LAMP, _a(LAMP))
        self._do("use", f"I hold {target}, and {lamp} is here. I turn it on.", lamp)

    def _treat(self, target: str) -> None:
        treatment, tool = self._goal.treatment, self._named(self._goal.tool)
        if self._state.at != tool:
            self._go(tool, f"I have {target}. It must be {self._goal.mark}, so I go to {tool}.")
        self._do(treatment, f"I hold {target} at {tool}, so I {treatment} it.", target, tool)

    def _lay_down(self, target: str, *, is_last: bool) -> None:
        place = self._named(self._goal.receptacle)
        state = f"The {target} is {self._goal.mark} now." if self._goal.mark else f"I have {target}."
        self._go(place, f"{state} It belongs in or on {_a(self._goal.receptacle)}, so I go to {place}.")
        if self._house.is_closed(self._state, place):
            self._do("open", f"The {place} is closed. I open it to put {target} in.", receptacle=place)
        end = "The task is then done." if is_last else "One more is then left."
        self._do("put", f"I put {target} in or on {place}. {end}", target, place)

    def _find(self, kind: str, phrase: str) -> str:
        """Go to an object of a kind that is not yet in its place; return its name."""
        while (found := self._here(kind)) is None:
            seen = next((name for name in self._sources(kind) if name in self._visited), "")
            if seen:
                self._go(seen, f"I need {phrase}. I saw one in or on {seen}, so I go there.")
            else:
                self._look_into(*self._next_place(kind), kind, phrase)
        return found

    def _here(self, kind: str) -> str | None:
        """Return a visible object of a kind that is here and not yet in its place."""
        at = self._state.at
        if not at or self._house.is_closed(self._state, at) or at not in self._sources(kind):
            return None
        return next(name for name in self._house.inside(self._state, at) if kind_of(name) == kind)

    def _look_into(self, place: str, reason: str, kind: str, phrase: str) -> None:
        before = len(self.turns)
        self._go(place, f"I need {phrase}. {reason}, so I go to {place}.")
        if self._house.is_closed(self._state, place):
            self._do("open", f"The {place} is closed. I open it to look for {phrase}.", receptacle=place)
        self._visited.add(place)
        if self._here(kind) is None:
            self._spare -= len(self.turns) - before

    def _next_place(self, kind: str) -> tuple[str, str]:
        """Return a place where the player has not looked yet, and why it looks there."""
        left = [
            name
            for name in reversed(self._house.receptacles)
            if name not in self._visited and not self._belongs(kind, name)
        ]
        likely = (name for name in left if can_hold(kind_of(name), kind))
        place = next(likely, left[0] if left else "")
        if not place or self._spare < 1 + self._house.is_closed(self._state, place):
            place = next(iter(self._sources(kind)))
        return place, f"{_a(kind).capitalize()} may be in or on {_a(kind_of(place))}"

    def _sources(self, kind: str) -> Iterator[str]:
        """Return the receptacles with an object of a kind that is not yet in its place."""
        for name, place in zip(self._house.objects, self._state.places, strict=True):
            if kind_of(name) == kind and place and not self._belongs(kind, place):
                yield place

    def _belongs(self, kind: str, receptacle: str) -> bool:
        """Return whether objects of a kind are done in a receptacle, so that none is taken from it."""
        goal = self._goal
        return kind == goal.object and kind_of(receptacle) == goal.receptacle and not goal.treatment

    def _named(self, kind: str) -> str:
        return min((name for name in self._house.receptacles if kind_of(name) == kind), key=_number)

    def _go(self, receptacle: str, thought: str) -> None:
        self._do("go", thought, receptacle=receptacle)

    def _do(self, verb: str, thought: str, name: str = "", receptacle: str = "") -> None:
        """Play a command; its text is the one under which the house lists it."""
        command = HouseCommand(verb, name, receptacle)
        listed = self._house.commands(self._state)
        text = next(text for text, each in listed.items() if each == command)
        self.turns.append((text, thought))
        self._state = self._house.after(self._state, command)


def _number(name: str) -> int:
    return int(name.rpartition(" ")[2])


def _a(kind: str) -> str:
    return f"{'an' if kind[0] in 'aeiou' else 'a'} {kind}"
