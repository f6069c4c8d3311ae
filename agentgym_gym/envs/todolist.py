"""TODOList: look after the projects and tasks of a Todoist account (Ma et al., 2024, arXiv:2401.13178).

All environments of a server share one account, and every create and reset wipes it. The server compares the
account with the goal only when the episode ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from agentgym_gym.actions import Grammar
from agentgym_gym.catalogue import Environment, make_splits
from agentgym_gym.envs._scalar_arguments import Date, Id, OneOf
from agentgym_gym.envs._tools import (
    LOCAL_QUIRKS,
    QUIRKS,
    CheckValidActions,
    Finish,
    GetUserCurrentDate,
    GetUserCurrentLocation,
    Tool,
    ToolWire,
    launch_of,
    read_as_agentgym,
)

__all__ = [
    "TODOLIST",
    "CompleteTask",
    "DeleteTask",
    "GetProjects",
    "GetTaskDescription",
    "GetTaskDuration",
    "GetTasks",
    "TODOListWire",
    "UpdateProject",
    "UpdateTask",
]

_ProjectId = Annotated[str, Id("7000000222", "7000000226"), "the project's id"]
_TaskId = Annotated[str, Id("7000000223", "7000000224", "7000000265"), "the task's id"]


@dataclass(frozen=True, eq=False)
class GetProjects(Tool):
    """List all projects."""


@dataclass(frozen=True, eq=False)
class UpdateProject(Tool):
    """Make a project a favourite one, or no longer one."""

    project_id: _ProjectId
    is_favorite: Annotated[str, OneOf("True", "False"), "whether it is a favourite"]


@dataclass(frozen=True, eq=False)
class GetTasks(Tool):
    """List the tasks of a project, with their priority from 1 (normal) to 4 (urgent) and their due date."""

    project_id: _ProjectId


@dataclass(frozen=True, eq=False)
class GetTaskDescription(Tool):
    """Get the description of a task: its place, what to mind and so on."""

    task_id: _TaskId


@dataclass(frozen=True, eq=False)
class GetTaskDuration(Tool):
    """Get how long a task takes."""

    task_id: _TaskId


@dataclass(frozen=True, eq=False)
class CompleteTask(Tool):
    """Mark a task as completed."""

    task_id: _TaskId


@dataclass(frozen=True, eq=False)
class UpdateTask(Tool):
    """Change the due date of a task."""

    task_id: _TaskId
    due_date: Annotated[str, Date(), "the new due date"]


@dataclass(frozen=True, eq=False)
class DeleteTask(Tool):
    """Delete a task."""

    task_id: _TaskId


_GRAMMAR = Grammar(
    [
        GetProjects(),
        GetTasks("7000000222"),
        GetTaskDescription("7000000223"),
        GetTaskDuration("7000000223"),
        CompleteTask("7000000223"),
        UpdateTask("7000000223", "2015-06-01"),
        DeleteTask("7000000223"),
        UpdateProject("7000000222", "True"),
        GetUserCurrentDate(),
        GetUserCurrentLocation(),
        CheckValidActions(),
        Finish("done"),
    ]
)

_RULES = """\
You look after a user's projects and tasks on Todoist by calling functions: you answer a question about \
them, or change them as you are told. The first message is the question or the order; after each of your \
actions you are told what the function returned.

- Take the id of a project from `get_projects` and that of a task from `get_tasks`, never from memory.
- Change nothing but what you are told to.
- Call `finish` when you know the answer or all is done: that ends the task and cannot be taken back. The \
answer to a question must be of the type that it asks for: the number 105 is not the text "105", and \
several things are a list. Where you were told to change something the answer is "done"."""


@dataclass(frozen=True)
class TODOListWire(ToolWire):
    """Protocol of AgentGym's TODOList server, whose environments all share one account."""

    capacity = 1


TODOLIST = Environment(
    name="TODOList",
    item_prefix="todo",
    summary=(
        "Look after projects and tasks on Todoist by calling functions (the tool tasks of "
        "AgentBoard, Ma et al., 2024, arXiv:2401.13178)."
    ),
    wire=TODOListWire(checks_at_end=True),
    grammar=_GRAMMAR,
    rules=_RULES,
    max_turns=15,
    splits=make_splits(range(155), test=range(124, 155)),
    cheap_wins={
        **dict.fromkeys(("answer 'Yes'", "answer 'No'"), "some questions are answered by yes or no"),
        **dict.fromkeys(("answer 2", "answer 3"), "some questions ask for a small number or a count"),
    },
    on_unknown="refuse",
    agentgym_readers={"react": read_as_agentgym},
    quirks=f"""\
{QUIRKS}
- One account serves all environments of a server, and every create and reset wipes it: use a separate \
account, one server for each account, and one episode at a time on it.
- A correct answer scores only if the account is also in the state that the task requires. The server checks \
this when the episode ends, so its earlier rewards do not count here.
- Its server needs a key of Todoist in `TODO_KEY`.""",
    local_server="agentgym_servers.todolist:SERVER",
    local_quirks=f"""\
{LOCAL_QUIRKS}
- Each environment has a separate account, in memory, and needs no key. This library still uses one \
environment of a server at a time, as on AgentGym's.
- The accounts and the 155 tasks are generated from a seed: each task has its own projects, tasks and date, \
and none is AgentGym's. All tasks take minutes; none take days.
- A deleted task does not count as completed, nor a completed one as deleted. AgentGym's server does not \
distinguish them.
- `update_project` accepts `True` and `False`, and `update_task` a day as YYYY-MM-DD. Todoist accepts more, \
and has other error messages.""",
    oracle="agentgym_servers._tool_oracles:TODOListOracle",
    launch=f"export TODO_KEY=...\n{launch_of('todo')}",
    transcript=(
        (
            "Now new trial starts.\nYou should perform actions to accomplish the goal: Finally, I have "
            "completed the task Read and summarize a history chapter, please mark it as completed. \n"
            "Give me one action."
        ),
        "Action: get_projects with Action Input: {}",
        (
            "Observation: [{'id': '7000000262', 'order': 1, 'color': 'charcoal', 'name': 'Homework and "
            "Assignments', …"
        ),
        'Action: get_tasks with Action Input: {"project_id": "7000000262"}',
        (
            "Observation: [{'id': '7000000263', 'order': 1, 'content': 'Solve algebra equations', "
            "'is_completed': …"
        ),
        'Action: complete_task with Action Input: {"task_id": "7000000265"}',
        "Observation: {'message': 'Complete task successfully.', 'task': {'id': '7000000265', …",
    ),
)
