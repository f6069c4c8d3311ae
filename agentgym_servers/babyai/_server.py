"""The BabyAI server: AgentGym's protocol over the games of `_game`.

Requests and responses are those of AgentGym's server, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.babyai` lists the differences.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers.babyai._game import Game
from agentgym_servers.babyai._picture import data_url

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_MOST_TASKS = 10**30  # a bound that keeps integers small enough for arithmetic


class _StepBody(BaseModel):
    id: int
    action: str


class _ResetBody(BaseModel):
    id: int
    data_idx: int


class _IdBody(BaseModel):
    id: int


class _Table:
    """One environment: its game after the first reset."""

    def __init__(self, env_id: int) -> None:
        self._id = env_id
        self.dealt: Game | None = None

    @property
    def game(self) -> Game:
        """The current game, which is not over."""
        if self.dealt is None:
            raise Failed(f"The environment {self._id} has no task yet: reset it first.")
        if self.dealt.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self.dealt


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    tables = HeldEnvs[_Table](options)
    app = new_app("BabyAI", options, greeting="This is environment BabyAI.")
    _add_play(app, tables, options.seed)
    _add_views(app, tables)
    return app


def _add_play(app: FastAPI, tables: HeldEnvs[_Table], seed: int) -> None:
    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": tables.add(_Table)}

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> dict[str, Any]:
        table = tables.get(body.id)
        if body.data_idx >= _MOST_TASKS:
            raise Failed("There is no such task: its id is too large.")
        try:
            table.dealt = await run_in_threadpool(Game, body.data_idx, seed)
        except ValueError as error:
            raise Failed(str(error)) from None
        return _shown(table.dealt, deleted=False)

    @app.post("/step", response_model=None)
    async def step(body: _StepBody) -> dict[str, Any]:
        game = tables.get(body.id).game
        game.play(body.action)
        return {"observation": game.text, **_paid(game)}

    @app.post("/close", response_model=None)
    async def close(body: _IdBody) -> bool:
        return tables.close(body.id)


def _add_views(app: FastAPI, tables: HeldEnvs[_Table]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return tables.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> dict[str, Any]:
        table = tables.get(env_id)
        if table.dealt is None:
            nothing = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False}
            return {**nothing, "deleted": False}
        return _shown(table.game, deleted=False)

    @app.post("/render", response_model=None)
    async def render(body: _IdBody) -> str:
        game = tables.get(body.id).game
        return await run_in_threadpool(lambda: data_url(game.picture()))


def _shown(game: Game, **more: Any) -> dict[str, Any]:
    return {"observation": f"Your goal: {game.goal}\n{game.text}", **_paid(game), **more}


def _paid(game: Game) -> dict[str, Any]:
    reward = game.last.reward
    return {"reward": reward, "score": reward, "done": game.last.done}
