"""The shortest solution of a task: a breadth-first search over the states of its house.

The search plays a smaller house that has only what the goal concerns. Other things neither help nor hinder,
so its solution is one of the whole house.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._things import LAMP, kind_of

if TYPE_CHECKING:
    from agentgym_servers.alfworld._goals import Goal

__all__ = ["shortest"]


def shortest(house: House, start: State, goal: Goal) -> tuple[str, ...] | None:
    """Return the fewest commands that fulfil a goal; None if there are none."""
    house, start = _reduced(house, start, goal)
    verbs = {"go", "open", "take", "use" if goal.is_look else "put", goal.treatment}
    if goal.is_met(house, start):
        return ()
    before: dict[State, tuple[State, str]] = {}
    reached = [start]
    while reached:
        latest, reached = reached, []
        for state in latest:
            for text, command in house.commands(state).items():
                if command.verb not in verbs:
                    continue
                new = house.after(state, command)
                if new == start or new in before:
                    continue
                before[new] = (state, text)
                if goal.is_met(house, new):
                    return _path(before, start, new)
                reached.append(new)
    return None


def _path(before: dict[State, tuple[State, str]], start: State, end: State) -> tuple[str, ...]:
    texts = []
    while end != start:
        end, text = before[end]
        texts.append(text)
    return tuple(reversed(texts))


def _reduced(house: House, start: State, goal: Goal) -> tuple[House, State]:
    """Return a house of the objects that a goal concerns, and the receptacles that they need."""
    kinds = {goal.object, *([LAMP] if goal.is_look else [])}
    placed = {
        name: place for name, place in zip(house.objects, start.places, strict=True) if kind_of(name) in kinds
    }
    needed = {place for place in placed.values() if place}
    for kind in (goal.tool, goal.receptacle):
        needed |= {next((name for name in house.receptacles if kind_of(name) == kind), "")}
    receptacles = tuple(name for name in house.receptacles if name in needed)
    state = State(tuple(placed.values()), start.at, start.held, start.opened, start.marks)
    return House(receptacles, tuple(placed)), state
