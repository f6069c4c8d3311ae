"""The BabyAI server: AgentGym's protocol over the games of `_game`.

Requests and responses equal AgentGym's, including errors: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.babyai` lists the differences.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import EnvId, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import IdBody, ResetBody, StepBody
from agentgym_servers._frame.serial_thread import SerialThread
from agentgym_servers.babyai._game import BabyAIGame
from agentgym_servers.babyai._levels import picture

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_MOST_TASKS = 10**30  # a bound that keeps integers small enough for arithmetic


class _ServedEnv:
    """One environment: its game after the first reset.

    Attributes:
        current: The game.
        score: The reward of the last step; as a twin, the sum of the rewards of all steps.
        closable: Whether closing frees it; only as a twin it may not be.
        turn: Held while a level or a picture of the environment is drawn.
    """

    def __init__(self, env_id: int, *, twin: bool) -> None:
        self._id = env_id
        self._twin = twin
        self.current: BabyAIGame | None = None
        self.score: float = 0
        self.closable = True
        self.turn = asyncio.Lock()

    @property
    def game(self) -> BabyAIGame:
        """The current game, which is not over."""
        if self.current is None:
            raise Failed(
                str(self._id)
                if self._twin
                else f"The environment {self._id} has no task yet: reset it first."
            )
        if self.current.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self.current

    def start(self, game: BabyAIGame) -> None:
        """Start a game."""
        self.current, self.score = game, 0

    def play(self, action: str) -> BabyAIGame:
        """Play an action of the current game."""
        game = self.game
        reward = game.play(action).reward
        self.score = self.score + reward if self._twin else reward
        return game

    def close(self) -> bool:
        """Return whether closing frees the environment: not if a twin was closed before its first reset."""
        self.closable = self.closable and not (self._twin and self.current is None)
        return self.closable


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet."""
    envs = HeldEnvs[_ServedEnv](options)
    app = new_app("BabyAI", options, greeting="This is environment BabyAI.")
    _add_play(app, envs, options)
    _add_views(app, envs)
    return app


def _picture(game: BabyAIGame) -> str:
    return "data:image/png;base64," + base64.b64encode(picture(game.level)).decode("ascii")


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], options: ServerOptions) -> None:
    worker = SerialThread()

    @app.post("/create", response_model=None)
    async def create() -> dict[str, Any]:
        return {"id": envs.add(lambda env_id: _ServedEnv(env_id, twin=options.twin))}

    @app.post("/reset", response_model=None)
    async def reset(body: ResetBody) -> dict[str, Any]:
        env = envs.get(body.id)
        if body.data_idx >= _MOST_TASKS:
            raise Failed("There is no such task: its id is too large.")
        try:
            game = await worker.run(env.turn, BabyAIGame, body.data_idx, options.seed, twin=options.twin)
        except ValueError as error:
            raise Failed(str(error)) from None
        env.start(game)
        return _shown(env, game, deleted=False)

    @app.post("/step", response_model=None)
    async def step(body: StepBody) -> dict[str, Any]:
        env = envs.get(body.id)
        game = env.play(body.action)
        return {"observation": game.text, **_paid(env, game)}

    @app.post("/close", response_model=None)
    async def close(body: IdBody) -> bool:
        return body.id in envs and envs.get(body.id).close() and envs.close(body.id)


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    pictures = SerialThread()  # a second thread, so that resets do not wait for pictures

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: EnvId) -> dict[str, Any]:
        env = envs.get(env_id)
        if env.current is None:
            nothing = {"observation": "Environment not initialized", "reward": 0, "score": 0, "done": False}
            return {**nothing, "deleted": False}
        return _shown(env, env.game, deleted=False)

    @app.post("/render", response_model=None)
    async def render(body: IdBody) -> str:
        env = envs.get(body.id)
        return await pictures.run(env.turn, _picture, env.game)


def _shown(env: _ServedEnv, game: BabyAIGame, **more: Any) -> dict[str, Any]:
    return {"observation": f"Your goal: {game.goal}\n{game.text}", **_paid(env, game), **more}


def _paid(env: _ServedEnv, game: BabyAIGame) -> dict[str, Any]:
    return {"reward": game.last.reward, "score": env.score, "done": game.last.done}
