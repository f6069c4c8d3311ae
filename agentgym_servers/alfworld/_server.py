"""The ALFWorld server: AgentGym's protocol over the games of `_game`.

Requests and responses are those of AgentGym's own server, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.alfworld` lists the differences. As on AgentGym's server, ``world_type`` is checked and has
no effect, and once a game is over, every request except a reset fails; a refused reset leaves the game
unchanged.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers.alfworld._game import Game
from agentgym_servers.alfworld._tasks import TASKS, Task, task_of

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_WORLD_TYPES = ("Text", "Embody", "Hybrid")


class _StepBody(BaseModel):
    id: int
    action: str


class _ResetBody(BaseModel):
    id: int
    game: int
    world_type: str


class _ServedEnv:
    """One environment: its task and its game, after the first reset."""

    def __init__(self, env_id: int) -> None:
        self._id = env_id
        self._played: tuple[Task, Game, str] | None = None

    def start(self, task: Task, world_type: str) -> Game:
        """Start a task."""
        game = Game(task)
        self._played = (task, game, world_type)
        return game

    @property
    def game(self) -> Game:
        """The current game, which is not over."""
        if self._played is None:
            raise Failed(f"The environment {self._id} has no game yet: reset it first.")
        _, game, _ = self._played
        if game.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return game

    def detail(self) -> dict[str, Any]:
        """Return the response to ``/detail``."""
        if self._played is None:
            return {"done": False, "reward": 0, "deleted": False}
        task, _, world_type = self._played
        return {
            "world_type": world_type,
            "game": task.id,
            **_shown(self.game),
            "deleted": False,
        }


def _shown(game: Game) -> dict[str, Any]:
    last = game.last
    return {
        "observation": last.observation,
        "reward": last.reward,
        "available_actions": last.available_actions,
        "done": last.done,
    }


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    envs = HeldEnvs[_ServedEnv](options)
    app = new_app("ALFWorld", options, greeting="This is environment AlfWorld.")
    _add_play(app, envs, options.seed)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], seed: int) -> None:
    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.add(_ServedEnv)}

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        if body.world_type not in _WORLD_TYPES:
            raise Failed('world_type must be one of "Text", "Embody" and "Hybrid"')
        env = envs.get(body.id)
        if body.game not in range(TASKS):
            raise Failed(f"There is no such game: they go from 0 to {TASKS - 1}.")
        task = task_of(seed, body.game)
        last = env.start(task, body.world_type).last
        return {
            "id": body.id,
            "observation": last.observation,
            "available_actions": last.available_actions,
            "task_type": task.name,
        }

    @app.post("/step", response_model=None)
    async def step(body: _StepBody) -> dict[str, Any]:
        game = envs.get(body.id).game
        game.play(body.action)
        return _shown(game)


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
