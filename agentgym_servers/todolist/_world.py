"""The tasks of the TODOList server, generated from a seed, each with an account and its solution."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers._frame.tool_world import ToolTask, ToolWorld, draw_tasks
from agentgym_servers.todolist._account import Account, Project
from agentgym_servers.todolist._orders import ORDERS
from agentgym_servers.todolist._questions import QUESTIONS
from agentgym_servers.todolist._scene import Scene

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["TASKS", "TodoTask", "world_of"]

TASKS = 155
"""The number of tasks."""

_CITIES = ("Lisbon", "Oslo", "Toronto", "Nairobi", "Osaka", "Lyon", "Porto Alegre", "Perth")
_KINDS = QUESTIONS + ORDERS


@dataclass(frozen=True)
class TodoTask(ToolTask):
    """A task.

    Attributes:
        projects: The initial projects of the account.
        end: The state of the account when the task is done.
        today: The user's current date, as YYYY-MM-DD.
        city: The user's city.
    """

    projects: tuple[Project, ...]
    end: tuple[object, ...]
    today: str
    city: str


@lru_cache(maxsize=2)
def world_of(seed: int) -> ToolWorld[None, TodoTask]:
    """Return the tasks of a seed, each with its own account; cached."""
    return ToolWorld(None, draw_tasks(TASKS, _task, "todolist", seed))


def _task(task_id: int, draw: Draw) -> TodoTask | None:
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
        solution=(*draft.calls, FunctionCall("finish", {"answer": draft.answer}).because(draft.reason)),
    )


def _change(account: Account, name: str, arguments: dict[str, Any]) -> None:
    if name == "update_project":
        account.update_project(arguments["project_id"], is_favorite=arguments["is_favorite"] == "True")
    else:
        getattr(account, name)(**arguments)
