"""The accounts and tasks of TODOList, without a server."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from datetime import date, timedelta

import pytest

from agentgym_gym.envs.todolist import TODOLIST
from agentgym_servers._frame.tool_tasks import CallRefused
from agentgym_servers._frame.tools import Trial
from agentgym_servers.todolist._account import Account, is_day
from agentgym_servers.todolist._questions import QUESTIONS
from agentgym_servers.todolist._scene import PROJECTS
from agentgym_servers.todolist._server import TodoTools
from agentgym_servers.todolist._world import TASKS, world_of
from clock import cpu_seconds

DIGEST = "b6a5fefca8accfe3330d0dd7597ff46e03c3308ea32059a00f4ab77cab7901a4"
KINDS = 30
ALL = world_of(0).tasks


def digest(seed: int) -> str:
    told = [
        (t.goal, t.answer, t.today, t.city, t.solution, [asdict(p) for p in t.projects])
        for t in world_of(seed).tasks
    ]
    return hashlib.sha256(json.dumps(told).encode()).hexdigest()


def played(task, calls) -> dict:
    trial = Trial(0, lambda _: TodoTools(task))
    for name, arguments in calls:
        outcome = trial.step(f"Action: {name} with Action Input: {arguments!r}")
    return outcome


def todos(task, project=None) -> list:
    return [t for p in task.projects for t in p.todos if project in {None, p.name}]


def quoted(task) -> list[str]:
    return task.goal.split('"')[1::2]


def test_the_world_of_a_seed_is_the_same_everywhere():
    assert digest(0) == DIGEST
    assert digest(1) != DIGEST


def test_there_is_another_task_for_each_id():
    assert range(TASKS) == TODOLIST.splits["all"]
    assert len({task.goal for task in ALL}) == len(ALL) == TASKS


def test_no_task_stands_in_two_projects():
    contents = [chore.content for chores in PROJECTS.values() for chore in chores]
    assert len(set(contents)) == len(contents)


@pytest.mark.parametrize("seed", [0, 1, 77])
def test_each_solution_reaches_1_within_the_turn_limit(seed):
    for task in world_of(seed).tasks:
        assert played(task, task.solution)["reward"] == 1, task.goal
        assert len(task.solution) <= TODOLIST.max_turns


def test_what_does_nothing_reaches_0():
    for task in ALL:
        for answer in ("", "done", 0, 1, [], "Yes"):
            changes = len(task.solution) > 2 and task.answer == "done"
            right = answer == task.answer and not changes
            assert (played(task, [("finish", {"answer": answer})])["reward"] == 1) is right, task.goal


def test_an_order_is_done_by_its_changes_alone():
    for task in ALL:
        if task.answer == "done":
            *changes, finish = task.solution
            last = changes.pop()
            assert played(task, [*changes, finish])["reward"] == 0
            assert played(task, [*changes, last, ("finish", {"answer": "ready"})])["reward"] == 0


def test_a_right_answer_does_not_score_where_the_account_was_changed():
    task = ALL[0]
    changed = ("delete_task", {"task_id": todos(task)[-1].todo_id})
    assert played(task, [changed, *task.solution])["reward"] == 0


def test_to_delete_is_not_to_complete():
    for task in ALL:
        swapped = [
            ({"complete_task": "delete_task", "delete_task": "complete_task"}.get(name, name), arguments)
            for name, arguments in task.solution
        ]
        if swapped != list(task.solution):
            assert played(task, swapped)["reward"] == 0


def of_kind(name: str) -> list:
    number = [each.__name__.removeprefix("_") for each in QUESTIONS].index(name)
    return list(ALL[number::KINDS])


def test_answers_are_right_by_the_account():
    for task in of_kind("due_date"):
        content, project = quoted(task)
        assert [t.due for t in todos(task, project) if t.content == content] == [task.answer]
    for task in of_kind("all_durations"):
        assert sum(t.minutes for t in todos(task, *quoted(task))) == task.answer
    for task in of_kind("count_due_before"):
        day = task.goal.split("due before ")[1][:10]
        assert sum(t.due < day for t in todos(task)) == task.answer
    for task in of_kind("days_left"):
        (todo,) = [t for t in todos(task) if t.content == quoted(task)[0]]
        assert date.fromisoformat(task.today) + timedelta(task.answer) == date.fromisoformat(todo.due)
    for task in of_kind("place"):
        (todo,) = [t for t in todos(task) if t.content == quoted(task)[0]]
        assert todo.description.startswith(f"Place: {task.answer}. Bring: ")


def test_overdue_tasks_are_deleted_and_no_others():
    orders = [task for task in ALL if "were due before today" in task.goal]
    assert orders
    for task in orders:
        left = {t.todo_id for t in task.end[1]}
        assert left == {t.todo_id for t in todos(task) if t.due >= task.today}


# --- the account ---


@pytest.fixture
def account() -> Account:
    return Account(ALL[0].projects)


def test_functions_return_what_todoist_is_recorded_to_return(account):
    project = ALL[0].projects[0]
    todo = project.todos[0]
    head = {"id": project.project_id, "order": 1, "color": "charcoal", "name": project.name}
    assert account.get_projects()[0] == {**head, "is_favorite": False}
    shown = {
        "id": todo.todo_id,
        "order": 1,
        "content": todo.content,
        "is_completed": False,
        "priority": todo.priority,
        "due_date": todo.due,
    }
    assert account.get_tasks(project.project_id)[0] == shown
    assert list(account.get_tasks(project.project_id)[0]) == list(shown)
    assert account.get_task_duration(todo.todo_id)["duration"] == f"{todo.minutes}(minute)"
    assert account.update_task(todo.todo_id, "2030-01-31") == {
        "message": "Update the task successfully",
        "task": {**shown, "due_date": "2030-01-31"},
    }
    del shown["is_completed"]
    assert account.complete_task(todo.todo_id)["task"] == {**shown, "due_date": "2030-01-31"}
    assert todo.todo_id not in {each["id"] for each in account.get_tasks(project.project_id)}
    assert account.update_project(project.project_id, True)["project"]["is_favorite"] is True


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("get_tasks", ["1"], "Project not found"),
        ("update_project", ["1", True], "Project not found"),
        ("get_task_description", ["1"], "Task not found"),
        ("get_task_duration", ["1"], "Task not found"),
        ("update_task", ["1", "2030-01-31"], "Task not found"),
        ("complete_task", ["1"], "Task 1 is not exists."),
        ("delete_task", ["1"], "Task 1 is not exists."),
    ],
)
def test_what_there_is_not_is_refused_and_nothing_changes(account, name, arguments, words):
    before = account.state
    with pytest.raises(CallRefused, match=words):
        getattr(account, name)(*arguments)
    assert account.state == before


@pytest.mark.parametrize(
    "day", ["2024-02-30", "20240101", "2024-1-1", "tomorrow", "", "٢٠٢٤-01-01", "2024-W01"]
)
def test_no_day_of_the_calendar(account, day):
    assert not is_day(day)
    with pytest.raises(CallRefused, match="Invalid due date"):
        account.update_task(ALL[0].projects[0].todos[0].todo_id, day)


@pytest.mark.parametrize(
    ("value", "observed"),
    [("True", "'is_favorite': True"), (True, "'is_favorite': True"), ("maybe", "Invalid is_favorite")],
)
def test_truth_may_be_written_as_text(value, observed):
    arguments = {"project_id": int(ALL[0].projects[0].project_id), "is_favorite": value}
    assert observed in played(ALL[0], [("update_project", arguments)])["observation"]


def test_a_step_and_a_reset_take_little():
    task = ALL[20]
    assert cpu_seconds(lambda: played(task, task.solution), 0.2) <= 0.2
