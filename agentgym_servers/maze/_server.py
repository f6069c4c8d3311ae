"""The Maze server: AgentGym's protocol over the games of `_game`.

Requests and responses equal AgentGym's LMRL-Gym server's, including errors: HTTP 200 with ``{"error": str}``.
The server identifies itself as that server does, so clients of that server recognize it.
`agentgym_gym.envs.maze` lists the differences. As on AgentGym's server, a request before the first reset
fails, and once a game is over, every request except a reset fails; a refused reset leaves the game unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import StepBody
from agentgym_servers.maze._game import ACTIONS, TASKS, MazeGame

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]


class _ResetBody(BaseModel):
    id: int
    game: int


class _ServedEnv:
    """One environment: its game after the first reset."""

    def __init__(self, env_id: int) -> None:
        self._id = env_id
        self._game: MazeGame | None = None

    def start(self, task: int) -> MazeGame:
        """Start a task."""
        if task not in range(TASKS):
            raise Failed(f"The game {task} is not valid.")
        self._game = game = MazeGame(task)
        return game

    @property
    def game(self) -> MazeGame:
        """The current game, which is not over."""
        if self._game is None:
            raise Failed(f"The environment {self._id} has no game yet: reset it first.")
        if self._game.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self._game


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    envs = HeldEnvs[_ServedEnv](options)
    greeting = "This is environment LMRL-Gym."
    app = new_app("Maze", options, greeting=greeting, one_world=True, prefix="/maze")
    _add_play(app, envs)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.post("/maze/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.add(_ServedEnv)}

    @app.post("/maze/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        return {"observation": envs.get(body.id).start(body.game).last.observation}

    @app.post("/maze/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        return vars(envs.get(body.id).game.play(body.action))


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/maze/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/maze/available_actions", response_model=None)
    async def available_actions() -> list[str]:
        return list(ACTIONS)

    @app.get("/maze/observation", response_model=None)
    async def observation(env_id: EnvId) -> str:
        return envs.get(env_id).game.last.observation

    @app.get("/maze/detail", response_model=None)
    async def detail(env_id: EnvId) -> dict[str, Any]:
        last = envs.get(env_id).game.last
        return {
            "maze_name": "double_t_maze",
            "observation": last.observation,
            "done": last.done,
            "reward": last.reward,
            "deleted": False,
        }
