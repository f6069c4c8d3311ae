"""The SearchQA server: AgentGym's protocol over the documents and questions of `_world`, or of a folder.

The ``local_quirks`` of `agentgym_gym.envs.searchqa` list the differences from AgentGym's server.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._frame.app import Failed, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers.searchqa._data import Data
from agentgym_servers.searchqa._game import Outcome, SearchEpisode, SearchLibrary, asked_for, information
from agentgym_servers.searchqa._search import Index
from agentgym_servers.searchqa._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

__all__ = ["create_app"]

FOUND = 3
"""The number of documents that a search returns."""

MANY_DOCUMENTS = 20_000
"""The number of documents from which a search may take too long for a handler, so it runs in a thread."""


class _CreateBody(BaseModel):
    id: int


class _StepBody(BaseModel):
    env_idx: int
    action: str


class _ResetBody(BaseModel):
    env_idx: int
    id: int | None = None


class _CloseBody(BaseModel):
    env_idx: int


class _Table:
    """One environment: its current question."""

    def __init__(self, library: SearchLibrary, task_id: int) -> None:
        self.deal(library, task_id)

    def deal(self, library: SearchLibrary, task_id: int | None) -> None:
        """Start a task."""
        if task_id is None:
            raise Failed("id must be a task, not null")
        try:
            self.episode = SearchEpisode(library.question(task_id))
        except LookupError as error:
            raise Failed(str(error)) from error


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        BadOption: The user's folder has missing or invalid files; see `_data`.
    """
    library: SearchLibrary = world_of(options.seed) if options.data is None else Data(options.data)
    tables = HeldEnvs[_Table](options)
    app = new_app("SearchQA", options, plain_errors=True)
    _add_play(app, tables, library)
    _add_views(app, tables)
    return app


def _add_play(app: FastAPI, tables: HeldEnvs[_Table], library: SearchLibrary) -> None:
    index = Index(library.documents)

    async def found(query: str) -> str:
        if len(library.documents) < MANY_DOCUMENTS:
            numbers = index.nearest(query, FOUND)
        else:
            numbers = await asyncio.to_thread(index.nearest, query, FOUND)
        return information(library.documents[number] for number in numbers)

    @app.post("/create", response_model=None)
    async def create(body: _CreateBody) -> int:
        return tables.add(lambda _: _Table(library, body.id))

    @app.post("/reset", response_model=None)
    async def reset(body: _ResetBody) -> str:
        table = tables.get(body.env_idx)
        table.deal(library, body.id)
        return table.episode.prompt

    @app.post("/step", response_model=None)
    async def step(body: _StepBody) -> dict[str, Any]:
        episode = tables.get(body.env_idx).episode
        match asked_for(body.action):
            case None:
                return _said(episode.tell())
            case "answer", _:
                return _said(episode.answer(body.action))
            case _, query:
                return _said(episode.tell(await found(query)))

    @app.post("/close", response_model=None)
    async def close(body: _CloseBody) -> bool:
        return tables.close(body.env_idx)


def _said(outcome: Outcome) -> dict[str, Any]:
    return {"observation": outcome.observation, "reward": outcome.reward, "done": outcome.done, "info": None}


def _add_views(app: FastAPI, tables: HeldEnvs[_Table]) -> None:
    @app.get("/observation", response_model=None)
    async def observation(env_idx: int) -> str:
        return tables.get(env_idx).episode.prompt

    # AgentGym's server has no such route, which distinguishes the two: so the schema omits it.
    @app.get("/list_envs", response_model=None, include_in_schema=False)
    async def list_envs() -> list[int]:
        return tables.ids()
