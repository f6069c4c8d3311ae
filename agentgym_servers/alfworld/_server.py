"""The ALFWorld server: AgentGym's protocol over the games of `_game`, or over ALFWorld's own games.

Requests and responses equal AgentGym's, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.alfworld` lists the differences. As on AgentGym's server, ``world_type`` is checked and has
no effect, and once a game is over, every request except a reset fails; a refused reset leaves the game
unchanged.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Protocol

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import StepBody
from agentgym_servers.alfworld._game import HouseGame, HouseTurn
from agentgym_servers.alfworld._tasks import TASKS, task_of
from agentgym_servers.alfworld._textworld import OfficialGames

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_WORLD_TYPES = ("Text", "Embody", "Hybrid")


class _ResetBody(BaseModel):
    id: int
    game: int
    world_type: str


class _PlayedGame(Protocol):
    """A game in play."""

    last: HouseTurn

    async def play(self, action: str) -> HouseTurn: ...


class _Games(Protocol):
    """All games of a server."""

    async def start(self, env_id: int, task_id: int) -> tuple[str, _PlayedGame]:
        """Start a task; return its name and its game."""


class _OwnGame:
    """A game of this project."""

    def __init__(self, game: HouseGame) -> None:
        self._game = game
        self.last = game.last

    async def play(self, action: str) -> HouseTurn:
        self.last = self._game.play(action)
        return self.last


class _OwnGames:
    """The generated tasks of a seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed

    async def start(self, env_id: int, task_id: int) -> tuple[str, _OwnGame]:
        """Start a task; return its name and its game."""
        if task_id not in range(TASKS):
            raise Failed(f"Game index out of range: 0 to {TASKS - 1}.")
        task = task_of(self._seed, task_id)
        return task.name, _OwnGame(HouseGame(task))


class _ServedEnv:
    """One environment: its game after the first reset, with the task's id and the type of world."""

    def __init__(self, env_id: int) -> None:
        self._id = env_id
        self._played: tuple[_PlayedGame, int, str] | None = None
        self.turn = asyncio.Lock()

    def start(self, game: _PlayedGame, task_id: int, world_type: str) -> None:
        """Start a task."""
        self._played = (game, task_id, world_type)

    @property
    def game(self) -> _PlayedGame:
        """The current game, which is not over."""
        if self._played is None:
            raise Failed(f"The environment {self._id} has no game yet: reset it first.")
        game, _, _ = self._played
        if game.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return game

    def detail(self) -> dict[str, Any]:
        """Return the response to ``/detail``."""
        if self._played is None:
            return {"done": False, "reward": 0, "deleted": False}
        _, task_id, world_type = self._played
        return {"world_type": world_type, "game": task_id, **_shown(self.game.last), "deleted": False}


def _shown(last: HouseTurn) -> dict[str, Any]:
    return {
        "observation": last.observation,
        "reward": last.reward,
        "available_actions": last.available_actions,
        "done": last.done,
    }


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        MissingExtra: TextWorld, which plays the games of a folder, is not installed.
        BadOption: The folder has no games.
    """
    games = _OwnGames(options.seed) if options.data is None else OfficialGames(options.data)
    envs = HeldEnvs[_ServedEnv](options)
    app = new_app("ALFWorld", options, greeting="This is environment AlfWorld.")
    _add_play(app, envs, games)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], games: _Games) -> None:
    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.add(_ServedEnv)}

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        if body.world_type not in _WORLD_TYPES:
            raise Failed('world_type must be one of "Text", "Embody" and "Hybrid"')
        env = envs.get(body.id)
        async with env.turn:
            name, game = await games.start(body.id, body.game)
            env.start(game, body.game, body.world_type)
        return {
            "id": body.id,
            "observation": game.last.observation,
            "available_actions": game.last.available_actions,
            "task_type": name,
        }

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        env = envs.get(body.id)
        async with env.turn:
            return _shown(await env.game.play(body.action))


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/available_actions", response_model=None)
    async def available_actions(env_id: EnvId) -> tuple[str, ...]:
        return envs.get(env_id).game.last.available_actions

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.get(env_id).game.last.observation

    @app.get("/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        return envs.get(env_id).detail()
