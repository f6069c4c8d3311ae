"""Shortens gold paths, which search room after room, and open doors and take things twice.

Each rule removes actions that should change nothing that matters. Time passes with most actions, so a
shortened path has to be tried.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby

__all__ = ["shorter"]

_FREE = frozenset({"look around", "inventory", "task"})
_OPEN = re.compile(r"open door to (?P<room>.+)")
_GO = re.compile(r"go to (?P<room>.+)")
_CONTAINER = re.compile(r"open (?!door to )(?P<name>.+)")
_TAKE = re.compile(r"pick up (?P<thing>.+)")
_MOVE = re.compile(r"move (?P<thing>.+?) to (?P<place>.+)")
_PASSIVE = re.compile(r"wait1|(?:examine|use thermometer) .+")
_LONG = 11  # the number of moves of `wait`
_MEASUREMENT = 2  # the number of actions of one: look at it, and use the thermometer
_PUT = re.compile(r"(?:move|drop|put down|pour|dunk|eat) .+")


def shorter(path: Iterable[str]) -> list[str]:
    """Return a path without the actions that should not be needed."""
    busy = [action for action in path if action not in _FREE]
    useful = _without_vain_searches(_without_failures(_without_second_takes(busy)))
    return _with_long_waits(_without_second_openings(_without_detours(useful)))


def _without_failures(path: Sequence[str]) -> list[str]:
    """Remove uses of broken devices: a thing is put into one, taken back, and put into another one."""
    kept = list(path)
    for start in range(len(kept) - 1, -1, -1):
        length, thing, device = _trial(kept[start:])
        later = kept[start + length :]
        goal = device if device == "sink" else ""
        if length and any(action.startswith(f"move {thing} to {goal}") for action in later):
            del kept[start : start + length]
    return kept


def _without_vain_searches(path: Sequence[str]) -> list[str]:
    """Remove openings of containers before the room is left, unless a later action names the container."""
    kept: list[str] = []  # in reverse
    leaving = False
    for i in range(len(path) - 1, -1, -1):
        container = _CONTAINER.fullmatch(path[i])
        if container is None:
            leaving = _is_walk(path[i])
        if container and leaving and not any(container["name"] in later for later in path[i + 1 :]):
            continue
        kept.append(path[i])
    return kept[::-1]


def _trial(path: Sequence[str]) -> tuple[int, str, str]:
    """Return the number of actions that try a device at the start of a path, the thing and the device."""
    match = _MOVE.fullmatch(path[0])
    if match:
        thing, device = match["thing"], match["place"]
        for uses in ((f"activate {device}",), (f"activate {device}", f"deactivate {device}")):
            trial = [path[0], *uses, f"pick up {thing}"]
            if list(path[: len(trial)]) == trial:
                return len(trial), thing, device
    return 0, "", ""


def _with_long_waits(path: Sequence[str]) -> list[str]:
    """Replace actions that only pass time by one that takes as long; the last measurement stays."""
    kept: list[str] = []
    for passive, group in groupby(path, key=lambda action: bool(_PASSIVE.fullmatch(action))):
        run = list(group)
        last = 0 if set(run) == {"wait1"} else _MEASUREMENT
        while passive and len(run) - last >= _LONG:
            kept.append("wait")
            del run[:_LONG]
        kept += run
    return kept


def _without_detours(path: Sequence[str]) -> list[str]:
    """Remove walks that return to a room, if nothing was done on the way."""
    kept: list[str] = []
    rooms: list[str] = []  # the room after each action that was kept
    for action in path:
        match = _GO.fullmatch(action)
        room = match["room"] if match else (rooms[-1] if rooms else "")
        kept.append(action)
        rooms.append(room)
        if match:
            walk = len(kept)
            while walk and _is_walk(kept[walk - 1]):
                walk -= 1
            returns = [i for i in range(max(walk - 1, 0), len(kept) - 1) if rooms[i] == room]
            if returns:
                del kept[returns[0] + 1 :], rooms[returns[0] + 1 :]
    return kept


def _is_walk(action: str) -> bool:
    return bool(_GO.fullmatch(action) or _OPEN.fullmatch(action))


def _without_second_openings(path: Sequence[str]) -> list[str]:
    """Remove openings of doors that were opened before, from either side."""
    room, opened, kept = "", set(), []
    for action in path:
        opening, going = _OPEN.fullmatch(action), _GO.fullmatch(action)
        if opening:
            door = frozenset({room, opening["room"]})
            if door in opened:
                continue
            opened.add(door)
        if going:
            room = going["room"]
        kept.append(action)
    return kept


def _without_second_takes(path: Sequence[str]) -> list[str]:
    """Remove takings of things that were taken before, if nothing was put anywhere since."""
    held: set[str] = set()
    kept = []
    for action in path:
        taking = _TAKE.fullmatch(action)
        if taking and taking["thing"] in held:
            continue
        if taking:
            held.add(taking["thing"])
        elif _PUT.fullmatch(action):
            held.clear()
        kept.append(action)
    return kept
