"""One request to a model's server by the ``openai`` client, tried again while the server is at fault."""

from __future__ import annotations

import asyncio
import copy
import json
import logging
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentgym_gym._backoff import backoff, retry_after_seconds
from agentgym_gym._logging import log
from agentgym_gym._text import reason
from agentgym_gym.errors import (
    AccessDenied,
    AgentFault,
    BadCompletion,
    BadOption,
    ModelBusy,
    ModelError,
    ModelTimeout,
    ModelUnreachable,
)
from agentgym_gym.evaluate._chat.gate import SENT, enter, nothing
from agentgym_gym.evaluate._chat.reply import (
    Completion,
    is_filtered,
    is_overflow,
    parsed,
    read_completion,
    said,
    window,
)
from agentgym_gym.evaluate._chat.server import ModelServer, http_library, openai_package

__all__ = ["ChatClient", "Outcome"]

MAX_BODY_BYTES = 64 * 2**20
FIRST_PAUSE_SECONDS = 0.5
MAX_PAUSE_SECONDS = 30.0
_MODELS_SECONDS = 10.0
_MODELS_SHOWN = 20
_DENIED = frozenset({401, 403, 407})
_MAYBE_OVERFLOW = frozenset({400, 413, 422})
_MAYBE_FIELD = frozenset({400, 422})
_TRANSIENT: Mapping[int, type[AgentFault]] = {
    408: ModelTimeout,
    409: ModelError,
    425: ModelBusy,
    429: ModelBusy,
    503: ModelBusy,
}


class Outcome(NamedTuple):
    """What became of a request.

    Attributes:
        completion: What the model replied, None where it was not asked.
        ending: Why it was not: ``context_overflow`` or ``content_filter``; "" otherwise.
        retries: How often it was asked again.
    """

    completion: Completion | None
    ending: str
    retries: int


class _Failed(Exception):
    """An attempt failed, and may be repeated.

    Attributes:
        fault: What is raised where it is not.
        wait: Seconds that the server wants to be waited, None where it does not say.
    """

    def __init__(self, fault: AgentFault, wait: float | None = None) -> None:
        super().__init__(str(fault))
        self.fault = fault
        self.wait = wait


class ChatClient:
    """Asks a model's server, one request at a time.

    Each client has a connection of its own: looking for a free one in a pool that many share takes the longer
    the more there are. All share one TLS context, which takes long to make.

    Args:
        server: The server.
        timeout: Seconds allowed for each attempt, to the last byte of its reply.
        retry_seconds: Seconds after the first fault of a request in which it may be tried again.

    Raises:
        BadOption: A number has a value it cannot have.
        MissingExtra: The package ``openai`` is missing.
    """

    def __init__(self, server: ModelServer, *, timeout: float, retry_seconds: float) -> None:
        openai_package()
        for name, value in (("timeout", timeout), ("retry_seconds", retry_seconds)):
            if not 0 <= value < float("inf") or (name == "timeout" and not value):
                raise BadOption(
                    f"{name}={value!r:.80} should be a number of seconds, finite and not negative"
                )
        self.server = server
        self.timeout = timeout
        self.retry_seconds = retry_seconds
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._leave: Callable[[], None] = nothing

    def clone(self) -> ChatClient:
        """Return a client of the same server with a connection of its own."""
        return copy.copy(self)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the connection, which belongs to one client, loop and process, and holds the key."""
        return {**self.__dict__, "_client": None, "_loop": None, "_leave": nothing}

    async def close(self) -> None:
        """Close the connection. May be called again, as may `complete`."""
        client, self._client, loop, self._loop = self._client, None, self._loop, None
        if client is not None and loop is asyncio.get_running_loop():
            await client.close()

    async def complete(
        self, request: Mapping[str, Any], optional: Mapping[str, Any] | None = None
    ) -> Outcome:
        """Ask for a completion, and again while the server is at fault and there is time.

        Between attempts are pauses: what the server asked for by ``Retry-After``, else 0.5 s, and twice as
        long after each further fault up to 30 s, of which a random part of up to a half is left out.

        Args:
            request: The body: ``model``, ``messages`` and the rest.
            optional: Fields of the body that are left out if the server refuses them.

        Raises:
            SetupError: The server refuses the request: the key, the model, an option.
            AgentFault: The server was at fault for too long.
        """
        began = None
        retries = 0
        while True:
            try:
                completion, ending = await self._attempt(request, optional or {})
            except _Failed as failed:
                now = time.monotonic()
                began = now if began is None else began
                pause = (
                    backoff(retries, FIRST_PAUSE_SECONDS, MAX_PAUSE_SECONDS)
                    if failed.wait is None
                    else failed.wait
                )
                if now + pause > began + self.retry_seconds:
                    raise self._given_up(failed, retries, now - began) from None
            else:
                return Outcome(completion, ending, retries)
            await asyncio.sleep(pause)
            retries += 1

    def _given_up(self, failed: _Failed, retries: int, seconds: float) -> AgentFault:
        wants = f"; it wants {failed.wait:.0f} s to be waited" if failed.wait is not None else ""
        tried = f"asked {retries + 1} times in {seconds:.0f} s" if retries else "asked once"
        return type(failed.fault)(f"{self.server.url}: {failed.fault} ({tried}{wants})")

    async def _attempt(
        self, request: Mapping[str, Any], optional: Mapping[str, Any]
    ) -> tuple[Completion | None, str]:
        """Ask once; twice if the server refuses an optional field.

        Raises:
            _Failed: The server was at fault.
            SetupError: It refuses the request.
        """
        status, headers, body = await self._send(request, optional)
        try:
            if _is_success(status):
                return read_completion(body), ""
        except AgentFault as fault:
            found = parsed(body)
            if isinstance(found, Mapping) and found.get("error") and is_overflow(found):
                return None, self._overflow(request, found)
            raise _Failed(type(fault)(self.server.hidden(str(fault)))) from None
        return None, await self._refused(request, status, headers, body)

    async def _send(
        self, request: Mapping[str, Any], optional: Mapping[str, Any]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request with the optional fields, and again without those that the server refuses.

        An error that names a field refuses it. Any other HTTP 400 does if the server has not accepted the
        fields before and accepts the request without them.

        Raises:
            _Failed: There was no reply.
        """
        server = self.server
        fields = {name: value for name, value in optional.items() if name not in server.refused_fields}
        reply = await self._post_in_time({**request, **fields})
        status, _, body = reply
        if _is_success(status):
            server.accepted_fields.update(fields)
        if not fields or status not in _MAYBE_FIELD or is_overflow(parsed(body)) or is_filtered(parsed(body)):
            return reply
        named = {name for name in fields if name.encode() in body}
        if not named and (status != 400 or server.accepted_fields.issuperset(fields)):  # noqa: PLR2004
            return reply
        refused = named or fields.keys()
        reply = await self._post_in_time(
            {**request, **{name: value for name, value in fields.items() if name not in refused}}
        )
        if named or _is_success(reply[0]):
            for name in sorted(refused - server.refused_fields):
                server.refused_fields.add(name)
                log(logging.WARNING, "request field refused", server=server.url, field=name, status=status)
        return reply

    async def _post_in_time(self, request: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        import anyio  # noqa: PLC0415 - it comes with openai

        self._leave = await enter()
        try:
            with anyio.fail_after(self.timeout):
                return await self._post(request)
        except TimeoutError:
            raise _Failed(ModelTimeout(f"no whole reply came within {self.timeout:g} s")) from None
        finally:
            self._leave()

    async def _post(self, request: Mapping[str, Any]) -> tuple[int, Mapping[str, str], bytes]:
        """Send a request; return status, headers and body of the reply.

        Raises:
            _Failed: There was none.
        """
        openai, client = openai_package(), self._connected()
        try:
            response = await client.post(
                "/chat/completions",
                cast_to=http_library().Response,
                body=dict(request),
                stream=True,
                stream_cls=openai.AsyncStream[Any],
            )
        except openai.APIStatusError as error:
            return error.status_code, error.response.headers, error.response.content
        except openai.APIConnectionError as error:
            raise _Failed(self._unreachable(error)) from None
        try:
            body = bytearray()
            async for part in response.aiter_bytes():
                body += part
                if len(body) > MAX_BODY_BYTES:
                    raise _Failed(BadCompletion(f"the reply is larger than {MAX_BODY_BYTES >> 20} MiB"))
        except _Failed:
            raise
        except Exception as error:  # noqa: BLE001 - of the HTTP library, of TLS, of a decoder: it broke off
            raise _Failed(
                BadCompletion(f"the reply broke off: {self.server.hidden(reason(error))}")
            ) from None
        finally:
            await response.aclose()
        return response.status_code, response.headers, bytes(body)

    async def _trace(self, event: str, _: Any) -> None:
        if event in SENT:
            self._leave()

    def _unreachable(self, error: Exception) -> AgentFault:
        openai = openai_package()
        cause = error.__cause__ or error
        what, kind = (
            self.server.hidden(reason(cause) if isinstance(cause, Exception) else ""),
            type(cause).__name__,
        )
        if kind in {"ConnectError", "ConnectTimeout", "ProxyError"}:
            return ModelUnreachable(f"no connection could be made: {what}")
        if isinstance(error, openai.APITimeoutError):
            return ModelTimeout(f"no whole reply came within {self.timeout:g} s")
        return ModelError(f"the connection broke before a reply came: {what}")

    async def _refused(
        self, request: Mapping[str, Any], status: int, headers: Mapping[str, str], body: bytes
    ) -> str:
        """Return the ending that an error means for the episode.

        Raises:
            _Failed: The server was at fault.
            SetupError: It refuses the request.
        """
        found = parsed(body)
        if (status in _MAYBE_OVERFLOW or status >= 500) and is_overflow(found):  # noqa: PLR2004 - as the RFC has it
            return self._overflow(request, found)
        if status in {400, 403, 422} and is_filtered(found):
            return "content_filter"
        told = self.server.hidden(said(found) or _shortened(body))
        what = f"HTTP {status}" + (f": {told}" if told else "")
        if status in _TRANSIENT or status >= 500:  # noqa: PLR2004
            kind = _TRANSIENT.get(status, ModelError)
            raise _Failed(kind(what), _retry_after(headers))
        if status in _DENIED:
            raise AccessDenied(
                f"{self.server.url} refuses the request ({what}); the key is what the variable "
                f"{self.server.api_key_variable} holds"
            )
        if status == 404:  # noqa: PLR2004
            raise BadOption(
                f"{self.server.url} has no model {request['model']!r:.200}, or no chat completions ({what}); "
                f"{await self._served()}"
            )
        raise BadOption(f"{self.server.url} refuses the request ({what})")

    def _overflow(self, request: Mapping[str, Any], found: Any) -> str:
        """Return the ending of a conversation that does not fit.

        Raises:
            BadOption: The longest reply that was asked for leaves no room for any conversation.
        """
        asked = request.get("max_tokens", request.get("max_completion_tokens"))
        holds = window(found)
        if isinstance(asked, int) and holds is not None and asked >= holds:
            raise BadOption(
                f"max_tokens={asked} leaves no room in the model's window of {holds} tokens: "
                f"{self.server.url} says: {self.server.hidden(said(found))}"
            )
        return "context_overflow"

    async def _served(self) -> str:
        """Return a sentence on the models that the server has."""
        import anyio  # noqa: PLC0415 - it comes with openai

        try:
            with anyio.fail_after(_MODELS_SECONDS):
                response = await self._connected().get("/models", cast_to=http_library().Response)
        except (openai_package().OpenAIError, TimeoutError):
            found = None
        else:
            found = parsed(response.content)
        listed = found.get("data") if isinstance(found, dict) else None
        if not isinstance(listed, list):
            return "does the base URL end in /v1, or whatever stands before /chat/completions?"
        names = [str(each.get("id"))[:200] for each in listed if isinstance(each, dict)]
        more = f" and {len(names) - _MODELS_SHOWN} more" if len(names) > _MODELS_SHOWN else ""
        return f"it serves {', '.join(map(repr, names[:_MODELS_SHOWN])) or 'no model'}{more}"

    def _connected(self) -> Any:
        loop = asyncio.get_running_loop()
        if self._client is None or self._loop is not loop:  # that of another loop cannot be closed here
            self._client, self._loop = self.server.connect(self.timeout, self._trace), loop
        return self._client


def _is_success(status: int) -> bool:
    return 200 <= status < 300  # noqa: PLR2004 - as the RFC has it


def _retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait that a server requests, None if it does not."""
    milliseconds = retry_after_seconds(headers.get("retry-after-ms", ""), fractions=True)
    if milliseconds is not None:
        return milliseconds / 1000
    return retry_after_seconds(headers.get("retry-after", ""), fractions=True)


def _shortened(body: bytes) -> str:
    """Return the beginning of a body that holds no JSON, such as a page of a gateway."""
    return " ".join(json.dumps(body[:200].decode("utf-8", "replace"), ensure_ascii=False).split())
