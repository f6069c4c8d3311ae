"""The deeds that win a level of BabyAI, in order, planned with full knowledge of the level.

Each part of the instruction names things. The planner takes the nearest match of each and plans the path to
it: it opens doors on the path, and moves obstacles aside. The agent can fetch the key of a locked door before
it goes to the door, or once it is at the door. Each choice is a separate strategy, as is each order of parts
whose order is free.
"""

from __future__ import annotations

import copy
import heapq
import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from minigrid.envs.babyai.core.verifier import (
    AfterInstr,
    AndInstr,
    GoToInstr,
    OpenInstr,
    PickupInstr,
    PutNextInstr,
)

from agentgym_servers.babyai._available_actions import MinigridMove
from agentgym_servers.babyai._sight import AHEAD, Cell

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from minigrid.core.grid import Grid

    from agentgym_servers.babyai._levels import Level

__all__ = ["Deed", "after", "beside", "strategies"]

_Fits: TypeAlias = Callable[[Any, Cell], bool]

# The accepted detour in steps around each of these, in a level with rooms of five to eight cells a side.
_CLOSED, _LOCKED, _IN_THE_WAY, _SPARE_DOOR = (4, 12), 30, 12, 40

_MOST_DEEDS = 60
_LOOSE = ("ball", "key", "box")


class _NoWayError(Exception):
    """No path exists, or the planner finds none."""


@dataclass(frozen=True)
class Deed:
    """One necessary deed.

    Attributes:
        move: The move that does it; None if facing a cell is enough.
        fits: Whether the deed can be done to a cell straight ahead, in a grid.
        near: The approximate cell of the deed; None for anywhere.
    """

    move: MinigridMove | None
    fits: _Fits
    near: Cell | None = None


def strategies(level: Level) -> list[list[Deed]]:
    """Return sequences of deeds that may win a level, the shortest by estimate first.

    Args:
        level: The level in its initial state.
    """
    found = []
    for parts, closed, key_first in itertools.product(_orders(level.instrs), _CLOSED, (True, False)):
        planner = _Planner(level, parts, closed, key_first=key_first)
        try:
            found.append((planner.plan(), planner.deeds))
        except _NoWayError:
            continue
    found.sort(key=lambda each: each[0])
    different = {tuple((each.move, each.near) for each in deeds): deeds for _, deeds in reversed(found)}
    return list(reversed(different.values()))


def after(deed: Deed, grid: Grid, place: Cell, carried: Any) -> tuple[Grid, Any]:
    """Return the grid and the carried thing after a deed is done to a cell."""
    there = grid.get(*place)
    if deed.move is None:
        return grid, carried
    grid = copy.copy(grid)
    grid.grid = list(grid.grid)
    if deed.move is MinigridMove.PICKUP:
        grid.set(*place, None)
        return grid, there
    if deed.move is MinigridMove.DROP:
        grid.set(*place, carried)
        return grid, None
    opened: Any = copy.copy(there)
    opened.is_open, opened.is_locked = True, False
    grid.set(*place, opened)
    return grid, carried


def beside(place: Cell) -> list[Cell]:
    """Return the cells next to a cell."""
    return [(place[0] + dx, place[1] + dy) for dx, dy in AHEAD]


def _orders(instruction: Any) -> list[list[Any]]:
    """Return the possible orders of the parts of an instruction."""
    if not hasattr(instruction, "instr_a"):
        return [[instruction]]
    first, then = _orders(instruction.instr_a), _orders(instruction.instr_b)
    if isinstance(instruction, AfterInstr):
        first, then = then, first
    orders = [a + b for a, b in itertools.product(first, then)]
    if isinstance(instruction, AndInstr):
        orders += [b + a for a, b in itertools.product(first, then)]
    return orders


class _Planner:
    """Finds the deeds for the parts of an instruction in one order.

    Args:
        level: The level in its initial state.
        parts: The parts of the instruction, in that order.
        closed: The accepted detour around a closed door, in steps.
        key_first: Whether to fetch the key of a locked door before going to the door.

    Attributes:
        deeds: The deeds found so far.
    """

    def __init__(self, level: Level, parts: Sequence[Any], closed: int, *, key_first: bool) -> None:
        self._closed = closed
        self._key_first = key_first
        self.deeds: list[Deed] = []
        self._grid, self._carried = level.grid, level.carrying
        self._lying: list[tuple[Any, Cell]] = []  # things put down, with the approximate cell
        self._here: Cell = (int(level.agent_pos[0]), int(level.agent_pos[1]))
        self._ahead = self._here
        self._parts = parts
        self._fetching: set[Cell] = set()  # locked doors whose keys are being fetched
        self._spare: set[Cell] = set()  # doors not to open before the later part that requires it
        self._cost = 0

    def plan(self) -> int:
        """Find the deeds; return the estimated number of moves.

        Raises:
            _NoWayError: No deeds were found.
        """
        for number, part in enumerate(self._parts):
            later = (each.desc.obj_set for each in self._parts[number:] if isinstance(each, OpenInstr))
            self._spare = {_place(door.cur_pos) for doors in later for door in doors}
            self._do(part)
        return self._cost

    def _do(self, part: Any) -> None:
        if isinstance(part, GoToInstr):
            things = part.desc.obj_set
            self._reach(self._nearest(things))
            self._add(None, _is_one_of(things), near=self._ahead)
        elif isinstance(part, PickupInstr):
            self._take(part.desc.obj_set)
        elif isinstance(part, OpenInstr):
            doors = [each for each in part.desc.obj_set if not self._at(each.cur_pos).is_open]
            place = self._nearest(doors)
            self._spare.discard(place)
            if not (self._key_first and self._lacks_key(place)):
                self._reach(place)
            self._open(place)
        elif isinstance(part, PutNextInstr):
            self._put(part.desc_move.obj_set, part.desc_fixed.obj_set)
        else:
            raise _NoWayError

    def _put(self, moved: Sequence[Any], fixed: Sequence[Any]) -> None:
        if not _among(self._carried, moved):
            self._take([each for each in moved if not _among(each, fixed)])
        thing = self._carried
        self._reach(self._nearest(fixed), keep=(thing,))
        self._drop(_is_next_to_one_of(fixed), near=self._here)

    def _take(self, things: Sequence[Any]) -> None:
        """Pick up the nearest of some things."""
        if _among(self._carried, things):
            self._drop()
        things = [each for each in things if each.type in _LOOSE]  # the instruction may also match walls
        place = self._nearest(things)
        self._reach(place)
        if self._carried is not None:
            self._drop()
        self._pick_up(place, things)

    def _pick_up(self, place: Cell, things: Sequence[Any]) -> None:
        lying = next((each for each, at in self._lying if at == place and _among(each, things)), None)
        thing = self._grid.get(*place) if lying is None else lying
        self._add(MinigridMove.PICKUP, _is_one_of([thing]), near=place)
        if lying is None:
            self._grid, self._carried = after(self.deeds[-1], self._grid, place, None)
        else:
            self._lying = [each for each in self._lying if each[0] is not lying]
            self._carried = lying

    def _drop(self, fits: _Fits = lambda _grid, _place: True, near: Cell | None = None) -> None:
        self._lying.append((self._carried, self._here))
        self._carried = None
        self._add(MinigridMove.DROP, lambda grid, place: grid.get(*place) is None and fits(grid, place), near)

    def _open(self, place: Cell) -> None:
        door = self._at(place)
        if door.is_locked:
            self._fetch_key(door.color, place)
        self._add(MinigridMove.TOGGLE, lambda _grid, ahead: ahead == place, near=place)
        self._grid, _ = after(self.deeds[-1], self._grid, place, None)

    def _fetch_key(self, colour: str, door: Cell) -> None:
        if _is_key(self._carried, colour):
            return
        if door in self._fetching:
            raise _NoWayError  # the key is behind the door
        things = [*self._grid.grid, *(each for each, _ in self._lying)]
        self._fetching.add(door)
        self._take([each for each in things if _is_key(each, colour)])
        self._reach(door, keep=(self._carried,))
        self._fetching.discard(door)

    def _add(self, move: MinigridMove | None, fits: _Fits, near: Cell | None) -> None:
        if len(self.deeds) >= _MOST_DEEDS:
            raise _NoWayError
        self.deeds.append(Deed(move, fits, near))
        self._cost += 1

    def _at(self, place: Cell) -> Any:
        return self._grid.get(*place)

    def _where(self, thing: Any) -> Cell | None:
        for each, place in self._lying:
            if each is thing:
                return place
        if thing.type == "door":
            return _place(thing.cur_pos)
        for index, each in enumerate(self._grid.grid):
            if each is thing:
                return index % self._grid.width, index // self._grid.width
        return None

    def _nearest(self, things: Sequence[Any]) -> Cell:
        """Return the cell of the thing with the shortest path."""
        places = {place for each in things if (place := self._where(each)) is not None}
        way = self._way(places)
        return way[-1]

    def _reach(self, target: Cell, keep: Collection[Any] = ()) -> None:
        """Go to a position that faces a cell.

        Args:
            target: The cell.
            keep: The things that the agent must carry at the end.
        """
        while True:
            way = self._way({target})[:-1]
            locked = next((each for each in way if self._lacks_key(each)), None)
            if self._key_first and locked is not None:
                self._open(locked)
                continue
            stop = next((each for each in way if not self._is_free(each)), None)
            before = way if stop is None else way[: way.index(stop)]
            self._cost += len(before)
            if before:
                self._here = before[-1]
            self._ahead = target
            if stop is None:
                break
            self._clear(stop, keep)
        for thing in keep:
            if thing is not self._carried:
                self._take([thing])
                self._reach(target, keep)

    def _clear(self, place: Cell, keep: Collection[Any]) -> None:
        there = self._at(place)
        if there.type == "door":
            self._open(place)
            return
        if self._carried is not None:
            self._drop()
        self._pick_up(place, [there])
        self._drop()
        for thing in keep:
            self._take([thing])

    def _lacks_key(self, place: Cell) -> bool:
        """Return whether a cell has a locked door whose key is not in hand."""
        there = self._at(place)
        return (
            there is not None
            and there.type == "door"
            and there.is_locked
            and not _is_key(self._carried, there.color)
        )

    def _is_free(self, place: Cell) -> bool:
        there = self._at(place)
        return there is None or bool(there.can_overlap())

    def _way(self, targets: Collection[Cell]) -> list[Cell]:
        """Return the cells from here to the nearest of some targets, including the target.

        Raises:
            _NoWayError: There is no path.
        """
        came: dict[Cell, Cell | None] = {self._here: None}
        cost = {self._here: 0}
        queue = [(0, self._here)]
        while queue:
            here_cost, here = heapq.heappop(queue)
            if here in targets:
                way = []
                step: Cell | None = here
                while step is not None:
                    way.append(step)
                    step = came[step]
                return way[::-1] if len(way) == 1 else way[-2::-1]
            for place in beside(here):
                more = 1 if place in targets else self._cost_of(place)
                if more is not None and here_cost + more < cost.get(place, here_cost + more + 1):
                    cost[place], came[place] = here_cost + more, here
                    heapq.heappush(queue, (cost[place], place))
        raise _NoWayError

    def _cost_of(self, place: Cell) -> int | None:
        """Return the estimated number of moves for a cell of the path; None for a wall."""
        there = self._at(place)
        if there is None or there.can_overlap():
            return 1
        if there.type == "wall":
            return None
        if there.type != "door":
            return _IN_THE_WAY * (1 if self._carried is None else 2)
        if self._lacks_key(place):
            return _LOCKED
        return _SPARE_DOOR if place in self._spare else self._closed


def _place(place: Any) -> Cell:
    return int(place[0]), int(place[1])


def _is_key(thing: Any, colour: str) -> bool:
    return thing is not None and thing.type == "key" and bool(thing.color == colour)


def _among(thing: Any, things: Sequence[Any]) -> bool:
    return any(thing is each for each in things)


def _is_one_of(things: Sequence[Any]) -> _Fits:
    # Doors are identified by cell, because `after` replaces a door that is opened.
    doors = {_place(each.cur_pos) for each in things if each.type == "door"}
    return lambda grid, place: place in doors or _among(grid.get(*place), things)


def _is_next_to_one_of(things: Sequence[Any]) -> _Fits:
    is_one = _is_one_of(things)
    return lambda grid, place: any(is_one(grid, each) for each in beside(place))
