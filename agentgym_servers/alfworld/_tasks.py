"""The tasks: a room, where its objects lie, and a goal, from a seed and a task id.

Each task is generated separately, from draws that no other task shares. The training tasks are in 108 rooms.
Test tasks with even ids are in these rooms too, and with odd ids in the other twelve.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from agentgym_servers._frame.draw import Draw
from agentgym_servers.alfworld._goals import LOOK, TYPES, HouseGoal
from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._object_kinds import (
    LAMP,
    TOOLS,
    ObjectKind,
    camel_case,
    kind_of,
    object_kinds_of,
)
from agentgym_servers.alfworld._rooms import KINDS, UNSEEN, Room, room_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

__all__ = ["TASKS", "TRAIN", "HouseTask", "is_unseen", "task_of"]

TASKS = 2620
"""The number of tasks."""

TRAIN = 2420
"""The number of training tasks, whose ids come first."""

_USUAL = 0.8  # the share of objects that lie where they usually do
_PRESENT = 0.5  # the share of a room's possible kinds of objects that are there
_MOST_ALIKE = 2
_MOST_TARGETS = 3


@dataclass(frozen=True)
class HouseTask:
    """A task.

    Attributes:
        id: Its id.
        room: Its room.
        goal: Its goal.
        house: Its receptacles and objects.
        start: Where everything is at the start.
        name: Its name, in the form of ALFWorld's folders of games.
    """

    id: int
    room: Room
    goal: HouseGoal
    house: House
    start: State
    name: str


def is_unseen(task_id: int) -> bool:
    """Return whether a task is in a room that no training task is in."""
    return task_id >= TRAIN and task_id % 2 == 1


@lru_cache(maxsize=256)
def task_of(seed: int, task_id: int) -> HouseTask:
    """Return a task of a seed.

    Raises:
        ValueError: There is no such task.
    """
    if task_id not in range(TASKS):
        raise ValueError(f"there is no task {task_id}: task ids are 0 to {TASKS - 1}")
    draw = Draw("alfworld", seed, "task", task_id)
    room, goal = _room_and_goal(draw, seed, task_id)
    placed = dict(sorted(_placed(draw, room, goal)))
    names = (goal.type, camel_case(goal.object), "None", camel_case(goal.receptacle), str(room.number))
    return HouseTask(
        task_id,
        room,
        goal,
        House(room.receptacles, tuple(placed)),
        State(tuple(placed.values())),
        f"{'-'.join(names)}/trial_T{seed:08}_000000_{task_id:06}",
    )


def _type_of(task_id: int) -> str:
    """Return the type of a task: each split has the types in the proportions of ALFWorld's training games."""
    # The step is coprime to the number of tasks, so that it visits each position once.
    position, count, step = (task_id, TRAIN, 1497) if task_id < TRAIN else ((task_id - TRAIN) // 2, 100, 61)
    left = (position * step % count + 0.5) / count * sum(each.games for each in TYPES.values())
    for name, each in TYPES.items():
        left -= each.games
        if left < 0:
            return name
    raise AssertionError("the shares of the types do not add up")


def _room_and_goal(draw: Draw, seed: int, task_id: int) -> tuple[Room, HouseGoal]:
    kind = _type_of(task_id)
    numbers = [
        number for numbers in KINDS.values() for number in numbers if (number in UNSEEN) == is_unseen(task_id)
    ]
    while True:
        room = room_of(seed, draw.one(numbers))
        pairs = list(_pairs(room, kind))
        if pairs:
            target, receptacle = draw.one(pairs)
            wording = draw.one(TYPES[kind].wordings)
            return room, HouseGoal(kind, target, receptacle, wording.format(target, receptacle))


def _pairs(room: Room, kind: str) -> Iterable[tuple[str, str]]:
    """Return the objects and receptacles for which a task of a type can be set in a room."""
    present = {kind_of(name) for name in room.receptacles}
    treatment = TYPES[kind].treatment
    tool = TOOLS.get(treatment, "")
    if tool and tool not in present:
        return
    for each in object_kinds_of(room.kind):
        places = [receptacle for receptacle in each.holders if receptacle in present]
        if not each.portable or not places or (treatment and treatment not in each.treatments):
            continue
        if kind == LOOK:
            if any(lamp.kind == LAMP for lamp in object_kinds_of(room.kind)):
                yield each.kind, LAMP
        elif len(places) > 1:  # it must lie somewhere else at the start
            yield from ((each.kind, receptacle) for receptacle in places if receptacle != tool)


def _placed(draw: Draw, room: Room, goal: HouseGoal) -> Iterable[tuple[str, str]]:
    """Return the objects of a room, each with its receptacle."""
    receptacles: dict[str, list[str]] = {}
    for name in room.receptacles:
        receptacles.setdefault(kind_of(name), []).append(name)
    for each in object_kinds_of(room.kind):
        places = receptacles
        if each.kind == LAMP:
            count = 1
        elif each.kind == goal.object:
            count = draw.between(goal.count, _MOST_TARGETS)
            places = {kind: names for kind, names in receptacles.items() if kind != goal.receptacle}
        else:
            count = draw.between(1, _MOST_ALIKE) if draw.chance(_PRESENT) else 0
        for number in range(count):
            place = _place(draw, each, places)
            if place:
                yield f"{each.kind} {number + 1}", place


def _place(draw: Draw, each: ObjectKind, receptacles: Mapping[str, Sequence[str]]) -> str:
    """Return one of the receptacles, which are given by kind, for an object; empty if none may contain it."""
    usual, other = ([kind for kind in kinds if kind in receptacles] for kinds in (each.usual, each.other))
    kinds = (usual or other) if draw.chance(_USUAL) else (other or usual)
    return draw.one(receptacles[draw.one(kinds)]) if kinds else ""
