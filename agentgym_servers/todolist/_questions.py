"""Tasks of TODOList that are questions: each function makes one from a scene, or returns None."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import Draft, yes_or_no
from agentgym_servers.todolist._scene import Scene, listed, look_up, look_up_durations, look_up_one

if TYPE_CHECKING:
    from agentgym_servers.todolist._account import Todo

__all__ = ["QUESTIONS"]

_DATE = "Answer with a date as YYYY-MM-DD."
_NUMBER = "Answer with a number."
_NAME = "Answer with the name alone."
_LIST = "Answer with a list of the names: ['task 1', 'task 2', ...]."


def _names(todos: list[Todo]) -> list[str]:
    return sorted(each.content for each in todos)


def _due_date(scene: Scene) -> Draft:
    """When is a task due?"""
    project, todo = scene.todo()
    goal = f'By which day must "{todo.content}" in the project "{project.name}" be done? {_DATE}'
    return Draft(goal, todo.due, look_up([project]), reason=f"It is due on {todo.due}.")


def _priority(scene: Scene) -> Draft:
    """How urgent is a task?"""
    project, todo = scene.todo()
    goal = f'What is the priority of "{todo.content}" in my project "{project.name}"? {_NUMBER}'
    return Draft(goal, todo.priority, look_up([project]), reason=f"The priority is {todo.priority}.")


def _duration(scene: Scene) -> Draft:
    """How long does a task take?"""
    project, todo = scene.todo()
    goal = f'How many minutes does "{todo.content}" in "{project.name}" take? {_NUMBER}'
    calls = look_up([project]) + look_up_durations([todo])
    return Draft(goal, todo.minutes, calls, reason=f"It takes {todo.minutes} minutes.")


def _all_durations(scene: Scene) -> Draft:
    """How long do all tasks of a project take?"""
    project = scene.project()
    goal = f'How many minutes do all tasks of the project "{project.name}" take together? {_NUMBER}'
    minutes = sum(each.minutes for each in project.todos)
    calls = look_up([project]) + look_up_durations(project.todos)
    reason = f"{' + '.join(str(each.minutes) for each in project.todos)} = {minutes}."
    return Draft(goal, minutes, calls, reason=reason)


def _longest(scene: Scene) -> Draft | None:
    """Which task takes longest?"""
    project = scene.project()
    most = max(each.minutes for each in project.todos)
    matches = [each for each in project.todos if each.minutes == most]
    if len(matches) > 1:
        return None
    goal = f'Which task of "{project.name}" takes the most time? {_NAME}'
    calls = look_up([project]) + look_up_durations(project.todos)
    reason = f"The minutes: {listed(project.todos, 'minutes')}. The most is {most}."
    return Draft(goal, matches[0].content, calls, reason=reason)


def _due_before(scene: Scene) -> Draft | None:
    """Which tasks of a project are due before a date?"""
    project, day = scene.project(), scene.day(scene.draw.between(0, 12))
    matches = [each for each in project.todos if each.due < day]
    if not 0 < len(matches) < len(project.todos):
        return None
    goal = f'Which tasks of the project "{project.name}" are due before {day}? {_LIST}'
    reason = f"Before {day}: {listed(matches, 'due')}."
    return Draft(goal, _names(matches), look_up([project]), reason=reason)


def _count_due_before(scene: Scene) -> Draft | None:
    """How many tasks are due before a date?"""
    day = scene.day(scene.draw.between(0, 12))
    matches = [each for each in scene.todos if each.due < day]
    goal = f"How many tasks, in all my projects together, are due before {day}? {_NUMBER}"
    reason = f"Before {day}: {', '.join(each.due for each in matches)}. These are {len(matches)}."
    return Draft(goal, len(matches), look_up(scene.projects), reason=reason) if matches else None


def _urgent(scene: Scene) -> Draft | None:
    """Which tasks of a project are urgent?"""
    project, least = scene.project(), scene.draw.between(2, 4)
    matches = [each for each in project.todos if each.priority >= least]
    if not 0 < len(matches) < len(project.todos):
        return None
    goal = f'Which tasks in "{project.name}" have a priority of {least} or more? {_LIST}'
    reason = f"{least} or more: {listed(matches, 'priority')}."
    return Draft(goal, _names(matches), look_up([project]), reason=reason)


def _due_first(scene: Scene) -> Draft | None:
    """Which task is due first, or last?"""
    project, last = scene.project(), scene.draw.chance(0.5)
    day = (max if last else min)(each.due for each in project.todos)
    matches = [each for each in project.todos if each.due == day]
    if len(matches) > 1:
        return None
    goal = f'Which task of my project "{project.name}" is due {"last" if last else "first"}? {_NAME}'
    reason = f"The {'last' if last else 'first'} due date is {day}: {matches[0].content}."
    return Draft(goal, matches[0].content, look_up([project]), reason=reason)


def _place(scene: Scene) -> Draft:
    """Where does a task take place?"""
    project, todo = scene.todo()
    where = todo.description.removeprefix("Place: ").partition(". ")[0]
    goal = f'At which place is "{todo.content}" of "{project.name}" done? Answer as its description has it.'
    calls = (*look_up([project]), look_up_one("description", todo))
    return Draft(goal, where, calls, reason=f"The place: {where}.")


def _bring(scene: Scene) -> Draft:
    """Which things does a task need, if its project is not given?"""
    project, todo = scene.todo()
    things = todo.description.partition("Bring: ")[2].removesuffix(".")
    goal = f'What must I bring for the task "{todo.content}"? Answer as its description has it.'
    calls = (*look_up(scene.projects[: project.order], sought=todo), look_up_one("description", todo))
    return Draft(goal, things, calls, reason=f"To bring: {things}.")


def _holder(scene: Scene) -> Draft:
    """Which project contains a task?"""
    project, todo = scene.todo()
    goal = f'In which project is the task "{todo.content}"? {_NAME}'
    calls = look_up(scene.projects[: project.order], sought=todo)
    return Draft(goal, project.name, calls, reason=f"The task is in {project.name}.")


def _days_left(scene: Scene) -> Draft | None:
    """How many days from today is a task due?"""
    project, todo = scene.todo()
    days = scene.days_until(todo)
    if days < 1:
        return None
    goal = f'In how many days from today is "{todo.content}" in "{project.name}" due? {_NUMBER}'
    reason = f"{todo.due} is {days} day{'s' * (days > 1)} after {scene.today}."
    return Draft(goal, days, look_up([project], today=scene.today), reason=reason)


def _two_due_dates(scene: Scene) -> Draft:
    """When are two tasks due?"""
    (one, first), (other, second) = scene.two_todos()
    goal = (
        f'What are the due dates of "{first.content}" in "{one.name}" and "{second.content}" in '
        f"\"{other.name}\"? Answer with a list: ['YYYY-MM-DD', 'YYYY-MM-DD']."
    )
    reason = f"The due dates: {first.due}, {second.due}."
    return Draft(goal, sorted([first.due, second.due]), look_up([one, other]), reason=reason)


def _earlier(scene: Scene) -> Draft | None:
    """Is one task due before another?"""
    (one, first), (other, second) = scene.two_todos()
    if first.due == second.due:
        return None
    goal = (
        f'Is "{first.content}" in "{one.name}" due before "{second.content}" in "{other.name}"? '
        "Answer 'Yes' or 'No'."
    )
    reason = f"The due dates: {first.due}, {second.due}."
    return Draft(goal, yes_or_no(first.due < second.due), look_up([one, other]), reason=reason)


def _within_days(scene: Scene) -> Draft | None:
    """Which tasks of all projects but one are due in the next days?"""
    excluded, days = scene.project(), scene.draw.between(1, 5)
    others = [each for each in scene.projects if each is not excluded]
    matches = [todo for each in others for todo in each.todos if 0 <= scene.days_until(todo) <= days]
    if not matches:
        return None
    goal = (
        f'Which of my tasks, apart from those of the project "{excluded.name}", are due between today and '
        f"{scene.day(days)}, both included? {_LIST}"
    )
    reason = f"From {scene.today} to {scene.day(days)}: {listed(matches, 'due')}."
    return Draft(goal, _names(matches), look_up(others, today=scene.today), reason=reason)


def _most_tasks(scene: Scene) -> Draft | None:
    """Which project has the most tasks?"""
    most = max(len(each.todos) for each in scene.projects)
    matches = [each for each in scene.projects if len(each.todos) == most]
    if len(matches) > 1:
        return None
    named = ", ".join(f'"{each.name}"' for each in scene.projects)
    goal = f"Which of my projects {named} has the most tasks? {_NAME}"
    reason = f"The tasks: {', '.join(f'{each.name} {len(each.todos)}' for each in scene.projects)}."
    return Draft(goal, matches[0].name, look_up(scene.projects), reason=reason)


QUESTIONS: tuple[Callable[[Scene], Draft | None], ...] = (
    _due_date,
    _duration,
    _due_before,
    _bring,
    _days_left,
    _all_durations,
    _priority,
    _count_due_before,
    _place,
    _due_first,
    _holder,
    _two_due_dates,
    _urgent,
    _longest,
    _earlier,
    _within_days,
    _most_tasks,
)
"""All kinds of questions."""
