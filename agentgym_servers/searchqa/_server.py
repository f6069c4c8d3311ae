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
from agentgym_servers._frame.request_models import EnvStepBody, EnvTaskBody, IdBody
from agentgym_servers.searchqa._data_folder import SearchFolder
from agentgym_servers.searchqa._game import (
    SearchEpisode,
    SearchLibrary,
    information,
    parse_action,
)
from agentgym_servers.searchqa._search import DocumentIndex
from agentgym_servers.searchqa._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI

    from agentgym_servers._frame.game_turn import GameTurn

__all__ = ["create_app"]

DOCUMENTS_PER_SEARCH = 3
"""The number of documents that a search returns."""

MANY_DOCUMENTS = 20_000
"""The number of documents from which a search may take too long for a handler, so it runs in a thread."""


class _CloseBody(BaseModel):
    env_idx: int


class _ServedEnv:
    """One environment: its current question."""

    def __init__(self, library: SearchLibrary, task_id: int) -> None:
        self.start(library, task_id)

    def start(self, library: SearchLibrary, task_id: int | None) -> None:
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
        BadOption: The user's folder has missing or invalid files; see `_data_folder`.
    """
    library: SearchLibrary = world_of(options.seed) if options.data is None else SearchFolder(options.data)
    envs = HeldEnvs[_ServedEnv](options)
    app = new_app("SearchQA", options, plain_errors=True)
    _add_play(app, envs, library)
    _add_views(app, envs)
    return app


def _add_play(app: FastAPI, envs: HeldEnvs[_ServedEnv], library: SearchLibrary) -> None:
    index = DocumentIndex(library.documents)

    async def search(query: str) -> str:
        if len(library.documents) < MANY_DOCUMENTS:
            numbers = index.nearest(query, DOCUMENTS_PER_SEARCH)
        else:
            numbers = await asyncio.to_thread(index.nearest, query, DOCUMENTS_PER_SEARCH)
        return information(library.documents[number] for number in numbers)

    @app.post("/create", response_model=None)
    async def create(body: IdBody) -> int:
        return envs.add(lambda _: _ServedEnv(library, body.id))

    @app.post("/reset", response_model=None)
    async def reset(body: EnvTaskBody) -> str:
        env = envs.get(body.env_idx)
        env.start(library, body.id)
        return env.episode.prompt

    @app.post("/step", response_model=None)
    async def step(body: EnvStepBody) -> dict[str, Any]:
        episode = envs.get(body.env_idx).episode
        match parse_action(body.action):
            case None:
                return _response(episode.result())
            case "answer", _:
                return _response(episode.answer(body.action))
            case _, query:
                return _response(episode.result(await search(query)))

    @app.post("/close", response_model=None)
    async def close(body: _CloseBody) -> bool:
        return envs.close(body.env_idx)


def _response(result: GameTurn) -> dict[str, Any]:
    return {**vars(result), "info": None}


def _add_views(app: FastAPI, envs: HeldEnvs[_ServedEnv]) -> None:
    @app.get("/observation", response_model=None)
    async def observation(env_idx: int) -> str:
        return envs.get(env_idx).episode.prompt

    # AgentGym's server has no such route, which distinguishes the two: so the schema omits it.
    @app.get("/list_envs", response_model=None, include_in_schema=False)
    async def list_envs() -> list[int]:
        return envs.ids()
