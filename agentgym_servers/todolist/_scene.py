"""The building blocks of TODOList's tasks: an account, a date, and the calls of solutions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers.todolist._account import Project, Todo

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["PROJECTS", "Chore", "Scene", "change", "listed", "look_up", "look_up_durations", "look_up_one"]

_FIRST_DAY = date(2024, 3, 1)
_DAYS = 500
_AROUND = (-6, 18)  # the due dates of tasks, in days from today
_MINUTES = tuple(range(10, 130, 5))


class Chore(NamedTuple):
    """A possible task of a project.

    Attributes:
        content: The name of the task.
        place: Where to do it.
        bring: The things to bring.
    """

    content: str
    place: str
    bring: str


PROJECTS = {
    name: tuple(Chore(**chore) for chore in chores)
    for name, chores in read_json("todolist", "projects.json").items()
}
"""The chores of each project, by project name. No chore belongs to two projects."""


@dataclass
class Scene:
    """A random account.

    Attributes:
        draw: Draws of this task.
        today: The user's current date.
        projects: The projects of the account.
    """

    draw: Draw
    today: date = field(init=False)
    projects: tuple[Project, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.today = _FIRST_DAY + timedelta(days=self.draw.below(_DAYS))
        names = self.draw.some(list(PROJECTS), self.draw.between(4, 5))
        self._next_id = 7_000_000_000 + self.draw.below(900_000_000)
        self.projects = tuple(self._make_project(name, order) for order, name in enumerate(names, start=1))

    def _make_project(self, name: str, order: int) -> Project:
        chores = self.draw.some(PROJECTS[name], self.draw.between(3, 5))
        project_id = self._id()
        todos = tuple(
            Todo(
                todo_id=self._id(),
                order=number,
                content=chore.content,
                description=f"Place: {chore.place}. Bring: {chore.bring}.",
                due=self.day(self.draw.between(*_AROUND)),
                minutes=self.draw.one(_MINUTES),
                priority=self.draw.between(1, 4),
            )
            for number, chore in enumerate(chores, start=1)
        )
        return Project(project_id, order, name, todos)

    def _id(self) -> str:
        self._next_id += 1
        return str(self._next_id)

    def day(self, days: int) -> str:
        """Return the date a number of days after today, as YYYY-MM-DD."""
        return (self.today + timedelta(days=days)).isoformat()

    def days_until(self, todo: Todo) -> int:
        """Return the number of days from today to a task's due date; negative for a past date."""
        return (date.fromisoformat(todo.due) - self.today).days

    def project(self) -> Project:
        """Return a random project."""
        return self.draw.one(self.projects)

    def todo(self) -> tuple[Project, Todo]:
        """Return a random task, with its project."""
        project = self.project()
        return project, self.draw.one(project.todos)

    def two_todos(self) -> tuple[tuple[Project, Todo], tuple[Project, Todo]]:
        """Return two random tasks of different projects."""
        one, other = self.draw.some(self.projects, 2)
        return (one, self.draw.one(one.todos)), (other, self.draw.one(other.todos))

    @property
    def todos(self) -> list[Todo]:
        """All tasks."""
        return [todo for project in self.projects for todo in project.todos]


def look_up(
    projects: Iterable[Project], *, today: date | None = None, sought: Todo | None = None
) -> tuple[FunctionCall, ...]:
    """Return the calls that list the tasks of some projects.

    Args:
        projects: The projects.
        today: The current date, if it matters: it is looked up first.
        sought: The task that only the last project has, if the goal does not give its project.
    """
    first, listing = FunctionCall("get_user_current_date", {}), FunctionCall("get_projects", {})
    need = "I need the ids of the projects."
    calls = [listing.because(need)]
    if today is not None:
        calls = [first.because("I need today's date."), listing.because(f"Today is {today}.", need)]
    for number, project in enumerate(projects):
        missed = "" if sought is None or number == 0 else f'"{sought.content}" is not there.'
        call = FunctionCall("get_tasks", {"project_id": project.project_id})
        calls.append(call.because(missed, f'"{project.name}" is {project.project_id}. I need its tasks.'))
    return tuple(calls)


def look_up_one(name: str, todo: Todo) -> FunctionCall:
    """Return the call that looks up a property of a task: its ``duration`` or ``description``."""
    call = FunctionCall(f"get_task_{name}", {"task_id": todo.todo_id})
    return call.because(f'"{todo.content}" is {todo.todo_id}. I need its {name}.')


def look_up_durations(todos: Iterable[Todo]) -> tuple[FunctionCall, ...]:
    """Return the calls that look up the durations of some tasks."""
    return tuple(look_up_one("duration", each) for each in todos)


def change(
    name: str, todos: Iterable[Todo], due: str | None = None, why: str = ""
) -> tuple[FunctionCall, ...]:
    """Return the calls that change some tasks in the same way.

    Args:
        name: The function.
        todos: The tasks.
        due: The new due date, if it changes.
        why: Why it is these tasks, or this date.
    """
    more = {} if due is None else {"due_date": due}
    verb = name.removesuffix("_task")
    what = f"{verb} it" if due is None else f"set its due date to {due}"
    calls = [
        FunctionCall(name, {"task_id": each.todo_id, **more}).because(
            why if number == 0 else "", f'"{each.content}" is {each.todo_id}. I {what}.'
        )
        for number, each in enumerate(todos)
    ]
    return tuple(calls)


def listed(todos: Iterable[Todo], field: str) -> str:
    """Return tasks with one of their properties, such as ``due``, for a thought."""
    return ", ".join(f"{each.content} {getattr(each, field)}" for each in todos)
