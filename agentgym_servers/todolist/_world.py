"""The tasks of the TODOList server, each with an account and its solution. All are made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import Call
from agentgym_servers.todolist._account import Account, Project
from agentgym_servers.todolist._orders import ORDERS
from agentgym_servers.todolist._questions import QUESTIONS
from agentgym_servers.todolist._scene import Scene

__all__ = ["TASKS", "TodoTask", "World", "world_of"]

TASKS = 155
"""How many tasks there are."""

_CITIES = ("Lisbon", "Oslo", "Toronto", "Nairobi", "Osaka", "Lyon", "Porto Alegre", "Perth")
_KINDS = QUESTIONS + ORDERS
_ATTEMPTS = 1000  # far more than any task of the first 200 seeds takes, so that no seed runs for ever


@dataclass(frozen=True)
class TodoTask:
    """A task.

    Attributes:
        goal: What the agent is told to do.
        answer: What ``finish`` must be given.
        projects: What is in the account at first.
        end: The state of the account in which the task is done.
        today: The user's current date, as YYYY-MM-DD.
        city: Where the user is.
        solution: The calls that reach it, with ``finish``.
    """

    goal: str
    answer: Any
    projects: tuple[Project, ...]
    end: tuple[object, ...]
    today: str
    city: str
    solution: tuple[Call, ...]


@dataclass(frozen=True)
class World:
    """All tasks of a seed.

    Attributes:
        tasks: The tasks by their ids; no two have the same goal.
    """

    tasks: tuple[TodoTask, ...]


@lru_cache(maxsize=2)
def world_of(seed: int) -> World:
    """Return the world of a seed, made once."""
    made: dict[str, TodoTask] = {}
    for task_id in range(TASKS):
        drawn = (_made(Draw("todolist", seed, task_id, attempt), task_id) for attempt in range(_ATTEMPTS))
        task = next(each for each in drawn if each is not None and each.goal not in made)
        made[task.goal] = task
    return World(tuple(made.values()))


def _made(draw: Draw, task_id: int) -> TodoTask | None:
    scene = Scene(draw)
    draft = _KINDS[task_id % len(_KINDS)](scene)
    if draft is None:
        return None
    account = Account(scene.projects)
    for name, arguments in draft.calls:
        if name.startswith(("complete", "delete", "update")):
            _change(account, name, arguments)
    return TodoTask(
        goal=draft.goal,
        answer=draft.answer,
        projects=scene.projects,
        end=account.state,
        today=scene.today.isoformat(),
        city=draw.one(_CITIES),
        solution=(*draft.calls, Call("finish", {"answer": draft.answer})),
    )


def _change(account: Account, name: str, arguments: dict[str, Any]) -> None:
    if name == "update_project":
        account.update_project(arguments["project_id"], is_favorite=arguments["is_favorite"] == "True")
    else:
        getattr(account, name)(**arguments)
