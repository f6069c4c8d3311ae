"""The application of the TODOList server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.tool_tasks import CallRefused
from agentgym_servers._frame.tools import ActionInput, AnswerTools, tool_app
from agentgym_servers.todolist._account import Account
from agentgym_servers.todolist._world import TodoTask, world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["TodoTools", "create_app"]


class TodoTools(AnswerTools):
    """The functions of one account, and the task to do in it.

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
        """Return 1 for the right answer if the account is in the task's final state, else 0."""
        return super().judge(answer) if self._account.state == self._task.end else 0.0

    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function of the account."""
        simple = {
            "get_user_current_date": lambda: self._task.today,
            "get_user_current_location": lambda: self._task.city,
            "get_projects": self._account.get_projects,
        }
        if name in simple:
            return simple[name]()
        if name == "get_tasks":
            return self._account.get_tasks(str(arguments["project_id"]))
        if name == "update_project":
            return self._account.update_project(
                str(arguments["project_id"]), _boolean(arguments["is_favorite"])
            )
        if name == "update_task":
            return self._account.update_task(str(arguments["task_id"]), str(arguments["due_date"]))
        return getattr(self._account, name)(str(arguments["task_id"]))


def _boolean(value: object) -> bool:
    """Return a boolean, which the agent may write as text.

    Raises:
        CallRefused: The value is not a boolean.
    """
    words = {"true": True, "false": False}
    try:
        return words[str(value).lower()]
    except KeyError:
        raise CallRefused("Invalid is_favorite: True or False is expected") from None


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    return tool_app("TODOList", options, world_of(options.seed).tasks, TodoTools)
