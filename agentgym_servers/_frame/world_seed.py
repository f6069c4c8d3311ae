"""Checks that an oracle plays on this project's own server, because it uses the solutions of that server."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ServedWorld

__all__ = ["seed_of"]


def seed_of(info: Mapping[str, Any], title: str) -> int:
    """Return the seed of the world that a task belongs to; 0 for a server with one world.

    Args:
        info: The info of the task's reset.
        title: The display name of the server.

    Raises:
        BadOption: The task is not from this project's own server, or comes from a user's data.
    """
    served_by = info.get("served_by")
    world = ServedWorld.parse(served_by)
    if world is None or world.title != title or world.data:
        raise BadOption(
            f"the oracle of {title} needs this project's own server without --data (agentgym serve "
            f"{title.lower()}); this task is served by: {served_by}"
        )
    return world.seed or 0
