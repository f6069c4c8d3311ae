"""The BabyAI server: AgentGym's protocol over the games of `game`.

Requests and replies are those of AgentGym's server, errors too: HTTP 200 with ``{"error": str}``.
`agentgym_gym.envs.babyai` lists what differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel

from agentgym_gym.errors import BadOption
from agentgym_gym.servers.app import MAX_BODY_BYTES, MAX_ENVS, EnvId, Failed, check_limits, new_app
from agentgym_gym.servers.babyai.game import Game
from agentgym_gym.servers.babyai.picture import data_url
from agentgym_gym.servers.held import KEEP_SECONDS, HeldEnvs

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

_MOST_TASKS = 10**30  # a bound, so that no number is too long to reckon with


class _StepBody(BaseModel):
    id: int
    action: str


class _ResetBody(BaseModel):
    id: int
    data_idx: int


class _IdBody(BaseModel):
    id: int


class _Table:
    """One environment: its game, once there is one."""

    def __init__(self, env_id: int) -> None:
        self._id = env_id
        self.dealt: Game | None = None

    @property
    def game(self) -> Game:
        """Its game, which is not over."""
        if self.dealt is None:
            raise Failed(f"The environment {self._id} has no task yet: reset it first.")
        if self.dealt.last.done:
            raise Failed(f"The task with environment {self._id} has finished.")
        return self.dealt


def create_app(
    *,
    max_envs: int = MAX_ENVS,
    max_body_bytes: int = MAX_BODY_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    seed: int = 0,
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time.
        max_body_bytes: How large a request body may be; a larger one is answered 413.
        keep_seconds: For how long it keeps an environment that nobody asks for.
        seed: Of the world. In that of seed 0 each task is AgentGym's of the same id.

    Raises:
        BadOption: A limit is below 1, or the seed below 0.
    """
    check_limits(max_envs=max_envs, max_body_bytes=max_body_bytes)
    if seed < 0:
        raise BadOption(f"seed={seed} is out of range; it must be 0 or more")
    tables = HeldEnvs[_Table](max_envs, keep_seconds)
    app = new_app("BabyAI", max_body_bytes=max_body_bytes, world=f"seed {seed}")
    _add_play(app, tables, seed)
    _add_views(app, tables)
    return app


# The handlers run one after the other, in the one thread of the event loop, but for what takes longer than
# a step does: making a level, and drawing a picture of it.


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
        return {"observation": game.told, **_paid(game)}

    @app.post("/close", response_model=None)
    async def close(body: _IdBody) -> bool:
        return tables.close(body.id)


def _add_views(app: FastAPI, tables: HeldEnvs[_Table]) -> None:
    @app.get("/", response_model=None)
    async def name() -> str:
        return "This is environment BabyAI."

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
    return {"observation": f"Your goal: {game.goal}\n{game.told}", **_paid(game), **more}


def _paid(game: Game) -> dict[str, Any]:
    reward = game.last.reward
    return {"reward": reward, "score": reward, "done": game.last.done}
