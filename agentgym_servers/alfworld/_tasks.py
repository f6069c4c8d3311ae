"""The tasks: a room, where its objects lie, and a goal, from a seed and a task id.

The training tasks of a seed have the types, objects and receptacles of AgentGym's training tasks, in another
order, and each test task has those of one of them. The training tasks are in 108 rooms. Test tasks with even
ids are in these rooms too, and with odd ids in the other twelve. Each task is generated separately.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import NamedTuple

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.draw import Draw
from agentgym_servers.alfworld._goals import LOOK, TYPES, HouseGoal
from agentgym_servers.alfworld._house import House, State
from agentgym_servers.alfworld._object_kinds import LAMP, TOOLS, camel_case, in_order, kind_of
from agentgym_servers.alfworld._places import FOR_ONE, places_of
from agentgym_servers.alfworld._rooms import UNSEEN, Room, rooms

__all__ = ["TASKS", "TRAIN", "HouseTask", "is_unseen", "task_of"]

TASKS = 2620
"""The number of tasks."""

TRAIN = 2420
"""The number of training tasks, whose ids come first."""

_MOST_TARGETS = 4


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
    placed = _placed(draw, room, goal)
    objects = in_order(placed)
    names = (goal.type, camel_case(goal.object), "None", camel_case(goal.receptacle), str(room.number))
    return HouseTask(
        task_id,
        room,
        goal,
        House(room.receptacles, objects, room.fixed),
        State(tuple(placed[name] for name in objects)),
        f"{'-'.join(names)}/trial_T{seed:08}_000000_{task_id:06}",
    )


class _Aim(NamedTuple):
    """The type, the object and the receptacle of a task; in place of a receptacle, the lamp."""

    type: str
    object: str
    receptacle: str


@cache
def _aims() -> tuple[_Aim, ...]:
    """Return the aims of AgentGym's training tasks, equal ones in a row."""
    counts = read_json("alfworld", "tasks.json")
    return tuple(
        _Aim(name, kind, receptacle)
        for name in TYPES
        for kind, receptacles in counts[name].items()
        for receptacle, count in receptacles.items()
        for _ in range(count)
    )


def _aim_of(seed: int, task_id: int) -> _Aim:
    """Return the aim of a task: each split has the types in the proportions of AgentGym's training tasks."""
    first = Draw("alfworld", seed, "aims").below(TRAIN)
    # The steps are coprime to the numbers of tasks, so that they visit each position once.
    test = (task_id - TRAIN) // 2 * 61 % 100 * TRAIN // 100
    return _aims()[(first + (task_id * 1497 if task_id < TRAIN else test)) % TRAIN]


def _room_and_goal(draw: Draw, seed: int, task_id: int) -> tuple[Room, HouseGoal]:
    aim = _aim_of(seed, task_id)
    unseen = is_unseen(task_id)
    while not (numbers := _rooms_for(aim, unseen=unseen)):
        aim = draw.one([other for other in _aims() if other.type == aim.type])
    wording = draw.one(TYPES[aim.type].wordings)
    return rooms()[draw.one(numbers)], HouseGoal(*aim, wording.format(aim.object, aim.receptacle))


@cache
def _rooms_for(aim: _Aim, *, unseen: bool) -> tuple[int, ...]:
    """Return the rooms, of training or not, where an aim can be set."""
    return tuple(
        number for number, room in rooms().items() if (number in UNSEEN) == unseen and _can_set(aim, room)
    )


def _can_set(aim: _Aim, room: Room) -> bool:
    places = places_of(room.number)
    if aim.object not in places:
        return False
    if aim.type == LOOK:
        return LAMP in places
    tool = TOOLS.get(TYPES[aim.type].treatment)
    if aim.receptacle not in room.kinds or (tool and tool not in room.kinds):
        return False
    kept_out = _kept_out(aim.type, aim.receptacle)
    start = [kind for kind in map(kind_of, places[aim.object].weights) if kind != kept_out]
    return len(start) >= TYPES[aim.type].needed or not FOR_ONE.issuperset(start)


def _kept_out(type_name: str, receptacle: str) -> str:
    """Return the kind of receptacle where no object of the task lies at the start; empty if there is none.

    As in ALFRED, it is the tool of the treatment. Without a treatment it is the receptacle of the goal, or
    the task would be done.
    """
    return TOOLS.get(TYPES[type_name].treatment, "" if type_name == LOOK else receptacle)


def _placed(draw: Draw, room: Room, goal: HouseGoal) -> dict[str, str]:
    """Return the objects of a room that lie in receptacles, each with its receptacle."""
    placed: dict[str, str] = {}
    full: set[str] = set()
    kinds = places_of(room.number)
    for kind in sorted(kinds, key=lambda kind: kind != goal.object):  # the object of the task finds room
        its, is_target = kinds[kind], kind == goal.object
        kept_out = _kept_out(goal.type, goal.receptacle) if is_target else ""
        needed = is_target or (goal.is_look and kind == LAMP)
        count = draw.between(goal.count, _MOST_TARGETS) if is_target else its.number(draw)
        for number in range(count):
            if not needed and draw.below(100) < its.hidden:
                continue
            place = its.place(draw, full, without=kept_out)
            if place:
                placed[f"{kind} {number + 1}"] = place
                full |= {place} if kind_of(place) in FOR_ONE else set()
    return placed
