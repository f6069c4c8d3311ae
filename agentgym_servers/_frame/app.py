"""The common part of all server applications: options, limits, JSON encoding, error responses.

Handlers are `async` even where they await nothing, because one thread per request would cost more. They run
one after the other in the thread of the event loop; work that takes longer than a few milliseconds runs in a
thread.
"""

from __future__ import annotations

import json
import logging
import re
import secrets
import time
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import FastAPI, Query, Request, Response
from fastapi.encoders import jsonable_encoder
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse, PlainTextResponse

from agentgym_gym.errors import JudgeFailed
from agentgym_gym.local_servers import ServedWorld, ServerOptions
from agentgym_gym.wire import SERVER_HEADER
from agentgym_servers._frame.request_limits import LimitBody
from agentgym_servers._frame.version import WORLDS_VERSION

if TYPE_CHECKING:
    from collections.abc import Callable, Container

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CannotJudge", "EnvId", "Failed", "Full", "judge_failure", "new_app"]

logger = logging.getLogger("agentgym_servers")

EnvId = Annotated[int, Query(alias="id")]
"""The id of an environment, from the query parameter ``id``."""

FULL_WARNING_SECONDS = 60.0
"""The shortest time between two warnings that a server is full, in seconds: refused clients try again."""


class Failed(Exception):
    """A well-formed request failed; the message goes into ``{"error": ...}``."""


class Full(Failed):
    """The server has as many environments as it may have; the message goes into every form of response.

    Args:
        envs: The number of environments, which is the limit.
        keep_seconds: How long an idle environment is kept.
    """

    def __init__(self, envs: int, keep_seconds: float) -> None:
        super().__init__(
            f"This server has {envs} environments, which is its limit, and each was used in the last "
            f"{keep_seconds:g} s. Close some, or start it with a higher limit: --max-envs, or "
            "ServerKind.create_app(max_envs=...)."
        )
        self.envs = envs


class CannotJudge(Failed):
    """A task cannot be scored for any agent; the message goes into every form of response.

    Args:
        task: The task.
        reason: The failure of its reference or of a check.
    """

    def __init__(self, task: int, reason: str) -> None:
        super().__init__(f"task {task} cannot be judged: {reason}")


def judge_failure(failure: CannotJudge, response: Response) -> Response:
    """Mark a response so that clients do not score the episode: its task cannot be judged."""
    logger.warning("%s", failure)
    response.headers[JudgeFailed.header] = "failed"
    return response


def new_app(
    title: str,
    options: ServerOptions,
    *,
    greeting: str = "ok",
    one_world: bool = False,
    plain_errors: bool = False,
    plain_greeting: bool = False,
    prefix: str = "",
) -> FastAPI:
    """Return an application with one route that reports `Failed` as AgentGym's servers do.

    A failure is HTTP 200 with ``{"error": str}``, or HTTP 500 without a reason; the reason of an HTTP 500 is
    logged. The response to `CannotJudge` has the reason in both forms, and the header of `JudgeFailed`.

    The header `SERVER_HEADER` of each response marks it as coming from this project's server, not from
    AgentGym's own.

    Args:
        title: The title in the OpenAPI description.
        options: The server's options.
        greeting: The response to ``GET /``.
        one_world: Whether the server plays the same with any options, so that the header names no world.
        plain_errors: Whether a failure is HTTP 500, as on the servers whose ids are named ``env_idx``.
        plain_greeting: Whether the greeting is a page of text instead of JSON.
        prefix: A prefix of the routes, such as ``/maze``, which requests may leave out or repeat: AgentGym's
            clients have it in the server's URL, and this project's have it in the path.
    """
    # The API documentation pages make a browser load scripts from other sites.
    app = FastAPI(title=title, docs_url=None, redoc_url=None, default_response_class=_Json)
    app.add_middleware(LimitBody, limit=options.max_body_bytes)
    data = options.data is not None and not one_world
    seed = None if one_world or data else options.seed
    simplifications = options.simplifications.replace(",", "+") if options.simplifications else None
    world = ServedWorld(
        *(title, WORLDS_VERSION, seed),
        data=data,
        twin=options.twin,
        judge=options.judge_model,
        simplifications=simplifications,
    )
    app.add_middleware(_Identify, name=str(world))
    if prefix:
        app.add_middleware(
            _AnyPrefix, prefix=prefix, paths=lambda: {getattr(each, "path", "") for each in app.routes}
        )
    app.exception_handler(Failed)(_failed_plainly if plain_errors else _failed)
    app.exception_handler(Full)(_FullResponse(title, plain=plain_errors))
    app.exception_handler(CannotJudge)(_unjudged_plainly if plain_errors else _unjudged)
    app.exception_handler(RequestValidationError)(_invalid)

    @app.get("/", response_model=None)
    async def greet() -> str | Response:
        return HTMLResponse(greeting) if plain_greeting else greeting

    return app


async def _failed(_request: Request, failure: Exception) -> Response:
    return _Json({"error": str(failure)})


async def _failed_plainly(request: Request, failure: Exception) -> Response:
    logger.info("%s %s failed: %s", request.method, request.url.path, failure)
    return PlainTextResponse("Internal Server Error", status_code=500)


async def _unjudged(request: Request, failure: Exception) -> Response:
    return judge_failure(cast("CannotJudge", failure), await _failed(request, failure))


async def _unjudged_plainly(_request: Request, failure: Exception) -> Response:
    return judge_failure(cast("CannotJudge", failure), _with_reason(failure))


def _with_reason(failure: Exception) -> Response:
    return PlainTextResponse(f"Internal Server Error: {failure}", status_code=500)


class _FullResponse:
    """Responds that the server is full, and prints that on the console, at most once a minute.

    AgentGym's own clients do not print the response, so the console is where a user looks.
    """

    def __init__(self, title: str, *, plain: bool) -> None:
        self._title = title
        self._plain = plain
        self._next_warning = 0.0

    async def __call__(self, _request: Request, failure: Exception) -> Response:
        """Respond to the request for another environment."""
        if time.monotonic() >= self._next_warning:
            self._next_warning = time.monotonic() + FULL_WARNING_SECONDS
            envs = cast("Full", failure).envs
            logger.warning(
                "%s is full: %d environments are open, the limit of --max-envs. AgentGym's own clients never "
                "close theirs: restart this server, or start it with a higher --max-envs",
                self._title,
                envs,
            )
        return _with_reason(failure) if self._plain else _Json({"error": str(failure)})


async def _invalid(_request: Request, invalid: Exception) -> Response:
    """Respond 422 with the validation errors, quoting the input if JSON can represent it."""
    errors = list(cast("RequestValidationError", invalid).errors())
    try:
        return _Json({"detail": jsonable_encoder(errors)}, status_code=422)
    except (TypeError, ValueError, RecursionError):
        bare = [{key: error[key] for key in ("type", "loc", "msg")} for error in errors]
        return _Json({"detail": bare}, status_code=422)


class _Json(JSONResponse):
    """JSON in ASCII, which can encode lone surrogates: agents may send them, and UTF-8 cannot encode them."""

    def render(self, content: Any) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class _Identify:
    """Adds headers to each response that identify the server and its process.

    Ids start at 0 again after a restart. A client whose connection broke compares the process before it uses
    an id, which may belong to another client by now.
    """

    def __init__(self, app: ASGIApp, name: str) -> None:
        self._app = app
        self._headers = (
            (SERVER_HEADER.encode(), name.encode("ascii")),
            (f"{SERVER_HEADER}-process".encode(), secrets.token_hex(8).encode("ascii")),
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                message["headers"] = [*message.get("headers", ()), *self._headers]
            await send(message)

        await self._app(scope, receive, send_with_header)


class _AnyPrefix:
    """Finds the route of a path that lacks a prefix, or repeats it, or has doubled slashes."""

    def __init__(self, app: ASGIApp, prefix: str, paths: Callable[[], Container[str]]) -> None:
        self._app = app
        self._prefix = prefix
        self._paths = paths
        self._known: Container[str] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            before = scope.get("root_path", "")
            scope = {**scope, "path": before + self._route(scope["path"].removeprefix(before))}
        await self._app(scope, receive, send)

    def _route(self, path: str) -> str:
        short = re.sub(r"/+", "/", f"/{path}")
        while short.startswith(f"{self._prefix}/") or short == self._prefix:
            short = short.removeprefix(self._prefix) or "/"
        if self._known is None:
            self._known = self._paths()
        known = self._known
        return next((each for each in (self._prefix + short, short) if each in known), path)
