"""Tasks of TODOList that require changes: each function makes one from a scene, or returns None."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import Draft, FunctionCall
from agentgym_servers.todolist._scene import Scene, change, listed, look_up, look_up_durations

if TYPE_CHECKING:
    from agentgym_servers.todolist._account import Project, Todo

__all__ = ["ORDERS"]

_URGENT = 4
_MOST_CHANGES = 5  # together with the look-ups they stay within the turn limit


def _draft(goal: str, *calls: FunctionCall) -> Draft:
    return Draft(goal, "done", calls, reason="All is changed as asked. I am done.")


def _make_favorite(project: Project) -> FunctionCall:
    call = FunctionCall("update_project", {"project_id": project.project_id, "is_favorite": "True"})
    return call.because(f'"{project.name}" is {project.project_id}. I make it a favourite.')


def _some_of(matches: Sequence[Todo], todos: Sequence[Todo]) -> bool:
    """Return whether a rule matches some tasks, but neither all nor too many to change."""
    return 0 < len(matches) < len(todos) and len(matches) <= _MOST_CHANGES


def _complete(scene: Scene) -> Draft:
    """Complete a task."""
    project, todo = scene.todo()
    goal = f'I am done with "{todo.content}" in "{project.name}". Mark that task as completed.'
    return _draft(goal, *look_up([project]), *change("complete_task", [todo]))


def _delete(scene: Scene) -> Draft:
    """Delete a task."""
    project, todo = scene.todo()
    goal = f'The task "{todo.content}" of the project "{project.name}" is no longer needed. Delete it.'
    return _draft(goal, *look_up([project]), *change("delete_task", [todo]))


def _reschedule(scene: Scene) -> Draft | None:
    """Set the due date of a task."""
    project, todo = scene.todo()
    day = scene.day(scene.draw.between(1, 25))
    if day == todo.due:
        return None
    goal = f'Set the due date of "{todo.content}" in "{project.name}" to {day}.'
    return _draft(goal, *look_up([project]), *change("update_task", [todo], day))


def _postpone(scene: Scene) -> Draft:
    """Postpone a task whose project is not given."""
    project, todo = scene.todo()
    days = scene.draw.between(2, 9)
    day = scene.day(scene.days_until(todo) + days)
    goal = f'Put off the due date of the task "{todo.content}" by {days} days.'
    changes = change("update_task", [todo], day, f"{days} days after {todo.due} is {day}.")
    return _draft(goal, *look_up(scene.projects[: project.order], sought=todo), *changes)


def _favorite(scene: Scene) -> Draft:
    """Make a project a favourite."""
    project = scene.project()
    goal = f'Make the project "{project.name}" one of my favourites.'
    return _draft(goal, *look_up([]), _make_favorite(project))


def _favorite_of_task(scene: Scene) -> Draft:
    """Make the project of a task a favourite."""
    project, todo = scene.todo()
    goal = f'Make the project that has the task "{todo.content}" one of my favourites.'
    update = _make_favorite(project)
    update = update.because(f'"{todo.content}" is in "{project.name}".', update.thought)
    return _draft(goal, *look_up(scene.projects[: project.order], sought=todo), update)


def _complete_until(scene: Scene) -> Draft | None:
    """Complete the tasks of a project that are due by a date."""
    project, day = scene.project(), scene.day(scene.draw.between(0, 12))
    matches = [each for each in project.todos if each.due <= day]
    if not _some_of(matches, project.todos):
        return None
    goal = f'Mark all tasks of "{project.name}" as completed that are due on {day} or before.'
    changes = change("complete_task", matches, why=f"Due by {day}: {listed(matches, 'due')}.")
    return _draft(goal, *look_up([project]), *changes)


def _delete_overdue(scene: Scene) -> Draft | None:
    """Delete overdue tasks."""
    matches = [each for each in scene.todos if scene.days_until(each) < 0]
    if not _some_of(matches, scene.todos):
        return None
    named = scene.projects[0].name
    goal = f'In all my projects, from "{named}" to the last, delete the tasks that were due before today.'
    changes = change("delete_task", matches, why=f"Due before {scene.today}: {listed(matches, 'due')}.")
    return _draft(goal, *look_up(scene.projects, today=scene.today), *changes)


def _move_urgent(scene: Scene) -> Draft | None:
    """Move the urgent tasks of a project, or the others."""
    project, urgent = scene.project(), scene.draw.chance(0.5)
    days = scene.draw.between(2, 20)
    matches = [each for each in project.todos if (each.priority == _URGENT) is urgent]
    day = scene.day(days)
    if not _some_of(matches, project.todos) or any(each.due == day for each in matches):
        return None
    which = "with" if urgent else "without"
    goal = f'Move the tasks in "{project.name}" {which} priority 4 to the day that is {days} days from today.'
    why = f"{days} days after {scene.today} is {day}. The tasks: {listed(matches, 'priority')}."
    return _draft(goal, *look_up([project], today=scene.today), *change("update_task", matches, day, why))


def _complete_most_urgent(scene: Scene) -> Draft | None:
    """Complete the task with the highest priority."""
    project = scene.project()
    most = max(each.priority for each in project.todos)
    matches = [each for each in project.todos if each.priority == most]
    if len(matches) > 1:
        return None
    goal = f'Mark the task of the highest priority in the project "{project.name}" as completed.'
    changes = change("complete_task", matches, why=f"The highest priority is {most}.")
    return _draft(goal, *look_up([project]), *changes)


def _swap(scene: Scene) -> Draft | None:
    """Swap the due dates of two tasks."""
    (one, first), (other, second) = scene.two_todos()
    if first.due == second.due:
        return None
    goal = (
        f'Swap the due dates of "{first.content}" in "{one.name}" and "{second.content}" in "{other.name}".'
    )
    why = f"The due dates: {listed([first, second], 'due')}."
    changes = change("update_task", [first], second.due, why) + change("update_task", [second], first.due)
    return _draft(goal, *look_up([one, other]), *changes)


def _delete_long(scene: Scene) -> Draft | None:
    """Delete the long tasks of a project."""
    project, minutes = scene.project(), scene.draw.between(6, 20) * 5
    matches = [each for each in project.todos if each.minutes > minutes]
    if not _some_of(matches, project.todos):
        return None
    goal = f'Delete all tasks in "{project.name}" that take more than {minutes} minutes.'
    calls = look_up([project]) + look_up_durations(project.todos)
    why = f"More than {minutes} minutes: {listed(matches, 'minutes')}."
    return _draft(goal, *calls, *change("delete_task", matches, why=why))


def _day_after(scene: Scene) -> Draft | None:
    """Set the due date of a task relative to another task."""
    (one, first), (other, second) = scene.two_todos()
    day = scene.day(scene.days_until(second) + 1)
    if first.due == day:
        return None
    goal = (
        f'"{first.content}" in "{one.name}" cannot be done before "{second.content}" in "{other.name}" is: '
        "set its due date to the day after that of the latter."
    )
    changes = change("update_task", [first], day, f"The day after {second.due} is {day}.")
    return _draft(goal, *look_up([one, other]), *changes)


ORDERS: tuple[Callable[[Scene], Draft | None], ...] = (
    _complete,
    _reschedule,
    _favorite,
    _delete_overdue,
    _postpone,
    _complete_until,
    _delete,
    _move_urgent,
    _swap,
    _favorite_of_task,
    _complete_most_urgent,
    _delete_long,
    _day_after,
)
"""All kinds of tasks with changes."""
