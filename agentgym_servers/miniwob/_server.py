"""The routes of the MiniWoB server.

AgentGym has no such server. The protocol is the same as for TextCraft, with the name of the task and its goal
in the response to a reset. An error is HTTP 200 with ``{"error": str}``.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from playwright.async_api import Error
from pydantic import BaseModel

from agentgym_gym.envs.miniwob import MINIWOB
from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._browser.chromium import Chromium
from agentgym_servers._browser.turns import TURN_SECONDS
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import IdBody, ResetBody, StepBody
from agentgym_servers.miniwob._episode import MiniWobEpisode
from agentgym_servers.miniwob._pages import MiniWobBrowser

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fastapi import FastAPI

    from agentgym_servers._frame.game_turn import GameTurn

__all__ = ["create_app"]

logger = logging.getLogger("agentgym_servers")


class _CreateBody(BaseModel):
    pass


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet; the browser starts with the first task."""
    app = new_app("MiniWoB", options, greeting=MINIWOB.wire.greeting, one_world=True)
    envs = HeldEnvs[MiniWobEpisode](options)
    _add_play(app, envs, MiniWobBrowser(Chromium()))
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[MiniWobEpisode], browser: MiniWobBrowser) -> None:
    @app.post("/create", response_model=None)
    async def create(_body: _CreateBody) -> dict[str, Any]:
        return {"id": envs.add(lambda _: MiniWobEpisode(browser))}

    @app.post("/reset", response_model=None)
    async def reset(body: ResetBody) -> dict[str, Any]:
        episode = envs.get(body.id)
        if not MINIWOB.has_task(body.data_idx):
            raise Failed("There is no such task.")
        async with episode.turn:
            await _within_limits(episode.reset(body.data_idx))
            return {"id": body.id, **episode.detail()}

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        episode = envs.get(body.id)
        async with episode.turn:
            return vars(await _within_limits(episode.step(body.action)))

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool:
        if body.id not in envs:
            return False
        episode = envs.get(body.id)
        envs.close(body.id)
        async with episode.turn:
            await episode.close()
        return True


def _add_views(app: FastAPI, envs: HeldEnvs[MiniWobEpisode]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.get(env_id).last.observation

    @app.get("/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        return {"id": env_id, **envs.get(env_id).detail()}


async def _within_limits(work: Awaitable[GameTurn]) -> GameTurn:
    """Wait for a turn.

    Raises:
        Failed: The browser failed, or took too long.
    """
    try:
        return await work
    except asyncio.TimeoutError:
        raise Failed(f"The browser took more than {TURN_SECONDS:g} s.") from None
    except Error as error:
        logger.warning("the browser failed: %s", error.message.splitlines()[0])
        raise Failed(f"The browser failed: {error.message.splitlines()[0]}") from error
