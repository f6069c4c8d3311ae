"""A house in play, as values: its state, the commands of a state, and what each command does.

A command is executed exactly if it is listed. Commands have the same conditions as in ALFWorld's games:
everything is done at the place of the agent, a closed receptacle hides its contents, and the agent carries at
most one object. A microwave, fridge or sink basin treats the carried object.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from agentgym_servers.alfworld._object_kinds import LAMP, OPENABLE, TOOLS, can_hold, kind_of, object_kind

__all__ = ["CLEAN", "COOL", "HOT", "SLICED", "TOGGLED", "House", "HouseCommand", "State"]

HOT, COOL, CLEAN, SLICED, TOGGLED = "hot", "cool", "clean", "sliced", "toggled"

_KNIVES = ("knife", "butterknife")


@dataclass(frozen=True)
class State:
    """A state of a house.

    Attributes:
        places: The receptacle of each object, in the order of `House.objects`; empty for the carried object.
        at: The place of the agent: a receptacle; empty in the middle of the room.
        held: The carried object; empty if there is none.
        opened: The receptacles that can be closed and are open.
        marks: The results of treatments: pairs of an object and a mark, such as `HOT`.
    """

    places: tuple[str, ...]
    at: str = ""
    held: str = ""
    opened: frozenset[str] = frozenset()
    marks: frozenset[tuple[str, str]] = frozenset()


class HouseCommand(NamedTuple):
    """A command: its verb, and the object and the receptacle that it names."""

    verb: str
    object: str = ""
    receptacle: str = ""


@dataclass(frozen=True)
class House:
    """The things of a house.

    Attributes:
        receptacles: The names of the receptacles, in the order of observations.
        objects: The names of the objects, in the order of observations.
        fixed: The receptacles that cannot be closed, although others of their kind can.
    """

    receptacles: tuple[str, ...]
    objects: tuple[str, ...]
    fixed: frozenset[str] = frozenset()

    @cached_property
    def openable(self) -> frozenset[str]:
        """The receptacles that can be opened and closed."""
        return frozenset(name for name in self.receptacles if kind_of(name) in OPENABLE) - self.fixed

    @cached_property
    def _kinds(self) -> tuple[str, ...]:
        return tuple(kind_of(name) for name in self.objects)

    @cached_property
    def _walks(self) -> dict[str, HouseCommand]:
        """The commands to go somewhere, by their texts, in alphabetical order."""
        return {f"go to {name}": HouseCommand("go", receptacle=name) for name in sorted(self.receptacles)}

    def is_closed(self, state: State, receptacle: str) -> bool:
        """Return whether a receptacle hides its contents."""
        return receptacle not in state.opened and receptacle in self.openable

    def inside(self, state: State, receptacle: str) -> list[str]:
        """Return the objects in or on a receptacle, whether or not it is open."""
        return [name for name, place in zip(self.objects, state.places, strict=True) if place == receptacle]

    def of_kind(self, state: State, kind: str) -> Iterator[tuple[str, str]]:
        """Yield the objects of a kind, each with its place."""
        for name, its, place in zip(self.objects, self._kinds, state.places, strict=True):
            if its == kind:
                yield name, place

    def commands(self, state: State) -> dict[str, HouseCommand]:
        """Return the commands that can be executed, by their texts, in alphabetical order."""
        others = {verb: HouseCommand(verb) for verb in ("help", "inventory", "look")}
        if state.held:
            others[f"examine {state.held}"] = HouseCommand("examine", state.held)
        walks = self._walks.copy()
        if state.at:
            del walks[f"go to {state.at}"]
            others.update(self._commands_here(state))
        texts = sorted(others)
        later = bisect(texts, "go to")
        listed = {text: others[text] for text in texts[:later]}
        listed.update(walks)
        listed.update((text, others[text]) for text in texts[later:])
        return listed

    def _commands_here(self, state: State) -> Iterator[tuple[str, HouseCommand]]:
        at, held = state.at, state.held
        closed = self.is_closed(state, at)
        yield f"examine {at}", HouseCommand("examine", receptacle=at)
        if at in self.openable:
            verb = "open" if closed else "close"
            yield f"{verb} {at}", HouseCommand(verb, receptacle=at)
        inside = [] if closed else self.inside(state, at)
        for each in inside:
            kind = kind_of(each)
            if kind == LAMP:
                yield f"use {each}", HouseCommand("use", each)
            elif not held and object_kind(kind).portable:
                yield f"take {each} from {at}", HouseCommand("take", each, at)
        if held:
            yield from self._commands_with_held(state, inside)

    def _commands_with_held(self, state: State, inside: list[str]) -> Iterator[tuple[str, HouseCommand]]:
        at, held = state.at, state.held
        if not self.is_closed(state, at) and can_hold(kind_of(at), kind_of(held)):
            yield f"put {held} in/on {at}", HouseCommand("put", held, at)
        for verb, tool in TOOLS.items():
            if kind_of(at) == tool and verb in object_kind(kind_of(held)).treatments:
                yield f"{verb} {held} with {at}", HouseCommand(verb, held, at)
        if kind_of(held) in _KNIVES:
            for each in inside:
                if "slice" in object_kind(kind_of(each)).treatments:
                    yield f"slice {each} with {held}", HouseCommand("slice", each)

    def after(self, state: State, command: HouseCommand) -> State:
        """Return the state after a command that can be executed."""
        verb, name, receptacle = command
        if verb == "go":
            return replace(state, at=receptacle)
        if verb == "open":
            return replace(state, opened=state.opened | {receptacle})
        if verb == "close":
            return replace(state, opened=state.opened - {receptacle})
        if verb in ("take", "put"):
            index = self.objects.index(name)
            place, held = ("", name) if verb == "take" else (receptacle, "")
            places = (*state.places[:index], place, *state.places[index + 1 :])
            return replace(state, places=places, held=held)
        if verb in _MARKS:
            mark, opposite = _MARKS[verb]
            return replace(state, marks=(state.marks - {(name, opposite)}) | {(name, mark)})
        return state


# The mark that a command leaves on its object, and the mark that it removes.
_MARKS = {
    "heat": (HOT, COOL),
    "cool": (COOL, HOT),
    "clean": (CLEAN, ""),
    "slice": (SLICED, ""),
    "use": (TOGGLED, ""),
}
