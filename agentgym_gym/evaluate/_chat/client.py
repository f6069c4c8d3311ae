"""Client for a model server that retries requests after server faults."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._backoff import backoff, retry_after_seconds
from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.retry import Send
from agentgym_gym._logging import log
from agentgym_gym._text import reason
from agentgym_gym.calls import Call, Reply
from agentgym_gym.errors import (
    AccessDenied,
    AgentFault,
    ArgumentName,
    BadCompletion,
    BadOption,
    BadReply,
    Fault,
    ModelBusy,
    ModelError,
    ModelTimeout,
    ModelUnreachable,
    ServerTimeout,
    ServerUnreachable,
    SetupError,
)
from agentgym_gym.evaluate._chat.budget import RequestLimits
from agentgym_gym.evaluate._chat.reply import (
    Completion,
    context_window,
    error_message,
    is_filtered,
    is_overflow,
    parse_json,
    read_completion,
)

if TYPE_CHECKING:
    from agentgym_gym.evaluate._chat.server import ModelConnection, ModelServer

__all__ = ["ChatClient", "CompletionResult"]

CONNECT_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
_CHECK_SECONDS = 10.0
_MODELS_SECONDS = 10.0
_MODELS_SHOWN = 20
_DENIED = frozenset({401, 403, 407})
_MAYBE_OVERFLOW = frozenset({400, 413, 422})
_NO_QUOTA = b'"insufficient_quota"'  # the code of OpenAI's error
_MAYBE_FIELD = frozenset({400, 422})
_TRANSIENT: Mapping[int, type[AgentFault]] = {
    408: ModelTimeout,
    409: ModelError,
    425: ModelBusy,
    429: ModelBusy,
    503: ModelBusy,
}


class CompletionResult(NamedTuple):
    """Result of a request.

    Attributes:
        completion: The model's reply; None if the server rejected the conversation.
        ending: Reason of the rejection, ``context_overflow`` or ``content_filter``; "" otherwise.
        retries: Number of retries.
    """

    completion: Completion | None
    ending: str
    retries: int


class _Failed(Exception):
    """An attempt failed and may be retried.

    Attributes:
        fault: The fault to raise if there is no retry.
        wait: The server's ``Retry-After`` in seconds, or None.
    """

    def __init__(self, fault: AgentFault, wait: float | None = None) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.wait = wait


class ChatClient:
    """Sends requests to a model server, one at a time.

    Each client has its own connection, because finding a free one in a shared pool takes longer the more
    clients there are.

    Args:
        server: The model server.
        timeout: Timeout of each attempt in seconds, up to the last byte of the reply.
        retry_seconds: Seconds after the first fault of a request during which it is retried.

    Attributes:
        limits: The limits of the requests, shared with all clones.

    Raises:
        BadOption: ``timeout`` or ``retry_seconds`` is out of range.
    """

    def __init__(self, server: ModelServer, *, timeout: float, retry_seconds: float) -> None:
        for name, value in (("timeout", timeout), ("retry_seconds", retry_seconds)):
            if not 0 <= value < float("inf") or (name == "timeout" and not value):
                raise BadOption(name, value, "a number of seconds, finite and not negative")
        self.server = server
        self.timeout = timeout
        self.retry_seconds = retry_seconds
        self.limits = RequestLimits()
        self._waited = 0.0  # seconds spent in the gate
        self._connection: ModelConnection | None = None

    def clone(self) -> ChatClient:
        """Return a client for the same server with its own connection."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without the connection, which contains the key and belongs to one event loop."""
        return {**self.__dict__, "_connection": None}

    async def close(self) -> None:
        """Close the connection. Further calls of this method and of `complete` are allowed."""
        connection, self._connection = self._connection, None
        if isinstance(connection, Connection):
            connection.abandon()
            await asyncio.sleep(0)  # asyncio closes sockets in its next iteration
        elif connection is not None:
            await connection.aclose()

    async def check_server(self) -> None:
        """Connect to the server, or to its proxy, and disconnect.

        Raises:
            SetupError: No connection can be made.
        """
        server = self.server
        try:
            await server.check_connection(min(self.timeout, _CHECK_SECONDS))
        except Fault as fault:
            raise SetupError(
                f"cannot reach the model server {server.url}: {self._agent_fault(fault)}; start it, or "
                "give another ",
                ArgumentName("base_url"),
                "=URL",
            ) from None

    async def complete(
        self, request: Mapping[str, Any], optional: Mapping[str, Any] | None = None
    ) -> CompletionResult:
        """Request a completion, with retries after server faults until `retry_seconds` have passed.

        The pause between attempts is the server's ``Retry-After``, otherwise exponential backoff: 0.5 s,
        doubled after each further fault up to 30 s, minus a random jitter of up to half.

        Args:
            request: The request body: ``model``, ``messages`` and the other fields.
            optional: Body fields that are dropped if the server rejects them.

        Raises:
            SetupError: The server rejects the request: the key, the model or an option; or a budget is used
                up.
            AgentFault: The server's faults lasted too long.
        """
        began = None
        retries = 0
        while True:
            try:
                completion, ending = await self._attempt(request, optional or {})
            except _Failed as failed:
                now, fault = time.monotonic() - self._waited, failed.fault
                began = now if began is None else began
                pause = (
                    backoff(retries, FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
                    if failed.wait is None
                    else failed.wait
                )
                if now + pause > began + self.retry_seconds:
                    raise self._final_fault(failed, retries, now - began) from None
            else:
                if completion is not None:
                    self.limits.charge(completion.usage)
                return CompletionResult(completion, ending, retries)
            with self.limits.gate.retrying(str(fault)):
                await asyncio.sleep(pause)
            retries += 1
            self.limits.usage.retries += 1

    def _final_fault(self, failed: _Failed, retries: int, seconds: float) -> AgentFault:
        wait = f"; the server requested a wait of {failed.wait:.0f} s" if failed.wait is not None else ""
        attempts = f"{retries + 1} attempts in {seconds:.0f} s" if retries else "1 attempt"
        return type(failed.fault)(f"{self.server.url}: {failed.fault} ({attempts}{wait})")

    async def _attempt(
        self, request: Mapping[str, Any], optional: Mapping[str, Any]
    ) -> tuple[Completion | None, str]:
        """Send the request once, or twice if the server rejects an optional field.

        Raises:
            _Failed: The server had a fault.
            SetupError: The server rejects the request.
        """
        reply = await self._send(request, optional)
        try:
            if _is_success(reply.status):
                return read_completion(reply.content), ""
        except AgentFault as fault:
            body = parse_json(reply.content)
            if isinstance(body, Mapping) and body.get("error") and is_overflow(body):
                return None, self._overflow(request, body)
            raise _Failed(type(fault)(self.server.hide_secrets(str(fault)))) from None
        return None, await self._rejection(request, reply)

    async def _send(self, request: Mapping[str, Any], optional: Mapping[str, Any]) -> Reply:
        """Send a request with the optional fields, and again without the fields that the server rejects.

        An error that names a field rejects it. Any other HTTP 400 rejects all fields if the server has not
        accepted them before and accepts the request without them.

        Raises:
            _Failed: There was no reply.
        """
        server = self.server
        fields = {name: value for name, value in optional.items() if name not in server.refused_fields}
        reply = await self._post({**request, **fields})
        status, body = reply.status, reply.content
        if _is_success(status):
            server.accepted_fields.update(fields)
        if (
            not fields
            or status not in _MAYBE_FIELD
            or is_overflow(parse_json(body))
            or is_filtered(parse_json(body))
        ):
            return reply
        named = {name for name in fields if name.encode() in body}
        if not named and (status != 400 or server.accepted_fields.issuperset(fields)):  # noqa: PLR2004
            return reply
        refused = named or fields.keys()
        reply = await self._post(
            {**request, **{name: value for name, value in fields.items() if name not in refused}}
        )
        if named or _is_success(reply.status):
            for name in sorted(refused - server.refused_fields):
                server.refused_fields.add(name)
                log(logging.WARNING, "request field refused", server=server.url, field=name, status=status)
        return reply

    async def _post(self, request: Mapping[str, Any]) -> Reply:
        """Send a request for a completion once the limits permit it.

        Raises:
            _Failed: There was no reply.
            BudgetUsedUp: The budget is used up.
            BadOption: The server redirects the request.
        """
        call = Call("step", "POST", "/chat/completions", request, server=self.server.base_url)
        gate, began = self.limits.gate, time.monotonic()
        self.limits.budget.check()
        admitted = await gate.enter()
        self._waited += admitted - began
        status = None
        try:
            self.limits.budget.check()
            self.limits.usage.requests += 1
            reply = await self._exchange(call, self.timeout)
            status = reply.status
        except Fault as fault:
            raise _Failed(self._agent_fault(fault)) from None
        finally:
            gate.leave(admitted, status)
        return reply

    async def _exchange(self, call: Call, seconds: float) -> Reply:
        """Send a call and return the reply, over a new connection if the last one is unusable.

        The client closes the connection if there is no complete reply, so that the server stops generating.

        Raises:
            Fault: There was no reply in time.
            BadOption: The request cannot be sent, or the server redirects it.
        """
        send = Send(call, time.monotonic() + seconds, CONNECT_SECONDS)
        connection = self._connection
        if connection is None or (isinstance(connection, Connection) and not connection.usable):
            await self.close()
            connection = self._connection = await self.server.connect(send)
        answered: asyncio.Future[Reply | Exception] = asyncio.get_running_loop().create_future()
        try:
            connection.send(send, lambda outcome: None if answered.done() else answered.set_result(outcome))
            outcome = await answered
        except BaseException:
            connection.close()
            raise
        if isinstance(outcome, Reply):
            return outcome
        connection.close()
        if isinstance(outcome, BadReply) and 300 <= connection.status < 400:  # noqa: PLR2004 - as the RFC has it
            raise BadOption(
                "base_url",
                self.server.url,
                problem=f"cannot be used: {self.server.hide_secrets(str(outcome))}",
            )
        raise outcome

    def _agent_fault(self, fault: Fault) -> AgentFault:
        """Convert a fault of the HTTP engine to a fault of the agent."""
        if isinstance(fault, ServerTimeout):
            return ModelTimeout(f"no complete reply within {self.timeout:g} s")
        cause = fault.__cause__
        # The last part of the message is the reason; the first one is the request.
        why = self.server.hide_secrets(reason(cause) if isinstance(cause, Exception) else str(fault.args[-1]))
        if isinstance(fault, ServerUnreachable):
            return ModelUnreachable(f"cannot connect{self.server.route}: {why}")
        if self._connection is not None and self._connection.status:
            return BadCompletion(f"the reply broke off: {why}")
        return ModelError(f"the connection broke before a reply came{self.server.route}: {why}")

    async def _rejection(self, request: Mapping[str, Any], reply: Reply) -> str:
        """Return the ending of the episode after an error reply.

        Raises:
            _Failed: The server had a fault.
            SetupError: The server rejects the request.
        """
        status, body = reply.status, parse_json(reply.content)
        if (status in _MAYBE_OVERFLOW or status >= 500) and is_overflow(body):  # noqa: PLR2004 - as the RFC has it
            return self._overflow(request, body)
        if status in {400, 403, 422} and is_filtered(body):
            return "content_filter"
        message = self.server.hide_secrets(error_message(body) or _excerpt(reply.content))
        error = f"HTTP {status}" + (f": {message}" if message else "")
        if status == 402 or _NO_QUOTA in reply.content:  # noqa: PLR2004 - as the RFC has it
            raise AccessDenied(
                f"{self.server.url}: the quota is used up ({error}); raise it, then resume the run"
            )
        if status in _TRANSIENT or status >= 500:  # noqa: PLR2004
            kind = _TRANSIENT.get(status, ModelError)
            raise _Failed(kind(error), _retry_after(reply.headers))
        if status in _DENIED:
            raise AccessDenied(
                f"{self.server.url} rejects the request ({error}); ", *self.server.key_advice()
            )
        if status == 404:  # noqa: PLR2004
            raise BadOption(
                f"{self.server.url} has no model {request['model']!r:.200}, or no chat completions "
                f"({error}); {await self._model_list()}"
            )
        raise BadOption(f"{self.server.url} rejects the request ({error})")

    def _overflow(self, request: Mapping[str, Any], body: Any) -> str:
        """Return the ending of a conversation that exceeds the context window.

        Raises:
            BadOption: ``max_tokens`` leaves no room for any conversation.
        """
        limit = request.get("max_tokens", request.get("max_completion_tokens"))
        window = context_window(body)
        if isinstance(limit, int) and window is not None and limit >= window:
            raise BadOption(
                "max_tokens",
                limit,
                problem=f"leaves no room in the model's context window of {window} tokens; lower it. "
                f"{self.server.url} returned: {self.server.hide_secrets(error_message(body))}",
            )
        return "context_overflow"

    async def _model_list(self) -> str:
        """Return a sentence that lists the models of the server."""
        try:
            reply = await self._exchange(
                Call("identify", "GET", "/models", server=self.server.base_url), _MODELS_SECONDS
            )
        except (Fault, SetupError):
            body = None
        else:
            body = parse_json(reply.content)
        models = body.get("data") if isinstance(body, dict) else None
        if not isinstance(models, list):
            return "check that the base URL ends in /v1, or in the path before /chat/completions"
        names = [str(each.get("id"))[:200] for each in models if isinstance(each, dict)]
        more = f" and {len(names) - _MODELS_SHOWN} more" if len(names) > _MODELS_SHOWN else ""
        return f"it serves {', '.join(map(repr, names[:_MODELS_SHOWN])) or 'no model'}{more}"


def _is_success(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004 - as the RFC has it


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the server requests, or None."""
    milliseconds = retry_after_seconds(headers.get("retry-after-ms", ""), fractions=True)
    if milliseconds is not None:
        return milliseconds / 1000
    return retry_after_seconds(headers.get("retry-after", ""), fractions=True)


def _excerpt(body: bytes) -> str:
    """Return the beginning of a body that is not JSON, such as a gateway's error page."""
    return " ".join(json.dumps(body[:200].decode("utf-8", "replace"), ensure_ascii=False).split())
