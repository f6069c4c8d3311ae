"""The questions and orders of TODOList, and what the functions of an account return."""

from __future__ import annotations

import ast
from datetime import date, timedelta

import pytest

from agentgym_gym import find
from clock import cpu_seconds
from local_game import LocalGame

TODOLIST = find("TODOList")
KINDS = 30
"""The number of kinds of questions; a task's kind is its id modulo this."""


@pytest.fixture(scope="module")
def shared():
    with LocalGame("TODOList") as game:
        yield game


@pytest.fixture
def game(shared):
    shared.reset(0)
    return shared


@pytest.fixture(scope="module", params=[KINDS, pytest.param(len(TODOLIST.task_ids), marks=pytest.mark.slow)])
def solutions(shared, request):
    """The actions that win each task: one of each kind, or all."""
    return {task: shared.win(task)[0] for task in TODOLIST.task_ids[: request.param]}


@pytest.fixture(scope="module")
def orders(solutions):
    """The actions of tasks that change the account."""
    return {task: actions for task, actions in solutions.items() if actions[-1].answer == "done"}


def value(game, function, **arguments):
    return ast.literal_eval(game.call(function, **arguments))


def finish(answer):
    return f"Action: finish with Action Input: {{'answer': {answer!r}}}"


def todos(game, project=None):
    """Return the tasks of the account, or of one of its projects."""
    projects = value(game, "get_projects")
    ids = [each["id"] for each in projects if project in {None, each["name"]}]
    return [todo for each in ids for todo in value(game, "get_tasks", project_id=each)]


def minutes(game, todo):
    return int(value(game, "get_task_duration", task_id=todo["id"])["duration"].removesuffix("(minute)"))


@pytest.mark.slow
@pytest.mark.parametrize("solutions", [len(TODOLIST.task_ids)], indirect=True)
def test_calls_without_effect_do_not_score(shared, solutions, orders):
    for task, (*_, last) in solutions.items():
        for answer in ("", "done", 0, 1, [], "Yes"):
            outcome = shared.play(task, [finish(answer)])
            right = answer == last.answer and task not in orders
            assert (outcome.reward == 1, outcome.done) == (right, True), task


@pytest.mark.slow
@pytest.mark.parametrize("solutions", [len(TODOLIST.task_ids)], indirect=True)
def test_an_order_is_done_only_by_its_changes(shared, solutions, orders):
    assert len(orders) > len(solutions) // 4
    for task, (*changes, last, end) in orders.items():
        assert shared.play(task, [*changes, end]).reward == 0
        assert shared.play(task, [*changes, last, finish("ready")]).reward == 0


def test_a_right_answer_does_not_score_where_the_account_was_changed(shared, solutions):
    shared.reset(0)
    last = todos(shared)[-1]["id"]
    shared.call("delete_task", task_id=last)
    for action in solutions[0]:
        outcome = shared.step(action)
    assert outcome.reward == 0


SWAP = {"complete_task": "delete_task", "delete_task": "complete_task"}


def test_to_delete_is_not_to_complete(shared, solutions, orders):
    def swapped(action):
        name = action.name()
        return f"Action: {SWAP[name]}{str(action).removeprefix(name)}" if name in SWAP else action

    tasks = [task for task, actions in orders.items() if any(each.name() in SWAP for each in actions)]
    assert len(tasks) > len(solutions) // 8
    for task in tasks:
        assert shared.play(task, map(swapped, orders[task])).reward == 0


@pytest.mark.parametrize("kind", [0, 4, 5, 7, 8])
def test_answers_are_right_by_the_account(game, solutions, kind):
    for task in list(solutions)[kind::KINDS]:
        assert_right(game, task, solutions[task][-1].answer, kind)


def assert_right(game, task, answer, kind):
    goal = game.reset(task).goal
    content, *projects = [*goal.split('"')[1::2], None][:2]
    named = [todo for todo in todos(game, *projects) if todo["content"] == content]
    if kind == 0:
        assert [todo["due_date"] for todo in named] == [answer]
    elif kind == 4:
        today = date.fromisoformat(game.call("get_user_current_date"))
        assert [todo["due_date"] for todo in named] == [str(today + timedelta(answer))]
    elif kind == 5:
        assert sum(minutes(game, todo) for todo in todos(game, content)) == answer
    elif kind == 7:
        day = goal.split("due before ")[1][:10]
        assert sum(todo["due_date"] < day for todo in todos(game)) == answer
    else:
        (todo,) = named
        told = value(game, "get_task_description", task_id=todo["id"])["description"]
        assert told.startswith(f"Place: {answer}. Bring: ")


def test_overdue_tasks_are_deleted_and_no_others(game, solutions):
    for task in list(solutions)[20::KINDS]:
        assert "were due before today" in game.reset(task).goal
        today = game.call("get_user_current_date")
        overdue = {todo["id"] for todo in todos(game) if todo["due_date"] < today}
        deleted = [action.task_id for action in solutions[task] if action.name() == "delete_task"]
        assert set(deleted) == overdue


# --- the account ---


def test_functions_return_what_todoist_is_recorded_to_return(game):
    project, todo = value(game, "get_projects")[0], todos(game)[0]
    assert list(project) == ["id", "order", "color", "name", "is_favorite"]
    assert list(map(type, project.values())) == [str, int, str, str, bool]
    assert list(todo) == ["id", "order", "content", "is_completed", "priority", "due_date"]
    assert list(map(type, todo.values())) == [str, int, str, bool, int, str]
    assert (project["color"], project["is_favorite"], todo["is_completed"]) == ("charcoal", False, False)
    assert value(game, "get_task_duration", task_id=todo["id"])["duration"].endswith("(minute)")
    moved = {**todo, "due_date": "2030-01-31"}
    assert value(game, "update_task", task_id=todo["id"], due_date="2030-01-31") == {
        "message": "Update the task successfully",
        "task": moved,
    }
    del moved["is_completed"]
    assert value(game, "complete_task", task_id=todo["id"])["task"] == moved
    assert todo["id"] not in {each["id"] for each in todos(game)}
    liked = value(game, "update_project", project_id=project["id"], is_favorite=True)
    assert liked["project"]["is_favorite"] is True


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("get_tasks", {"project_id": "1"}, "Project not found"),
        ("update_project", {"project_id": "1", "is_favorite": True}, "Project not found"),
        ("get_task_description", {"task_id": "1"}, "Task not found"),
        ("get_task_duration", {"task_id": "1"}, "Task not found"),
        ("update_task", {"task_id": "1", "due_date": "2030-01-31"}, "Task not found"),
        ("complete_task", {"task_id": "1"}, "Task 1 is not exists."),
        ("delete_task", {"task_id": "1"}, "Task 1 is not exists."),
    ],
)
def test_unknown_ids_are_refused_and_nothing_changes(game, name, arguments, words):
    before = todos(game)
    assert words in game.call(name, **arguments)
    assert todos(game) == before


@pytest.mark.parametrize(
    "day", ["2024-02-30", "20240101", "2024-1-1", "tomorrow", "", "٢٠٢٤-01-01", "2024-W01"]
)
def test_no_day_of_the_calendar(game, day):
    before = todos(game)
    assert "Invalid due date" in game.call("update_task", task_id=before[0]["id"], due_date=day)
    assert todos(game) == before


@pytest.mark.parametrize(
    ("written", "observed"),
    [("True", "'is_favorite': True"), (True, "'is_favorite': True"), ("maybe", "Invalid is_favorite")],
)
def test_truth_may_be_written_as_text(game, written, observed):
    project = int(value(game, "get_projects")[0]["id"])
    assert observed in game.call("update_project", project_id=project, is_favorite=written)


def test_a_step_and_a_reset_take_little(shared, solutions):
    assert cpu_seconds(lambda: shared.play(20, solutions[20]), 0.2) <= 0.2
