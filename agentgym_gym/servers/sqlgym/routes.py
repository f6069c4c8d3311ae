"""The routes of the local SQLGym server.

Requests and replies are those of AgentGym's server, errors too: HTTP 500, in plain text and without a reason.
Where it differs is listed in `agentgym_gym.envs.sqlgym`, as ``local_quirks``.
"""

from __future__ import annotations

import asyncio
import secrets
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

__all__ = ["build"]

_FIRST_IDS = 2**40
"""Below which the first id of a server is drawn, so that one that was restarted gives out none of those that
it gave out before: AgentGym's server draws each at random."""

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


class _Tables:
    """All environments, by the ids that clients see."""

    def __init__(self, max_envs: int, keep_seconds: float) -> None:
        self._held = HeldEnvs[_Table](max_envs, keep_seconds)
        self._first = secrets.randbelow(_FIRST_IDS)

    def add(self) -> int:
        """Make an environment and return its id."""
        return self._first + self._held.add(lambda _: _Table())

    def get(self, env_id: int) -> _Table:
        """Return an environment."""
        return self._held.get(env_id - self._first)

    def ids(self) -> list[int]:
        """Return the ids of all."""
        return [self._first + number for number in self._held.ids()]


def build(
    *,
    max_envs: int | None = None,
    max_body_bytes: int | None = None,
    keep_seconds: float | None = None,
    seed: int = 0,
    data: Path | None = None,
) -> FastAPI:
    """Build the server; see `agentgym_gym.servers.sqlgym.create_app`."""
    max_envs = MAX_ENVS if max_envs is None else max_envs
    max_body_bytes = MAX_BODY_BYTES if max_body_bytes is None else max_body_bytes
    keep_seconds = KEEP_SECONDS if keep_seconds is None else keep_seconds
    check_limits(max_envs=max_envs, max_body_bytes=max_body_bytes)
    world: World = world_of(seed) if data is None else BirdWorld(data)
    app = new_app(
        "SQLGym",
        max_body_bytes=max_body_bytes,
        world=f"seed {seed}" if data is None else "data",
        plain_errors=True,
    )
    tables = _Tables(max_envs, keep_seconds)
    judges = Judges(world, MADE_BOUNDS if data is None else DATA_BOUNDS)
    app.state.judges = judges
    _add_play(app, tables, world, judges)
    _add_views(app, tables)
    return app


def _add_play(app: FastAPI, tables: _Tables, world: World, judges: Judges) -> None:
    @app.post("/create", response_model=None)
    async def create() -> int:
        return tables.add()

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


def _add_views(app: FastAPI, tables: _Tables) -> None:
    @app.get("/", response_model=None)
    async def name() -> str:
        return "ok"

    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return tables.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_id: _EnvId) -> str:
        return tables.get(env_id).task.observation
