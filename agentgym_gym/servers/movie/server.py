"""The application of the Movie server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.servers.app import MAX_BODY_BYTES, MAX_ENVS, Failed
from agentgym_gym.servers.held import KEEP_SECONDS
from agentgym_gym.servers.movie.service import MovieTools
from agentgym_gym.servers.movie.world import TASKS, world_of
from agentgym_gym.servers.tools import Tools, tool_app

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]


def create_app(
    *,
    max_envs: int = MAX_ENVS,
    max_body_bytes: int = MAX_BODY_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    seed: int = 0,
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time.
        max_body_bytes: How large a request body may be; a larger one is answered 413.
        keep_seconds: For how long it keeps an environment that nobody asks for.
        seed: Of the world, 0 or more.

    Raises:
        BadOption: A limit is below 1, or the seed below 0.
    """

    def start(task_id: int) -> Tools:
        if task_id not in range(TASKS):
            raise Failed(f"There is no task {task_id}.")
        return MovieTools(world.library, world.tasks[task_id])

    app = tool_app(
        "Movie",
        start,
        seed=seed,
        max_envs=max_envs,
        max_body_bytes=max_body_bytes,
        keep_seconds=keep_seconds,
    )
    world = world_of(seed)  # now, when the options have been checked, as it takes a while
    return app
