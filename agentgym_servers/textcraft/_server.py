"""The TextCraft server: AgentGym's protocol over the games of `_game`.

Requests and responses equal AgentGym's, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.textcraft` lists the differences. As on AgentGym's server, ``commands`` and ``goal`` of
``/create`` are accepted and ignored, a new environment plays the task whose index is the environment's id,
and a game continues after it is won.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.game_turn import GameTurn
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import IdBody, StepBody
from agentgym_servers.textcraft._game import CraftGame
from agentgym_servers.textcraft._recipes import CraftTask, RecipeBook, recipe_book

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]


class _CreateBody(BaseModel):
    commands: str | None = None
    goal: str | None = None


class _ResetBody(BaseModel):
    id: int
    data_idx: int | None = 0


class _ServedEnv:
    """One environment: the task, its game, and the last observation."""

    def __init__(self, book: RecipeBook, index: int) -> None:
        self.start(book, index)

    def start(self, book: RecipeBook, index: int) -> None:
        """Start a task."""
        self.task: CraftTask = book.task(index)
        self.game = CraftGame(book, self.task.goal)
        self.last = GameTurn(self.task.text)


def _start_response(env_id: int, env: _ServedEnv) -> dict[str, Any]:
    return {"id": env_id, "observation": env.last.observation, "done": False, "reward": 0}


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        MissingExtra: The package ``textcraft``, which contains the recipes, is not installed.
    """
    book = recipe_book()
    envs = HeldEnvs[_ServedEnv](options)
    app = new_app("TextCraft", options, greeting="This is environment TextCraft.", one_world=True)
    _add_play(app, envs, book)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], book: RecipeBook) -> None:
    @app.post("/create", response_model=None)
    async def create(_body: _CreateBody) -> dict[str, Any]:
        env_id = envs.add(lambda number: _ServedEnv(book, number))
        return _start_response(env_id, envs.get(env_id))

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        env = envs.get(body.id)
        env.last = env.game.play(body.action)
        return vars(env.last)

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        env = envs.get(body.id)
        if body.data_idx is None:
            raise Failed("data_idx must be an integer, not null.")
        env.start(book, body.data_idx)
        return _start_response(body.id, env)

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool:
        return envs.close(body.id)


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.get(env_id).last.observation

    @app.get("/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        last = envs.get(env_id).last
        return {"observation": last.observation, "done": last.done, "reward": last.reward, "deleted": False}

    @app.get("/commands", response_model=None)
    async def commands(env_id: EnvId) -> str:
        return envs.get(env_id).task.commands

    @app.get("/goal", response_model=None)
    async def goal(env_id: EnvId) -> str:
        return envs.get(env_id).task.goal
