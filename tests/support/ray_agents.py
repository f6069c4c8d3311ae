"""Agents for a Ray cluster, whose processes import this module."""

from __future__ import annotations

import os
from pathlib import Path

from agentgym_gym.errors import SetupError


class Where:
    """Replies with its process, and ends that once in task 7, where `AGENTGYM_DIES_IN` names a folder."""

    name = "where"

    async def reset(self, env, observation, info):
        folder = os.environ.get("AGENTGYM_DIES_IN")
        if folder is not None and info["task_id"] == 7 and _is_first(Path(folder, "died")):
            os._exit(1)

    async def act(self, observation, info):
        variable = os.environ.get("AGENTGYM_OF_THE_TEST")
        return f"Action: inventory {os.getpid()} {variable}" if info["turn"] == 0 else None


def _is_first(file):
    try:
        file.touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


class Refuses(Where):
    """Cannot play before something else is done."""

    async def reset(self, env, observation, info):
        raise SetupError("the agent has no key")
