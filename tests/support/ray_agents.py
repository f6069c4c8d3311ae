"""Agents for a Ray cluster, whose processes import this module."""

from __future__ import annotations

import os


class Where:
    """Says in which process it plays, and dies where it is told to."""

    name = "where"

    def __init__(self, folder=None):
        self.folder = folder

    async def reset(self, env, observation, info):
        if self.folder is not None and info["task_id"] == 7:
            try:
                (self.folder / "died").touch(exist_ok=False)
            except FileExistsError:
                return
            os._exit(1)

    async def act(self, observation, info):
        return f"Action: inventory {os.getpid()} {os.environ['OF_THE_TEST']}" if info["turn"] == 0 else None
