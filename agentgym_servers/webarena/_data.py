"""A user's own sites and tasks."""

from __future__ import annotations

from pathlib import Path

from agentgym_servers.webarena._task import Task
from agentgym_servers.webarena.sites.addresses import Addresses
from agentgym_servers.webarena.sites.state import State

__all__ = ["DataWorld"]


class DataWorld:
    """The tasks of a folder."""

    def __init__(self, folder: Path) -> None:
        self.addresses = Addresses({})
        self.settle_seconds = 1.5

    def task(self, task_id: int) -> Task:
        """Return a task."""
        raise LookupError

    def fresh_state(self, task: Task) -> State | None:
        """Return None."""
        return None
