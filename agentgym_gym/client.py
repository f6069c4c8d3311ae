"""The synchronous driver: moves the bytes of a flow over one kept-alive connection.

One driver serves one environment. Environments do not share a connection pool, since looking for a free
connection in a shared one takes longer the more there are; they share the TLS context, which is costly.
"""

from __future__ import annotations

import errno
import logging
import os
import random
import ssl
import time
from http import HTTPStatus
from numbers import Real
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from agentgym_gym.calls import Call, Flow, Reply
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost, Fault, ServerTimeout, ServerUnreachable
from agentgym_gym.text import shown
from agentgym_gym.transport import DeadlineTransport, authorization

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["CLOSE_TIMEOUT", "CONNECT_TIMEOUT", "MAX_REPLY_BYTES", "SyncDriver", "backoff", "may_repeat"]

T = TypeVar("T")

CONNECT_TIMEOUT = 10.0
"""Seconds allowed for a connection."""

MAX_REPLY_BYTES = 64 * 1024 * 1024
"""Largest reply read, in bytes."""

CLOSE_TIMEOUT = 5.0
"""Seconds allowed for giving an environment back; it is not worth a longer wait."""

_RETRIES = 2
_BACKOFF = 0.1  # seconds before the first retry, doubled for each further one

_HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}

# What keeps a connection from being made on this side.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})

_log = logging.getLogger(__name__)


class SyncDriver:
    """Runs flows, one at a time.

    Args:
        timeout: Seconds allowed for each reply to its last byte, connecting and trying again included.
        transport: Moves the requests in place of a network connection, for tests.

    Raises:
        BadOption: The time limit is not a positive number of seconds.
    """

    def __init__(self, *, timeout: float, transport: httpx.BaseTransport | None = None) -> None:
        given: object = timeout
        if isinstance(given, bool) or not isinstance(given, Real) or not 0 < float(given) < float("inf"):
            raise BadOption(f"timeout={timeout!r} should be a positive number of seconds")
        self.timeout = float(timeout)
        self._transport = transport
        self._connections: dict[str, DeadlineTransport] = {}
        self._pid = os.getpid()

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
        self._let_go_of_the_parents()
        while self._connections:
            self._connections.popitem()[1].close()

    def _deliver(self, call: Call) -> Reply:
        """Get a reply, trying again where that can do no harm, all within one time limit."""
        seconds = min(self.timeout, CLOSE_TIMEOUT) if call.stage == "close" else self.timeout
        deadline = time.monotonic() + seconds
        for attempt in range(_RETRIES + 1):
            last = attempt == _RETRIES or call.stage == "close"
            try:
                reply = self._exchange(call, deadline)
            except Fault as fault:
                self._drop_connection(call)
                if last or not may_repeat(call, fault):
                    raise
                _log.info("%s; trying again", fault)
            except BaseException:
                # Ctrl-C, say. The reply may still come, and must not be taken for that of the next call.
                self._abandon_connection(call)
                raise
            else:
                if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
                    # After an error of its own a server of this kind closes the connection without a word.
                    self._drop_connection(call)
                if reply.status != HTTPStatus.SERVICE_UNAVAILABLE or last:
                    return reply
                _log.info("%s answered HTTP 503; trying again", call)
            time.sleep(min(backoff(attempt), max(0.0, deadline - time.monotonic())))
        raise AssertionError("the last attempt returns or raises")

    def _exchange(self, call: Call, deadline: float) -> Reply:
        left = max(0.001, deadline - time.monotonic())
        limits = {"connect": min(left, CONNECT_TIMEOUT), "read": left, "write": left, "pool": left}
        try:
            request = httpx.Request(
                call.method,
                call.url,
                headers={**_HEADERS, **authorization(call.server)},
                content=call.content,
                extensions={"timeout": limits, "deadline": deadline},
            )
            response = self._connection(call.server).handle_request(request)
            try:
                response.request = request
                content = b"".join(_limited(response.iter_bytes(), call, deadline))
            except Exception:
                response.close()
                raise
            response.close()
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ServerUnreachable(f"{call} could not connect: {_reason(error)}") from error
        except httpx.ConnectError as error:
            refused = _nobody_was_there(error)
            raise ServerUnreachable(f"{call} could not connect: {_reason(error)}", refused=refused) from error
        except httpx.TimeoutException as error:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed") from error
        except httpx.DecodingError as error:
            raise BadReply(f"{call} answered in an encoding that cannot be read: {_reason(error)}") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise BadOption(f"{call} is not a request that can be made: {_reason(error)}") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ConnectionLost(f"{call} lost its connection: {_reason(error)}") from error
        if response.is_redirect:
            target = response.headers.get("location", "nowhere")
            raise BadReply(f"{call} was redirected to {shown(target)}; redirects are not followed")
        return Reply(call, response.status_code, content)

    def _connection(self, server: str) -> httpx.BaseTransport:
        if self._transport is not None:
            return self._transport
        self._let_go_of_the_parents()
        if server not in self._connections:
            self._connections[server] = DeadlineTransport(server)
        return self._connections[server]

    def _drop_connection(self, call: Call) -> None:
        connection = self._connections.pop(call.server, None)
        if connection is not None:
            connection.close()

    def _abandon_connection(self, call: Call) -> None:
        connection = self._connections.pop(call.server, None)
        if connection is not None:
            connection.abandon()

    def _let_go_of_the_parents(self) -> None:
        """Forget, after a fork, the connections of the parent: neither speak on them nor close them."""
        if self._pid != os.getpid():
            _inherited.append(self._connections)
            self._connections, self._pid = {}, os.getpid()


_inherited: list[Any] = []  # held for ever, or else the garbage collector would close them


def may_repeat(call: Call, fault: Fault) -> bool:
    """Return whether a call that failed can be sent again without harm.

    It can when it did not reach the server. But where nobody was there, whoever answers next has not what we
    hold, so that only a call that begins anew can. When the call may have reached the server, only one that
    has no effect the second time can, and a time-out is not worth another: it has used up the time allowed.
    """
    if isinstance(fault, ServerUnreachable) and fault.refused:
        return call.stage in {"identify", "create"}
    if not fault.was_sent:
        return True
    return call.repeatable and isinstance(fault, ConnectionLost)


def backoff(attempt: int) -> float:
    """Return the seconds to wait before the next attempt: exponential, with jitter to keep many apart."""
    return float(_BACKOFF * 2**attempt * (0.5 + random.random()))  # noqa: S311 - no secret


def _limited(chunks: Iterator[bytes], call: Call, deadline: float) -> Iterator[bytes]:
    """Pass on the chunks of a body until it is too long or too late."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise BadReply(f"{call} answered more than {MAX_REPLY_BYTES} bytes")
        if time.monotonic() > deadline:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed")
        yield chunk


def _nobody_was_there(error: BaseException | None) -> bool:
    """Return whether a failure to connect tells of the server, and not of us or of its certificate."""
    while error is not None:
        if isinstance(error, ssl.SSLError) or (isinstance(error, OSError) and error.errno in _OURS):
            return False
        error = error.__cause__ or error.__context__
    return True


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
