"""The tasks of the Academia server, each with its solution. All are made from a seed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from agentgym_servers._frame.draw import Draw
from agentgym_servers._frame.tool_tasks import Call, Draft
from agentgym_servers.academia._network import Network, network_of
from agentgym_servers.academia._question_builder import Asking
from agentgym_servers.academia._questions import QUESTIONS

__all__ = ["TASKS", "AcademiaTask", "World", "world_of"]

TASKS = len(QUESTIONS)
"""How many tasks there are: one of each kind of question."""

_ATTEMPTS = 1000  # far more than any question takes, so that no seed runs for ever


@dataclass(frozen=True)
class AcademiaTask:
    """A task.

    Attributes:
        goal: The question.
        answer: What ``finish`` must be given.
        solution: The calls that find it, with ``finish``.
    """

    goal: str
    answer: Any
    solution: tuple[Call, ...]


@dataclass(frozen=True)
class World:
    """The papers and authors of a seed, and its tasks.

    Attributes:
        network: The papers and authors.
        tasks: The tasks by their ids.
    """

    network: Network
    tasks: tuple[AcademiaTask, ...]


@lru_cache(maxsize=2)
def world_of(seed: int) -> World:
    """Return the world of a seed, made once."""
    network = network_of(seed)
    tasks = []
    for task_id, question in enumerate(QUESTIONS):
        yes = Draw("academia", seed, task_id, "yes").chance(0.5)
        draws = (Draw("academia", seed, task_id, attempt) for attempt in range(_ATTEMPTS))
        drawn = (question(Asking(draw, network, yes)) for draw in draws)
        tasks.append(_task(next(draft for draft in drawn if draft is not None)))
    return World(network, tuple(tasks))


def _task(draft: Draft) -> AcademiaTask:
    """Return the task of a question: its networks are loaded first, in the order in which they are asked."""
    asked = dict.fromkeys(_network(call) for call in draft.calls)
    loads = tuple(Call(f"load{each}", {}) for each in asked)
    finish = Call("finish", {"answer": draft.answer})
    return AcademiaTask(draft.goal, draft.answer, (*loads, *draft.calls, finish))


def _network(call: Call) -> str:
    graph: str = call.arguments.get("graph") or ("PaperNet" if call.name.startswith("paper") else "AuthorNet")
    return graph
