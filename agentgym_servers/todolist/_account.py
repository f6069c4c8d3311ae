"""An account: its projects, their tasks, and the operations on them."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import date
from typing import Any

from agentgym_servers._frame.tool_tasks import CallRefused

__all__ = ["Account", "Project", "Todo", "is_day"]

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True)
class Todo:
    """A task.

    Attributes:
        todo_id: Its id.
        order: Its position in the project, from 1.
        content: The name of the task.
        description: Where to do it, and what to bring.
        due: The due date, as YYYY-MM-DD.
        minutes: Its duration.
        priority: From 1 (normal) to 4 (urgent).
    """

    todo_id: str
    order: int
    content: str
    description: str
    due: str
    minutes: int
    priority: int


@dataclass(frozen=True)
class Project:
    """A project.

    Attributes:
        project_id: Its id.
        order: Its position in the account, from 1.
        name: Its name.
        todos: Its tasks.
        favorite: Whether it is a favourite.
    """

    project_id: str
    order: int
    name: str
    todos: tuple[Todo, ...]
    favorite: bool = False


class Account:
    """One user's projects and open tasks. Results have the format of AgentGym's functions over Todoist.

    Args:
        projects: The initial projects.
    """

    def __init__(self, projects: tuple[Project, ...]) -> None:
        self._projects = {each.project_id: each for each in projects}
        self._todos = {todo.todo_id: todo for each in projects for todo in each.todos}
        self._completed: set[str] = set()

    @property
    def state(self) -> tuple[object, ...]:
        """Everything that can change: favourites, open tasks, completed ones; states can be compared."""
        favorites = tuple(each.favorite for each in self._projects.values())
        return favorites, tuple(self._todos.values()), frozenset(self._completed)

    def get_projects(self) -> list[dict[str, Any]]:
        """Return all projects."""
        return [_project_record(each) for each in self._projects.values()]

    def update_project(self, project_id: str, is_favorite: bool) -> dict[str, Any]:
        """Add a project to the favourites, or remove it.

        Raises:
            CallRefused: There is no such project.
        """
        self._projects[project_id] = replace(self._project(project_id), favorite=is_favorite)
        record = _project_record(self._projects[project_id])
        return {"message": "Update the project successfully.", "project": record}

    def get_tasks(self, project_id: str) -> list[dict[str, Any]]:
        """Return the open tasks of a project.

        Raises:
            CallRefused: There is no such project.
        """
        todos = self._project(project_id).todos
        return [_todo_record(self._todos[each.todo_id]) for each in todos if each.todo_id in self._todos]

    def get_task_description(self, task_id: str) -> dict[str, Any]:
        """Return the description of a task.

        Raises:
            CallRefused: There is no such task.
        """
        todo = self._todo(task_id)
        return {"id": todo.todo_id, "content": todo.content, "description": todo.description}

    def get_task_duration(self, task_id: str) -> dict[str, Any]:
        """Return the duration of a task.

        Raises:
            CallRefused: There is no such task.
        """
        todo = self._todo(task_id)
        return {"id": todo.todo_id, "content": todo.content, "duration": f"{todo.minutes}(minute)"}

    def complete_task(self, task_id: str) -> dict[str, Any]:
        """Remove a task as completed.

        Raises:
            CallRefused: There is no such task.
        """
        record = self._remove(task_id)
        del record["is_completed"]
        self._completed.add(task_id)
        return {"message": "Complete task successfully.", "task": record}

    def update_task(self, task_id: str, due_date: str) -> dict[str, Any]:
        """Change the due date of a task.

        Raises:
            CallRefused: There is no such task or date.
        """
        todo = self._todo(task_id)
        if not is_day(due_date):
            raise CallRefused("Invalid due date: a day of the calendar, as YYYY-MM-DD, is expected")
        self._todos[task_id] = replace(todo, due=due_date)
        return {"message": "Update the task successfully", "task": _todo_record(self._todos[task_id])}

    def delete_task(self, task_id: str) -> dict[str, Any]:
        """Remove a task.

        Raises:
            CallRefused: There is no such task.
        """
        return {"message": "Delete the task successfully.", "task": self._remove(task_id)}

    def _remove(self, task_id: str) -> dict[str, Any]:
        if task_id not in self._todos:
            raise CallRefused(f"Task {task_id} is not exists.")
        return _todo_record(self._todos.pop(task_id))

    def _project(self, project_id: str) -> Project:
        try:
            return self._projects[project_id]
        except KeyError:
            raise CallRefused("Project not found") from None

    def _todo(self, task_id: str) -> Todo:
        try:
            return self._todos[task_id]
        except KeyError:
            raise CallRefused("Task not found") from None


def is_day(text: str) -> bool:
    """Return whether text is a valid date in the format YYYY-MM-DD."""
    try:
        return _DAY.fullmatch(text) is not None and date.fromisoformat(text).isoformat() == text
    except ValueError:
        return False


def _project_record(project: Project) -> dict[str, Any]:
    return {
        "id": project.project_id,
        "order": project.order,
        "color": "charcoal",
        "name": project.name,
        "is_favorite": project.favorite,
    }


def _todo_record(todo: Todo) -> dict[str, Any]:
    return {
        "id": todo.todo_id,
        "order": todo.order,
        "content": todo.content,
        "is_completed": False,
        "priority": todo.priority,
        "due_date": todo.due,
    }
