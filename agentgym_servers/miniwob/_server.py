"""The routes of the MiniWoB server.

AgentGym has no such server, so the protocol is of this project: that of AgentGym's TextCraft server, with the
name of the task and its goal in the response to a reset. An error is HTTP 200 with ``{"error": str}``.
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
from agentgym_servers._frame.bodies import IdBody, ResetBody, StepBody
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers.miniwob._episode import Episode, Stage

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from fastapi import FastAPI

    from agentgym_servers.miniwob._episode import Turn

__all__ = ["create_app"]

logger = logging.getLogger("agentgym_servers")


class _CreateBody(BaseModel):
    pass


class _Env:
    """One environment, whose episode is made with its first task."""

    def __init__(self) -> None:
        self.turn = asyncio.Lock()
        self.episode: Episode | None = None

    def started(self) -> Episode:
        """Return the episode.

        Raises:
            Failed: No task was started.
        """
        if self.episode is None:
            raise Failed("The environment has no task yet: reset it.")
        return self.episode


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet; the browser starts with the first task."""
    app = new_app("MiniWoB", options, greeting=MINIWOB.wire.greeting, one_world=True)
    app.state.browser = browser = Chromium()
    app.state.envs = envs = HeldEnvs[_Env](options)
    _add_play(app, envs, browser)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_Env], browser: Chromium) -> None:
    stages: list[Stage] = []  # one, made in the event loop

    @app.post("/create", response_model=None)
    async def create(_body: _CreateBody) -> dict[str, Any]:
        return {"id": envs.add(lambda _: _Env())}

    @app.post("/reset", response_model=None)
    async def reset(body: ResetBody) -> dict[str, Any]:
        env = envs.get(body.id)
        if not MINIWOB.has_task(body.data_idx):
            raise Failed("There is no such task.")
        if not stages:
            stages.append(Stage(browser))
        async with env.turn:
            episode = env.episode = env.episode or Episode(stages[0])
            await _within_limits(episode.reset(body.data_idx))
            return {"id": body.id, **episode.detail()}

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        env = envs.get(body.id)
        async with env.turn:
            return vars(await _within_limits(env.started().step(body.action)))

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool:
        env = envs.get(body.id) if body.id in envs else _Env()
        existed = envs.close(body.id)
        async with env.turn:
            if env.episode is not None:
                await env.episode.close()
        return existed


def _add_views(app: FastAPI, envs: HeldEnvs[_Env]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.get(env_id).started().last.observation

    @app.get("/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        return {"id": env_id, **envs.get(env_id).started().detail()}


async def _within_limits(work: Awaitable[Turn]) -> Turn:
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
