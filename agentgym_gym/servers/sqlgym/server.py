"""The routes of the local SQLGym server.

Requests and replies are those of AgentGym's server, errors too: HTTP 500, in plain text and without a reason.
Where it differs is listed in `agentgym_gym.envs.sqlgym`, as ``local_quirks``.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Annotated, Any

from fastapi import Query
from pydantic import BaseModel

from agentgym_gym.servers.app import MAX_BODY_BYTES, MAX_ENVS, Failed, check_limits, new_app
from agentgym_gym.servers.held import KEEP_SECONDS, HeldEnvs
from agentgym_gym.servers.sqlgym.bird import BirdWorld
from agentgym_gym.servers.sqlgym.judges import DATA_BOUNDS, MADE_BOUNDS, Judges
from agentgym_gym.servers.sqlgym.world import Task, World, world_of

if TYPE_CHECKING:
    from pathlib import Path

    from fastapi import FastAPI

__all__ = ["create_app"]

_EnvId = Annotated[int, Query(alias="env_idx")]


class _StepBody(BaseModel):
    env_idx: int
    action: str


class _ResetBody(BaseModel):
    env_idx: int
    item_id: int


class _Table:
    """One environment.

    Attributes:
        tried: Whether a statement was judged since the reset: there is one attempt.
    """

    def __init__(self) -> None:
        self._task: Task | None = None
        self.tried = False

    def deal(self, task: Task) -> None:
        """Start a task."""
        self._task, self.tried = task, False

    @property
    def task(self) -> Task:
        """Its task.

        Raises:
            Failed: It has none yet.
        """
        if self._task is None:
            raise Failed("the environment has no task yet: reset it first")
        return self._task


def create_app(
    *,
    max_envs: int = MAX_ENVS,
    max_body_bytes: int = MAX_BODY_BYTES,
    keep_seconds: float = KEEP_SECONDS,
    seed: int = 0,
    data: Path | None = None,
) -> FastAPI:
    """Build a server with no environments yet.

    Args:
        max_envs: How many environments it holds at a time.
        max_body_bytes: How large a request body may be; a larger one is answered 413.
        keep_seconds: For how long it keeps an environment that nobody asks for.
        seed: Of the databases and the questions that it makes.
        data: A folder with BIRD's databases and questions, which are played in place of made ones.

    Raises:
        BadOption: A limit is below 1, or the folder is none of BIRD's.
    """
    check_limits(max_envs=max_envs, max_body_bytes=max_body_bytes)
    world: World = world_of(seed) if data is None else BirdWorld(data)
    app = new_app(
        "SQLGym",
        max_body_bytes=max_body_bytes,
        world=f"seed {seed}" if data is None else "data",
        plain_errors=True,
    )
    tables = HeldEnvs[_Table](max_envs, keep_seconds, new_ids=True)
    judges = Judges(world, MADE_BOUNDS if data is None else DATA_BOUNDS)
    app.state.judges = judges
    _add_play(app, tables, world, judges)
    _add_views(app, tables)
    return app


def _add_play(app: FastAPI, tables: HeldEnvs[_Table], world: World, judges: Judges) -> None:
    @app.post("/create", response_model=None)
    async def create() -> int:
        return tables.add(lambda _: _Table())

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> list[str | None]:
        table = tables.get(body.env_idx)
        try:
            if world.ready(body.item_id):
                task = world.task(body.item_id)
            else:
                task = await asyncio.to_thread(world.task, body.item_id)
        except LookupError as error:
            raise Failed(str(error)) from error
        table.deal(task)
        return [task.observation, None]

    @app.post("/step", response_model=None)
    async def step(body: _StepBody) -> dict[str, Any]:
        table = tables.get(body.env_idx)
        task, first = table.task, not table.tried
        table.tried = True
        judged = await judges.judge(task, body.action)
        reward = 1.0 if judged.right and first else 0.0
        return {"state": judged.state, "reward": reward, "done": True, "info": {"ground_truth": ""}}


def _add_views(app: FastAPI, tables: HeldEnvs[_Table]) -> None:
    @app.get("/", response_model=None)
    async def name() -> str:
        return "ok"

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return tables.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: _EnvId) -> str:
        return tables.get(env_id).task.observation
