"""The application of the Movie server."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.tools import tool_app
from agentgym_servers.movie._service import MovieTools
from agentgym_servers.movie._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    world = world_of(options.seed)
    return tool_app("Movie", options, world.tasks, lambda task: MovieTools(world.setting, task))
