"""The routes of the SQLGym server.

Requests and responses equal AgentGym's, including errors: HTTP 500 in plain text, without a reason unless a
task cannot be judged. The ``local_quirks`` of `agentgym_gym.envs.sqlgym` list the differences.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import CannotJudge, Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers._frame.request_models import EnvStepBody
from agentgym_servers.sqlgym._data_folder import BirdWorld
from agentgym_servers.sqlgym._judge import NoReference, SqlWorkerPool
from agentgym_servers.sqlgym._statement_process import DATA_BOUNDS, MADE_BOUNDS, NotExecuted
from agentgym_servers.sqlgym._world import SqlTask, SqlWorld, world_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from fastapi import FastAPI

__all__ = ["create_app"]


class _ResetBody(BaseModel):
    env_idx: int
    item_id: int


class _ServedEnv:
    """One environment.

    Attributes:
        item_id: The id of the current task.
        tried: Whether a statement was scored since the reset: there is one attempt.
    """

    def __init__(self) -> None:
        self._task: SqlTask | None = None
        self.item_id = 0
        self.tried = False

    def start(self, item_id: int, task: SqlTask) -> None:
        """Start a task."""
        self.item_id, self._task, self.tried = item_id, task, False

    def undo_try(self, task: SqlTask, *, first: bool) -> None:
        """Return the attempt of a statement that was not executed, unless another task was started since."""
        if first and task is self._task:
            self.tried = False

    @property
    def task(self) -> SqlTask:
        """The current task.

        Raises:
            Failed: No task has been started.
        """
        if self._task is None:
            raise Failed("the environment has no task yet: reset it first")
        return self._task


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        BadOption: The user's folder is not a valid BIRD folder.
    """
    world: SqlWorld = world_of(options.seed) if options.data is None else BirdWorld(options.data)
    app = new_app("SQLGym", options, plain_errors=True)
    envs = HeldEnvs[_ServedEnv](options, new_ids=True)
    workers = SqlWorkerPool(world, MADE_BOUNDS if options.data is None else DATA_BOUNDS)
    app.state.workers = workers
    # A generated reference has been executed when its question was made.
    _add_play(app, envs, world, workers, check_references=options.data is not None)
    _add_views(app, envs)
    return app


def _add_play(
    app: FastAPI,
    envs: HeldEnvs[_ServedEnv],
    world: SqlWorld,
    workers: SqlWorkerPool,
    *,
    check_references: bool,
) -> None:
    @app.post("/create", response_model=None)
    async def create() -> int:
        return envs.add(lambda _: _ServedEnv())

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> list[str | None]:
        env = envs.get(body.env_idx)
        try:
            if world.ready(body.item_id):
                task = world.task(body.item_id)
            else:
                task = await asyncio.to_thread(world.task, body.item_id)
        except LookupError as error:
            raise Failed(str(error)) from error
        if check_references:
            with _failures(body.item_id):
                await workers.check(task, body.env_idx)
        env.start(body.item_id, task)
        return [task.observation, None]

    @app.post("/step", response_model=None)
    async def step(body: EnvStepBody) -> dict[str, Any]:
        env = envs.get(body.env_idx)
        item_id, task, first = env.item_id, env.task, not env.tried
        env.tried = True  # before the statement is queued, so that only one of two at once can score
        try:
            with _failures(item_id):
                judged = await workers.judge(task, body.action, body.env_idx)
        except Failed:
            env.undo_try(task, first=first)
            raise
        reward = 1.0 if judged.right and first else 0.0
        return {"state": judged.state, "reward": reward, "done": True, "info": {"ground_truth": ""}}


@contextlib.contextmanager
def _failures(item_id: int) -> Iterator[None]:
    """Raise failures of the judge as failures of the request.

    Raises:
        CannotJudge: The task has no reference to compare with.
        Failed: A statement was not executed.
    """
    try:
        yield
    except NoReference as error:
        raise CannotJudge(item_id, str(error)) from error
    except NotExecuted as error:
        raise Failed(f"the statement was not executed: {error}") from error


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/list_envs", response_model=None)
    async def list_envs() -> list[int]:
        return envs.ids()

    @app.get("/observation", response_model=None)
    async def observation(env_idx: int) -> str:
        return envs.get(env_idx).task.observation
