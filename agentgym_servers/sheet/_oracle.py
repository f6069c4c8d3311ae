"""The oracle of Sheet: plays the solutions of this project's own server."""

from __future__ import annotations

from agentgym_gym.envs.sheet import SHEET
from agentgym_servers._frame.solution_oracle import ToolOracle
from agentgym_servers.sheet._world import world_of

__all__ = ["SheetOracle"]


class SheetOracle(ToolOracle):
    """Opens the sheet, reads it, and makes the changes of the task."""

    def __init__(self) -> None:
        super().__init__(SHEET, world_of)
