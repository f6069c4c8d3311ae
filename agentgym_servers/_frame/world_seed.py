"""Checks that an oracle runs on this project's own server, whose solutions it uses."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ServedWorld

__all__ = ["seed_of"]


def seed_of(info: Mapping[str, Any], title: str) -> int:
    """Return the seed of the world that a task belongs to.

    Args:
        info: The info of the task's reset.
        title: The display name of the server.

    Raises:
        BadOption: The task is not from this project's own server, or its world was not generated from a seed.
    """
    served_by = info.get("served_by")
    world = ServedWorld.parse(served_by)
    if world is None or world.title != title or world.seed is None:
        raise BadOption(
            f"the oracle of {title} knows the tasks of this project's own server alone, made from a seed "
            f"(agentgym serve {title.lower()}); this one is served by: {served_by}"
        )
    return world.seed
