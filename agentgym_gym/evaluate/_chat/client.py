"""Client for a model server that retries requests after server faults."""

from __future__ import annotations

import asyncio
import copy
import json
import re
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, NamedTuple

from agentgym_gym._backoff import backoff, retry_after_seconds
from agentgym_gym._http.asyncio_connection import Connection
from agentgym_gym._http.retry import Send
from agentgym_gym._text import reason, scrub
from agentgym_gym.calls import Reply
from agentgym_gym.errors import (
    AccessDenied,
    AgentFault,
    ArgumentName,
    BadCompletion,
    BadOption,
    BadReply,
    ConversationRejected,
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
from agentgym_gym.evaluate._chat.causes import ErrorReply, failed_output, rule_of
from agentgym_gym.evaluate._chat.other_apis import other_api
from agentgym_gym.evaluate._chat.reply import (
    Completion,
    context_window,
    error_message,
    parse_json,
    read_completion,
)

if TYPE_CHECKING:
    from agentgym_gym.calls import Call
    from agentgym_gym.evaluate._chat.server import ModelConnection, ModelServer

__all__ = ["ChatClient", "CompletionResult"]

CONNECT_SECONDS = 30.0
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
_CHECK_SECONDS = 10.0
_MODELS_SECONDS = 10.0
_MODELS_SHOWN = 20
_TRANSIENT: Mapping[int, type[AgentFault]] = {
    408: ModelTimeout,
    409: ModelError,
    425: ModelBusy,
    429: ModelBusy,
    503: ModelBusy,
}
_REFUSED_BY_PROXY = re.compile(r"4(?!08|29)\d\d\b")  # the status of a proxy that opens no tunnel


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
        self._other_api = ""  # the API of the last reply, if it was none of chat completions
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

    async def complete(self, request: Mapping[str, Any]) -> CompletionResult:
        """Request a completion, with retries after server faults until `retry_seconds` have passed.

        The pause between attempts is the server's ``Retry-After``, otherwise exponential backoff: 0.5 s,
        doubled after each further fault up to 30 s, minus a random jitter of up to half.

        Args:
            request: The request body: ``model``, ``messages`` and the other fields.

        Raises:
            SetupError: The server rejects the request: the key, the model or an option; or a budget is used
                up.
            AgentFault: The server's faults lasted too long, or it rejects this conversation.
        """
        began = None
        retries = 0
        while True:
            try:
                completion, ending = await self._attempt(request)
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
                if completion is not None and not completion.error:
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

    async def _attempt(self, request: Mapping[str, Any]) -> tuple[Completion | None, str]:
        """Send the request once, or several times if the server refuses fields of it.

        Returns:
            The completion or None, and the ending of the episode or "".

        Raises:
            _Failed: The server had a fault.
            ConversationRejected: The server rejects this conversation.
            SetupError: The server rejects the settings.
        """
        reply, error = await self._send(request)
        if error is not None:
            return await self._judge(request, error)
        try:
            completion = read_completion(reply.content)
        except AgentFault as fault:
            api = other_api(reply.content)
            if api is not None and not self.limits.streak.accepted:
                if self._other_api == api.name:
                    raise BadOption(
                        "base_url",
                        self.server.url,
                        problem=f"has no chat completions: the server sends {api.name} "
                        f"({self.server.hide_secrets(str(fault))}); {api.advice}",
                    ) from None
                self._other_api = api.name
            raise _Failed(type(fault)(self.server.hide_secrets(str(fault)))) from None
        self.limits.streak.accept(len(request["messages"]))
        return completion, ""

    async def _send(self, request: Mapping[str, Any]) -> tuple[Reply, ErrorReply | None]:
        """Send a request in the form that the server accepts, and again if the server refuses a part of it.

        An error that names a field refuses it. After another rejection, parts that the server has never
        accepted are left out, one after another.

        Returns:
            The reply, and its error if it has one.

        Raises:
            _Failed: There was no reply.
        """
        form, url = self.limits.form, self.server.url
        while True:
            sent = form.apply(request)
            reply, error = await self._exchanged(sent)
            if error is None:
                return reply, None
            named = form.named(error, sent)
            if not named or _is_of_model(error):
                break
            form.refuse(named, sent, error, url)
        if _is_of_model(error):
            return reply, error
        for suspects in form.suspects(error, sent):
            reply, another = await self._exchanged(form.apply(request, suspects))
            if another is None:
                form.refuse(suspects, sent, error, url)
                return reply, None
            if rule_of(another).cause == "server" or _is_of_model(another):
                return reply, another
        return reply, ErrorReply.of(reply, accepted=self.limits.streak.accepted)

    async def _exchanged(self, sent: Mapping[str, Any]) -> tuple[Reply, ErrorReply | None]:
        """Send a request, and return the reply and its error.

        Raises:
            _Failed: There was no reply.
        """
        reply = await self._post(sent)
        error = ErrorReply.of(reply, accepted=self.limits.streak.accepted)
        if error is None:
            self.limits.form.accept(sent)
        return reply, error

    async def _post(self, request: Mapping[str, Any]) -> Reply:
        """Send a request for a completion once the limits permit it.

        Raises:
            _Failed: There was no reply.
            BudgetUsedUp: The budget is used up.
            BadOption: The server redirects the request.
        """
        call = self.server.call("step", "POST", "/chat/completions", request)
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
                problem=f"cannot be used: {self.server.hide_secrets(str(outcome))}. Give the URL of the API; "
                "a redirect to a login needs other credentials",
            )
        raise outcome

    def _agent_fault(self, fault: Fault) -> AgentFault:
        """Convert a fault of the HTTP engine to a fault of the agent.

        Raises:
            AccessDenied: A proxy refuses the connection.
        """
        if isinstance(fault, ServerTimeout):
            return ModelTimeout(f"no complete reply within {self.timeout:g} s")
        cause = fault.__cause__
        # The last part of the message is the reason; the first one is the request.
        why = self.server.hide_secrets(reason(cause) if isinstance(cause, Exception) else str(fault.args[-1]))
        if isinstance(fault, ServerUnreachable):
            if self.server.route and _REFUSED_BY_PROXY.match(why):
                raise AccessDenied(f"cannot connect{self.server.route}: {why}; ", *self.server.proxy_advice())
            return ModelUnreachable(f"cannot connect{self.server.route}: {why}")
        if self._connection is not None and self._connection.status:
            return BadCompletion(f"the reply broke off: {why}")
        return ModelError(f"the connection broke before a reply came{self.server.route}: {why}")

    async def _judge(self, request: Mapping[str, Any], error: ErrorReply) -> tuple[Completion | None, str]:
        """Return the completion or the ending after an error that the model causes.

        Raises:
            _Failed: The server causes the error.
            ConversationRejected: The conversation causes it.
            SetupError: The settings cause it.
        """
        message = self.server.hide_secrets(error_message(error.value) or _excerpt(error.body))
        words = f"HTTP {error.status}" + (f": {message}" if message else "")
        match rule_of(error).name:
            case "output":
                self.limits.streak.accept(len(request["messages"]))
                return Completion(scrub(failed_output(error) or ""), error=words), ""
            case "overflow":
                return None, self._overflow(request, error.value)
            case "filter":
                return None, "content_filter"
            case "quota":
                raise AccessDenied(
                    f"{self.server.url}: the quota is used up ({words}); raise it, then resume the run"
                )
            case "access":
                by_proxy = error.status == HTTPStatus.PROXY_AUTHENTICATION_REQUIRED
                advice = self.server.proxy_advice() if by_proxy else self.server.key_advice()
                raise AccessDenied(f"{self.server.url} rejects the request ({words}); ", *advice)
            case "fault":
                raise _Failed(_TRANSIENT.get(error.status, ModelError)(words), _retry_after(error.headers))
            case "absent":
                raise BadOption(
                    f"{self.server.url} has no model {request['model']!r:.200}, or no chat completions "
                    f"({words}); {await self._model_list()}"
                )
            case "rejected conversation":
                if not self.limits.streak.reject(len(request["messages"])):
                    raise ConversationRejected(f"{self.server.url} rejects this conversation ({words})")
                raise BadOption(
                    f"{self.server.url} rejects the request ({words}), in {self.limits.streak.MOST} "
                    "conversations in a row"
                )
        raise BadOption(f"{self.server.url} rejects the request ({words})")

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
            reply = await self._exchange(self.server.call("identify", "GET", "/models"), _MODELS_SECONDS)
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


def _is_of_model(error: ErrorReply) -> bool:
    """Return whether the model or its conversation causes an error, so that no field is at fault."""
    return rule_of(error).cause == "model"


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that the server requests, or None."""
    milliseconds = retry_after_seconds(headers.get("retry-after-ms", ""), fractions=True)
    if milliseconds is not None:
        return milliseconds / 1000
    return retry_after_seconds(headers.get("retry-after", ""), fractions=True)


def _excerpt(body: bytes) -> str:
    """Return the beginning of a body that is not JSON, such as a gateway's error page."""
    return " ".join(json.dumps(body[:200].decode("utf-8", "replace"), ensure_ascii=False).split())
