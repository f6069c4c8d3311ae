"""The synchronous driver: moves the bytes of a flow over one kept-alive connection.

One driver serves one environment. Environments do not share a connection pool, since looking for a free
connection in a shared one takes longer the more there are; they share the TLS context, which is costly.
"""

from __future__ import annotations

import ipaddress
import logging
import random
import ssl
import time
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlsplit

import httpx

from agentgym_gym.errors import (
    BadOption,
    BadReply,
    ConnectionLost,
    Fault,
    ServerTimeout,
    ServerUnreachable,
)
from agentgym_gym.text import shown
from agentgym_gym.wire import Call, Flow, Reply

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CONNECT_TIMEOUT", "MAX_REPLY_BYTES", "SyncDriver", "backoff", "may_repeat"]

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
"""Seconds allowed for a connection."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Largest reply read, in bytes."""

_CLOSE_TIMEOUT = 10.0
_RETRIES = 2
_BACKOFF = 0.1  # seconds before the first retry, doubled for each further one

# uvicorn closes a connection that was idle for 5 seconds. A request sent just then is lost, and a lost step
# cannot be repeated, so a connection is given up before the server does it.
_KEEPALIVE_EXPIRY = 4.0

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}

_log = logging.getLogger(__name__)


class SyncDriver:
    """Runs flows, one at a time.

    Args:
        timeout: Seconds allowed for each reply, from the connection made to its last byte.
        transport: Moves the requests in place of a network connection, for tests.

    Raises:
        BadOption: The time limit is not a positive number of seconds.
    """

    def __init__(self, *, timeout: float, transport: httpx.BaseTransport | None = None) -> None:
        if (
            isinstance(timeout, bool)
            or not isinstance(timeout, (int, float))
            or not 0 < timeout < float("inf")
        ):
            raise BadOption(f"timeout={timeout!r} should be a positive number of seconds")
        self.timeout = float(timeout)
        self._transport = transport
        self._clients: dict[str, httpx.Client] = {}

    def run(self, flow: Flow[T]) -> T:
        """Carry out a flow's calls and return its result.

        Raises:
            Fault: A call failed and the flow did not handle it.
            AgentGymError: Whatever the flow itself raises.
        """
        try:
            call = next(flow)
            while True:
                try:
                    reply = self._deliver(call)
                except Fault as fault:
                    call = flow.throw(fault)
                else:
                    call = flow.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            flow.close()

    def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        while self._clients:
            self._clients.popitem()[1].close()

    def _deliver(self, call: Call) -> Reply:
        """Get a reply, trying again where that can do no harm."""
        for attempt in range(_RETRIES + 1):
            last = attempt == _RETRIES or call.stage == "close"
            try:
                reply = self._exchange(call)
            except Fault as fault:
                self._drop_connection(call)
                if last or not may_repeat(call, fault):
                    raise
                _log.info("%s; trying again", fault)
            else:
                if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    # After an error of its own a server of this kind closes the connection without a word.
                    self._drop_connection(call)
                if reply.status != HTTPStatus.SERVICE_UNAVAILABLE or last:
                    return reply
                _log.info("%s answered HTTP 503; trying again", call)
            time.sleep(backoff(attempt))
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, call: Call) -> Reply:
        seconds = min(self.timeout, _CLOSE_TIMEOUT) if call.stage == "close" else self.timeout
        deadline = time.monotonic() + seconds
        try:
            request = self._client(call.server).build_request(
                call.method,
                call.url,
                content=call.content,
                headers=_HEADERS,
                timeout=httpx.Timeout(seconds, connect=min(seconds, CONNECT_TIMEOUT)),
            )
            response = self._client(call.server).send(request, stream=True)
            try:
                content = b"".join(_limited(response.iter_bytes(), call, deadline))
            finally:
                response.close()
        except (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ServerUnreachable(f"{call} could not connect: {_reason(error)}") from error
        except httpx.TimeoutException as error:
            raise ServerTimeout(f"{call} had no whole reply after {seconds:g} s") from error
        except httpx.DecodingError as error:
            raise BadReply(f"{call} answered in an encoding that cannot be read: {_reason(error)}") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL) as error:
            raise BadOption(f"{call} is not a request that can be made: {_reason(error)}") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ConnectionLost(f"{call} lost its connection: {_reason(error)}") from error
        if response.is_redirect:
            target = response.headers.get("location", "nowhere")
            raise BadReply(f"{call} was redirected to {shown(target)}; redirects are not followed")
        return Reply(call, response.status_code, content)

    def _client(self, server: str) -> httpx.Client:
        client = self._clients.get(server)
        if client is None:
            client = self._clients[server] = httpx.Client(
                transport=self._transport,
                # No context is made for plain HTTP, where none is needed.
                verify=_tls_context() if server.startswith("https:") else False,
                limits=httpx.Limits(
                    max_connections=1, max_keepalive_connections=1, keepalive_expiry=_KEEPALIVE_EXPIRY
                ),
                # A proxy for the outer world cannot reach a server on this machine.
                trust_env=not _is_loopback(server),
                follow_redirects=False,
            )
        return client

    def _drop_connection(self, call: Call) -> None:
        client = self._clients.pop(call.server, None)
        if client is not None and self._transport is None:
            client.close()


def may_repeat(call: Call, fault: Fault) -> bool:
    """Return whether a call that failed can be sent again without harm.

    It can when it did not reach the server. When it may have, only a call that has no effect the second time
    can, and a time-out is not worth another: it has used up the time allowed.
    """
    if not fault.was_sent:
        return True
    return call.repeatable and isinstance(fault, ConnectionLost)


def backoff(attempt: int) -> float:
    """Return the seconds to wait before the next attempt: exponential, with jitter to keep many apart."""
    return float(_BACKOFF * 2**attempt * (0.5 + random.random()))  # noqa: S311 - no secret


def _limited(chunks: Iterator[bytes], call: Call, deadline: float) -> Iterator[bytes]:
    """Pass on the chunks of a body until it is too long or too late.

    httpx limits the wait for each chunk, and a server that sends a byte now and then never reaches that.
    """
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise BadReply(f"{call} answered more than {MAX_REPLY_BYTES} bytes")
        if time.monotonic() > deadline:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed")
        yield chunk


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__


def _is_loopback(server: str) -> bool:
    host = urlsplit(server).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


@lru_cache(maxsize=1)
def _tls_context() -> ssl.SSLContext:
    return httpx.create_ssl_context()
