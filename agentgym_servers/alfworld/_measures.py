"""Measures of generated houses and of ALFWorld's games: how full they are, and how long a search takes.

``docs/servers.md`` shows both. ``tools/alfworld_facts.py`` measures ALFWorld's games and writes
``data/games.json``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cache
from statistics import mean, quantiles

from agentgym_gym.envs.alfworld import ALFWORLD
from agentgym_servers._frame.data_files import read_json
from agentgym_servers.alfworld._object_kinds import LAMP, OPENABLE, kind_of
from agentgym_servers.alfworld._rooms import KINDS
from agentgym_servers.alfworld._solution import searching
from agentgym_servers.alfworld._tasks import TRAIN, HouseTask, task_of

__all__ = ["comparison", "measures"]

_EVERY = 10  # every tenth training task is measured


@cache
def comparison() -> dict[str, tuple[float, float]]:
    """Return measures of training tasks with seed 0, each with the one of ALFWorld's games."""
    made = measures([task_of(0, task_id) for task_id in range(0, TRAIN, _EVERY)])
    real = read_json("alfworld", "games.json")
    return {name: (value, real[name]) for name, value in made.items()}


def measures(tasks: Sequence[HouseTask]) -> dict[str, float]:
    """Return the measures of tasks by their names.

    Counts of receptacles are means over the rooms, and counts of objects over all receptacles of the tasks.
    """
    rooms = {task.room.number: task for task in tasks}.values()
    found = {
        f"receptacles of a {kind}": mean(len(task.house.receptacles) for task in _of(rooms, kind))
        for kind in KINDS
    }
    found["cabinets of a kitchen"] = mean(
        sum(kind_of(name) == "cabinet" for name in task.house.receptacles) for task in _of(rooms, "kitchen")
    )
    found["openable kinds: share that cannot be closed"] = sum(len(task.house.fixed) for task in rooms) / sum(
        kind_of(name) in OPENABLE for task in rooms for name in task.house.receptacles
    )
    for kind in KINDS:
        its = _of(tasks, kind)
        receptacles = sum(len(task.house.receptacles) for task in its)
        found[f"objects in a receptacle of a {kind}"] = (
            sum(len(task.house.objects) for task in its) / receptacles
        )
        filled = sum(len(set(task.start.places)) for task in its)
        found[f"empty receptacles of a {kind}, share"] = 1 - filled / receptacles
    searches = [_search(task) for task in tasks]
    looks = [count for _, counts in searches for count in counts]
    found["objects where the expert looks"] = mean(looks)
    found["empty receptacles among these, share"] = looks.count(0) / len(looks)
    turns = [length for length, _ in searches]
    found["turns of the expert"] = mean(turns)
    cuts = quantiles(turns, n=20, method="inclusive")
    found["turns of the expert, 5th percentile"] = cuts[0]
    found["turns of the expert, 95th percentile"] = cuts[-1]
    goals = {LAMP, *(name for its in read_json("alfworld", "tasks.json").values() for name in its)}
    found["objects of kinds without a task, per game"] = mean(
        sum(kind_of(name) not in goals for name in task.house.objects) for task in tasks
    )
    return found


def _of(tasks: Iterable[HouseTask], kind: str) -> list[HouseTask]:
    return [task for task in tasks if task.room.kind == kind]


def _search(task: HouseTask) -> tuple[int, list[int]]:
    """Return the number of the expert's turns, and how many objects each receptacle shows it."""
    state, counts = task.start, []
    turns = searching(task, ALFWORLD.max_turns)
    for text, _ in turns:
        command = task.house.commands(state)[text]
        state = task.house.after(state, command)
        if command.verb in ("go", "open") and not task.house.is_closed(state, state.at):
            counts.append(len(task.house.inside(state, state.at)))
    return len(turns), counts
