"""The sheets and tasks of the Sheet server, generated from a seed, each task with its solution."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from agentgym_servers._frame.tool_tasks import FunctionCall
from agentgym_servers._frame.tool_world import ToolWorld, draw_tasks
from agentgym_servers.sheet._book import Book, Rows, values_of
from agentgym_servers.sheet._functions import FUNCTIONS
from agentgym_servers.sheet._office import OFFICE
from agentgym_servers.sheet._school import SCHOOL
from agentgym_servers.sheet._stock import STOCK

if TYPE_CHECKING:
    from agentgym_servers._frame.draw import Draw
    from agentgym_servers.sheet._tables import SheetDraft

__all__ = ["TASKS", "SheetTask", "world_of"]

_KINDS = STOCK + SCHOOL + OFFICE

TASKS = len(_KINDS)
"""The number of tasks: one of each kind, each with its own sheet."""

_FEWEST = 4  # the minimum number of rows of the final sheet, with the heading


@dataclass(frozen=True)
class SheetTask:
    """A task.

    Attributes:
        goal: The instruction for the agent.
        sheet: The name of the task's sheet.
        first: The displayed values of the initial sheet.
        end: The displayed values of the sheet when the task is done.
        solution: The calls that solve the task, including ``finish``.
    """

    goal: str
    sheet: str
    first: Sequence[Sequence[str]]
    end: Sequence[Sequence[str]]
    solution: tuple[FunctionCall, ...]

    def score(self, values: Sequence[Sequence[str]]) -> float:
        """Return the progress of values from the initial sheet to the final one, from 0 to 1.

        This is the share of cells that equal the final sheet, relative to the share at the start. Missing and
        superfluous cells count as wrong.
        """
        before = _equal_share(self.first, self.end)
        return max(0.0, (_equal_share(values, self.end) - before) / (1 - before))


@lru_cache(maxsize=2)
def world_of(seed: int) -> ToolWorld[Mapping[str, Rows], SheetTask]:
    """Return the sheets by name, and the tasks, of a seed; cached."""
    sheets: dict[str, Rows] = {}

    def task(task_id: int, draw: Draw) -> SheetTask | None:
        draft, name = _KINDS[task_id](draw), f"Sheet{task_id + 1}"
        if draft is None:
            return None
        sheets[name] = draft.cells  # of the last draw, which is valid
        return _task_of(draft, name)

    tasks = draw_tasks(TASKS, task, "sheet", seed)
    return ToolWorld(sheets, tasks)


def _task_of(draft: SheetDraft, name: str) -> SheetTask | None:
    """Return the task of a draft; None if too few rows remain at the end."""
    solution = (
        FunctionCall("open_sheet", {"name": name}).because(f"I must work in {name}, so I open it."),
        FunctionCall("get_all_values", {}).because("I need its values."),
        *draft.calls,
    )
    book = Book({name: draft.cells})
    if any(call.arguments.get("index_list") == [] for call in solution):
        return None
    for function, arguments in solution:
        FUNCTIONS[function][0](book, **arguments)
    first, end = values_of(draft.cells), book.values(name)
    if len(end) < _FEWEST or first == end:
        return None
    goal = draft.goal.replace("{sheet}", name)
    finish = FunctionCall("finish", {}).because("All is done as asked. I finish.")
    return SheetTask(goal, name, first, end, (*solution, finish))


def _equal_share(values: Sequence[Sequence[str]], right: Sequence[Sequence[str]]) -> float:
    """Return the share of equal cells of two sheets that are laid over each other."""
    height = max(len(values), len(right))
    width = max(max(map(len, values), default=0), max(map(len, right), default=0))
    same = sum(mine == yours for row, other in zip(values, right) for mine, yours in zip(row, other))  # noqa: B905
    return same / (height * width)
