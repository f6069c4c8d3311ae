"""The application of the TODOList server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.servers.app import MAX_BODY_BYTES, MAX_ENVS, Failed
from agentgym_gym.servers.held import KEEP_SECONDS
from agentgym_gym.servers.todolist.account import Account, Refused
from agentgym_gym.servers.todolist.world import TASKS, TodoTask, tasks_of
from agentgym_gym.servers.tools import AnswerTools, Given, tool_app

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["TodoTools", "create_app"]


class TodoTools(AnswerTools):
    """The functions of one account, and the task that is to be done in it.

    Args:
        task: The task.
    """

    names = (
        "get_user_current_date",
        "get_user_current_location",
        "get_projects",
        "update_project",
        "get_tasks",
        "get_task_description",
        "get_task_duration",
        "complete_task",
        "update_task",
        "delete_task",
        "check_valid_actions",
        "finish",
    )

    def __init__(self, task: TodoTask) -> None:
        self.goal = task.goal
        self.answer = task.answer
        self._task = task
        self._account = Account(task.projects)

    def judge(self, answer: Any) -> float:
        """Return 1 for the right answer if the account is left as the task wants it, else 0."""
        return super().judge(answer) if self._account.state == self._task.end else 0.0

    def call(self, name: str, given: Given) -> object:
        """Call a function of the account."""
        try:
            return self._call(name, given)
        except Refused as refused:
            return refused

    def _call(self, name: str, given: Given) -> object:
        simple = {
            "get_user_current_date": lambda: self._task.today,
            "get_user_current_location": lambda: self._task.city,
            "get_projects": self._account.get_projects,
        }
        if name in simple:
            return simple[name]()
        if name == "get_tasks":
            return self._account.get_tasks(str(given["project_id"]))
        if name == "update_project":
            return self._account.update_project(str(given["project_id"]), _truth(given["is_favorite"]))
        if name == "update_task":
            return self._account.update_task(str(given["task_id"]), str(given["due_date"]))
        return getattr(self._account, name)(str(given["task_id"]))


def _truth(value: object) -> bool:
    """Return a truth value that may be written as text.

    Raises:
        Refused: It is neither.
    """
    words = {"true": True, "false": False}
    try:
        return words[str(value).lower()]
    except KeyError:
        raise Refused("Invalid is_favorite: True or False is expected") from None


def create_app(
    *,
    max_envs: int = MAX_ENVS,
    max_body_bytes: int = MAX_BODY_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    seed: int = 0,
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time.
        max_body_bytes: How large a request body may be; a larger one is answered 413.
        keep_seconds: For how long it keeps an environment that nobody asks for.
        seed: Of the accounts and tasks.

    Raises:
        BadOption: A limit is below 1, or the seed below 0.
    """

    def start(task_id: int) -> TodoTools:
        if task_id not in range(TASKS):
            raise Failed(f"The task {task_id} is not valid.")
        return TodoTools(tasks_of(seed)[task_id])

    app = tool_app(
        "TODOList",
        start,
        seed=seed,
        max_envs=max_envs,
        max_body_bytes=max_body_bytes,
        keep_seconds=keep_seconds,
    )
    tasks_of(seed)  # made now, once the options are checked, so that no request waits for it
    return app
