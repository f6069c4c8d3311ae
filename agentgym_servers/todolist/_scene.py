"""What a task of TODOList is made of: an account, a day, and the calls that solve it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import TYPE_CHECKING, NamedTuple

from agentgym_servers._frame.data_files import read_json
from agentgym_servers._frame.tool_tasks import Call
from agentgym_servers.todolist._account import Project, Todo

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw

__all__ = ["PROJECTS", "Chore", "Scene", "change", "look", "look_at_durations"]

_FIRST_DAY = date(2024, 3, 1)
_DAYS = 500
_AROUND = (-6, 18)  # how many days before and after today a task may be due
_MINUTES = tuple(range(10, 130, 5))


class Chore(NamedTuple):
    """A task as a project may contain it.

    Attributes:
        content: What the user has to do.
        place: Where.
        bring: What to bring along.
    """

    content: str
    place: str
    bring: str


PROJECTS = {
    name: tuple(Chore(**chore) for chore in chores)
    for name, chores in read_json("todolist", "projects.json").items()
}
"""The chores of each project by its name. No chore belongs to two projects."""


@dataclass
class Scene:
    """An account that is drawn.

    Attributes:
        draw: Draws of this task.
        today: The user's current date.
        projects: What is in the account.
    """

    draw: Draw
    today: date = field(init=False)
    projects: tuple[Project, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.today = _FIRST_DAY + timedelta(days=self.draw.below(_DAYS))
        names = self.draw.some(list(PROJECTS), self.draw.between(4, 5))
        self._next_id = 7_000_000_000 + self.draw.below(900_000_000)
        self.projects = tuple(self._drawn(name, order) for order, name in enumerate(names, start=1))

    def _drawn(self, name: str, order: int) -> Project:
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
        """Return the day that is so many days after today, as YYYY-MM-DD."""
        return (self.today + timedelta(days=days)).isoformat()

    def days_until(self, todo: Todo) -> int:
        """Return how many days after today a task is due; below 0 if before."""
        return (date.fromisoformat(todo.due) - self.today).days

    def project(self) -> Project:
        """Return one of the projects."""
        return self.draw.one(self.projects)

    def todo(self) -> tuple[Project, Todo]:
        """Return one of the tasks, with its project."""
        project = self.project()
        return project, self.draw.one(project.todos)

    def two_todos(self) -> tuple[tuple[Project, Todo], tuple[Project, Todo]]:
        """Return tasks of two projects."""
        one, other = self.draw.some(self.projects, 2)
        return (one, self.draw.one(one.todos)), (other, self.draw.one(other.todos))

    @property
    def todos(self) -> list[Todo]:
        """All tasks."""
        return [todo for project in self.projects for todo in project.todos]


def look(projects: Iterable[Project], *, today: bool = False) -> tuple[Call, ...]:
    """Return the calls that show the tasks of some projects, and the date first if it matters."""
    first = [Call("get_user_current_date", {})] if today else []
    tasks = [Call("get_tasks", {"project_id": each.project_id}) for each in projects]
    return (*first, Call("get_projects", {}), *tasks)


def look_at_durations(todos: Iterable[Todo]) -> tuple[Call, ...]:
    """Return the calls that show how long some tasks take."""
    return tuple(Call("get_task_duration", {"task_id": each.todo_id}) for each in todos)


def change(name: str, todos: Iterable[Todo], due: str | None = None) -> tuple[Call, ...]:
    """Return the calls that change some tasks in the same way."""
    more = {} if due is None else {"due_date": due}
    return tuple(Call(name, {"task_id": each.todo_id, **more}) for each in todos)
