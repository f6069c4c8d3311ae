"""The BabyAI server: AgentGym's protocol over the games of `_game`.

Requests and responses are those of AgentGym's server, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.babyai` lists the differences.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.bodies import IdBody, ResetBody, StepBody
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.serial_thread import SerialThread
from agentgym_servers.babyai._game import Game
from agentgym_servers.babyai._picture import data_url

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_MOST_TASKS = 10**30  # a bound that keeps integers small enough for arithmetic


class _Table:
    """One environment: its game after the first reset.

    Attributes:
        dealt: The game.
        score: The reward of the last step; as a twin, the sum of the rewards of all steps.
        closable: Whether closing frees it; only as a twin it may not be.
        turn: Held while a level or a picture of the environment is drawn.
    """

    def __init__(self, env_id: int, *, twin: bool) -> None:
        self._id = env_id
        self._twin = twin
        self.dealt: Game | None = None
        self.score: float = 0
        self.closable = True
        self.turn = asyncio.Lock()

    @property
    def game(self) -> Game:
        """The current game, which is not over."""
        if self.dealt is None:
            raise Failed(
                str(self._id)
                if self._twin
                else f"The environment {self._id} has no task yet: reset it first."
            )
        if self.dealt.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self.dealt

    def deal(self, game: Game) -> None:
        """Start a game."""
        self.dealt, self.score = game, 0

    def play(self, action: str) -> Game:
        """Play an action of the current game."""
        game = self.game
        reward = game.play(action).reward
        self.score = self.score + reward if self._twin else reward
        return game

    def close(self) -> bool:
        """Return whether closing frees the environment: not if a twin was closed before its first reset."""
        self.closable = self.closable and not (self._twin and self.dealt is None)
        return self.closable


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    tables = HeldEnvs[_Table](options)
    app = new_app("BabyAI", options, greeting="This is environment BabyAI.")
    _add_play(app, tables, options)
    _add_views(app, tables)
    return app


def _drawn(game: Game) -> str:
    return data_url(game.picture())


def _add_play(app: FastAPI, tables: HeldEnvs[_Table], options: ServerOptions) -> None:
    worker = SerialThread()

    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": tables.add(lambda env_id: _Table(env_id, twin=options.twin))}

    @app.post("/reset", response_model=None)
    async def reset(body: ResetBody) -> dict[str, Any]:
        table = tables.get(body.id)
        if body.data_idx >= _MOST_TASKS:
            raise Failed("There is no such task: its id is too large.")
        try:
            game = await worker.run(table.turn, Game, body.data_idx, options.seed, twin=options.twin)
        except ValueError as error:
            raise Failed(str(error)) from None
        table.deal(game)
        return _shown(table, game, deleted=False)

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        table = tables.get(body.id)
        game = table.play(body.action)
        return {"observation": game.text, **_paid(table, game)}

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool:
        return body.id in tables and tables.get(body.id).close() and tables.close(body.id)


def _add_views(app: FastAPI, tables: HeldEnvs[_Table]) -> None:
    pictures = SerialThread()  # another than that of resets, which are not to wait for pictures

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return tables.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> dict[str, Any]:
        table = tables.get(env_id)
        if table.dealt is None:
            nothing = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False}
            return {**nothing, "deleted": False}
        return _shown(table, table.game, deleted=False)

    @app.post("/render", response_model=None)
    async def render(body: IdBody) -> str:
        table = tables.get(body.id)
        return await pictures.run(table.turn, _drawn, table.game)


def _shown(table: _Table, game: Game, **more: Any) -> dict[str, Any]:
    return {"observation": f"Your goal: {game.goal}\n{game.text}", **_paid(table, game), **more}


def _paid(table: _Table, game: Game) -> dict[str, Any]:
    return {"reward": game.last.reward, "score": table.score, "done": game.last.done}
