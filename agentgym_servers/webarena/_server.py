"""The routes of the WebArena server.

Requests and responses equal AgentGym's, including errors: a page of HTML with HTTP 500 or 400, or a failure
as an observation. The ``local_quirks`` of `agentgym_gym.envs.webarena` list the differences.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from fastapi import Response
from fastapi.responses import HTMLResponse
from playwright.async_api import Error

from agentgym_gym.errors import ArgumentName, BadOption
from agentgym_gym.local_servers import ServerOptions
from agentgym_servers._browser.actions import NotAnAction
from agentgym_servers._browser.tabs import ActionFailed
from agentgym_servers._browser.wall import Wall
from agentgym_servers._frame.app import CannotJudge, Failed, Full, judge_failure, new_app
from agentgym_servers._frame.held_envs import HeldEnvs
from agentgym_servers.webarena._data_folder import DataWorld
from agentgym_servers.webarena._episode import NoPage, WebArenaBrowser, WebArenaEpisode, fault
from agentgym_servers.webarena._evaluation import CheckFailed, problem_of
from agentgym_servers.webarena._judge import Judge
from agentgym_servers.webarena._site_server import SiteServer
from agentgym_servers.webarena._world import world_of

if TYPE_CHECKING:
    from fastapi import FastAPI, Request

    from agentgym_servers.webarena._task import WebArenaWorld

__all__ = ["create_app"]

logger = logging.getLogger("agentgym_servers")

_PAGE = "<!doctype html>\n<html lang=en>\n<title>{0} {1}</title>\n<h1>{1}</h1>\n<p>{2}</p>\n"
_FAILED_RESET = {"observation": "TimeoutError", "sites": "Error", "object": "Error"}


class _BadJson(Exception):
    """The body is not JSON."""


class _Server:
    """The environments and their routes."""

    def __init__(self, options: ServerOptions) -> None:
        self._world: WebArenaWorld
        if options.data is None:
            self._world = world_of(options.seed)
            sites: SiteServer | Wall = SiteServer()
        else:
            self._world = data = DataWorld(options.data)
            sites = Wall(data.allowed)
        self.browser = WebArenaBrowser(self._world, sites, _judge_of(options))
        self.envs = HeldEnvs[WebArenaEpisode](options)

    def episode(self, env_idx: Any) -> WebArenaEpisode:
        """Return an environment.

        Raises:
            Failed: There is none of this id.
        """
        if not isinstance(env_idx, int) or env_idx not in self.envs:
            raise Failed(str(env_idx))
        return self.envs.get(env_idx)

    async def create(self, _request: Request) -> dict[str, Any]:
        """Create an environment."""
        return {"env_idx": self.envs.add(lambda _: WebArenaEpisode(self.browser))}

    async def reset(self, request: Request) -> dict[str, Any] | Response:
        """Start a task, unless its check is not valid."""
        body = await _body(request)
        env_idx, task_id = body["env_idx"], body["idx"]
        try:
            episode = self.episode(env_idx)
            task = self._world.task(_task_id(task_id, body["seed"]))
            if problem := problem_of(task.check):
                return _unjudged(CannotJudge(task_id, problem), _FAILED_RESET)
            async with episode.turn:
                text = await episode.reset(task_id, task)
        except Exception as error:  # noqa: BLE001 - any failure is this reply
            level = logging.WARNING if isinstance(error, Error) else logging.INFO
            logger.log(level, "a reset failed: %s", fault(error))
            return _FAILED_RESET
        return {"observation": text, "sites": list(task.sites), "object": task.intent}

    async def step(self, request: Request) -> dict[str, Any] | Response:
        """Carry out the action of a reply; a failure is an observation."""
        body = await _body(request)
        env_idx, reply = body["env_idx"], body["action"]
        nothing = {"reward": 0, "terminated": False, "truncated": False, "info": None}
        try:
            episode = self.episode(env_idx)
            async with episode.turn:
                return await episode.step(str(reply))
        except (Failed, NoPage):
            return {"observation": str(env_idx), **nothing}
        except NotAnAction as error:
            return {"observation": str(error), **nothing}
        except CheckFailed as error:
            failure = CannotJudge(episode.task_id, str(error))
            return _unjudged(failure, {"observation": str(failure), **nothing})
        except (ActionFailed, Error, ValueError, asyncio.TimeoutError) as error:
            logger.warning("a step failed: %s", fault(error))
            return {"observation": fault(error), **nothing}

    async def close(self, request: Request) -> dict[str, Any]:
        """Close an environment."""
        env_idx = (await _body(request))["env_idx"]
        if isinstance(env_idx, int) and env_idx in self.envs:
            episode = self.envs.get(env_idx)
            self.envs.close(env_idx)
            async with episode.turn:
                await episode.close()
        return {"closed": "closed"}

    async def list_envs(self, _request: Request) -> list[int]:
        """Return the ids of all environments."""
        return self.envs.ids()

    async def observation(self, request: Request) -> str:
        """Return the page as the last reply showed it, or as a reset would."""
        return self._from_query(request).prompt

    async def metadata(self, request: Request) -> dict[str, Any]:
        """Return the elements of the page, and a picture of it."""
        episode = self._from_query(request)
        async with episode.turn:
            return await episode.metadata()

    def _from_query(self, request: Request) -> WebArenaEpisode:
        return self.episode(int(request.query_params["env_idx"]))


def _judge_of(options: ServerOptions) -> Judge | None:
    """Return the judge of the options; None without one.

    Raises:
        BadOption: The generated world has nothing to judge, or the judge is not valid.
    """
    if options.judge is None or options.judge_model is None:
        return None
    if options.data is None:
        raise BadOption(
            "judge", problem=("needs ", ArgumentName("data"), ": no generated task needs a judge")
        )
    return Judge(options.judge, options.judge_model)


def create_app(options: ServerOptions = ServerOptions()) -> FastAPI:
    """Build a server with no environments yet.

    Raises:
        BadOption: The user's folder has no valid tasks, or the judge is not valid.
    """
    app = new_app("WebArena", options, plain_errors=True, plain_greeting=True)
    app.state.server = server = _Server(options)
    posts = {"/create": server.create, "/reset": server.reset, "/step": server.step, "/close": server.close}
    gets = {
        "/list_envs": server.list_envs,
        "/observation": server.observation,
        "/observation_metadata": server.metadata,
    }
    for method, routes in (("POST", posts), ("GET", gets)):
        for path, handle in routes.items():
            # Not in the description: clients recognize AgentGym's server by its lack of one.
            app.add_route(path, _guarded(handle), methods=[method], include_in_schema=False)
    return app


def _task_id(written: Any, _seed: Any) -> int:
    """Return the id of a task; the seed is required and has no effect.

    Raises:
        TypeError: The id is not a number.
    """
    if not isinstance(written, int):
        raise TypeError(f"the task {written!r:.80} is not a number")
    return written


def _json(value: Any) -> Response:
    # In ASCII, which can encode lone surrogates.
    return Response(json.dumps(value, allow_nan=False), media_type="application/json")


def _unjudged(failure: CannotJudge, content: dict[str, Any]) -> Response:
    """Return a failure in the form of AgentGym's server, with the reason in ``error``."""
    return judge_failure(failure, _json({**content, "error": str(failure)}))


def _failed() -> Response:
    text = (
        "The server encountered an internal error and was unable to complete your request. Either the server"
        " is overloaded or there is an error in the application."
    )
    return HTMLResponse(_PAGE.format(500, "Internal Server Error", text), 500)


async def _body(request: Request) -> dict[str, Any]:
    try:
        body = json.loads(await request.body())
    except (ValueError, RecursionError) as error:
        raise _BadJson from error
    if not isinstance(body, dict):
        raise Failed("the body is not an object")
    return body


def _guarded(handle: Callable[[Request], Awaitable[Any]]) -> Callable[[Request], Awaitable[Response]]:
    """Return a handler that responds to failures as AgentGym's server does."""

    async def handler(request: Request) -> Response:
        try:
            content = await handle(request)
            return content if isinstance(content, Response) else _json(content)
        except _BadJson:
            text = "The browser (or proxy) sent a request that this server could not understand."
            return HTMLResponse(_PAGE.format(400, "Bad Request", text), 400)
        except Full:
            raise
        except (Failed, KeyError, TypeError, ValueError, NoPage) as error:
            logger.info("%s %s failed: %s", request.method, request.url.path, error)
            return _failed()

    return handler
