"""The tasks of the Academia server, generated from a seed, each with its solution."""

from __future__ import annotations

from functools import lru_cache

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import Draft, FunctionCall
from agentgym_servers._frame.tool_world import ToolTask, ToolWorld, draw_tasks
from agentgym_servers.academia._network import Network, network_of
from agentgym_servers.academia._question_builder import QuestionSubjects
from agentgym_servers.academia._questions import QUESTIONS

__all__ = ["TASKS", "world_of"]

TASKS = len(QUESTIONS)
"""The number of tasks: one for each kind of question."""

_CONTENTS = {"PaperNet": "the data of papers", "AuthorNet": "the data of authors"}


@lru_cache(maxsize=2)
def world_of(seed: int) -> ToolWorld[Network, ToolTask]:
    """Return the papers, authors and tasks of a seed; cached."""
    network = network_of(seed)

    def task(task_id: int, draw: Draw) -> ToolTask | None:
        yes = Draw("academia", seed, task_id, "yes").chance(0.5)
        draft = QUESTIONS[task_id](QuestionSubjects(draw, network, yes))
        return None if draft is None else _task(draft)

    return ToolWorld(network, draw_tasks(TASKS, task, "academia", seed))


def _task(draft: Draft) -> ToolTask:
    """Return the task of a question; its solution loads the networks first, in the order of first use."""
    networks = dict.fromkeys(_network(call) for call in draft.calls)
    loads = tuple(
        FunctionCall(f"load{each}", {}).because(f"I need {_CONTENTS[each]}, so I load the {each}.")
        for each in networks
    )
    finish = FunctionCall("finish", {"answer": draft.answer}).because(draft.reason)
    return ToolTask(draft.goal, draft.answer, (*loads, *draft.calls, finish))


def _network(call: FunctionCall) -> str:
    graph: str = call.arguments.get("graph") or ("PaperNet" if call.name.startswith("paper") else "AuthorNet")
    return graph
