"""The application of the Sheet server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.tools import ActionInput, Tools, tool_app
from agentgym_servers.sheet._book import Book, NotOpen
from agentgym_servers.sheet._functions import FUNCTIONS
from agentgym_servers.sheet._world import SheetTask, world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["SheetTools", "create_app"]


class SheetTools(Tools):
    """The functions of one user's spreadsheet, and the task to do in it.

    Args:
        task: The task.
        book: The spreadsheet.
    """

    names = (*FUNCTIONS, "finish")

    def __init__(self, task: SheetTask, book: Book) -> None:
        self.goal = task.goal
        self._task = task
        self._book = book

    def unknown(self, name: str) -> str:
        """Return the observation for an unknown function: the list of all functions."""
        return f"ERROR | Invalid action: {name}. Please choose another valid action from {list(self.names)}"

    def call(self, name: str, arguments: ActionInput) -> object:
        """Call a function of the spreadsheet."""
        function, names = FUNCTIONS[name]
        return function(self._book, **{each: arguments[each] for each in names(arguments.__contains__)})

    def finish(self, arguments: ActionInput) -> tuple[object, float]:
        """Score the sheet of the task; return the sheet that is open."""
        score = self._task.score(self._book.values(self._task.sheet))
        try:
            return self._book.sheet.values(), score
        except NotOpen as refusal:
            return refusal, score


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    world = world_of(options.seed)
    return tool_app("Sheet", options, world.tasks, lambda task: SheetTools(task, Book(world.setting)))
