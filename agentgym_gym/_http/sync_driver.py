"""The synchronous driver: moves the bytes of a flow over one kept-alive connection.

One driver serves one environment. Environments do not share a connection pool, since looking for a free
connection in a shared one takes longer the more there are; they share the TLS context, which is costly.
"""

from __future__ import annotations

import errno
import math
import os
import ssl
import time
from concurrent.futures import wait
from functools import lru_cache
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from agentgym_gym._http.limits import Limits, Stats, check_size
from agentgym_gym._http.retry import Pause, Send, with_retries
from agentgym_gym._http.transport import DeadlineTransport, authorization
from agentgym_gym._text import reason, shown
from agentgym_gym.calls import Call, InThread, Reply, WaitingFlow
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost, Fault, ServerTimeout, ServerUnreachable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["HEADERS", "SyncDriver", "nobody_was_there", "redirected"]

T = TypeVar("T")

HEADERS = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
"""What every request says."""

# What keeps a connection from being made on this side.
_OURS = frozenset({errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM})


class SyncDriver:
    """Runs flows, one at a time.

    Args:
        limits: The time allowed.
        transport: Moves the requests in place of a network connection, for tests.
        headers: Sent with every request, beside those of `HEADERS`.
        http_client: Sends the requests in place of the engine of this library; see `httpx_client`.

    Attributes:
        stats: What was counted.
    """

    def __init__(
        self,
        *,
        limits: Limits,
        transport: httpx.BaseTransport | None = None,
        headers: Mapping[str, str] | None = None,
        http_client: Any = None,
    ) -> None:
        self.limits = limits
        self.stats = Stats()
        if http_client is not None:  # being rewritten: see the plan
            transport = (http_client() if callable(http_client) else http_client)._transport  # noqa: SLF001
        self._transport = transport
        self._connections: dict[str, DeadlineTransport] = {}
        self._pid = os.getpid()

    def run(self, flow: WaitingFlow[T], until: float = math.inf) -> T:
        """Carry out a flow's calls and return its result.

        Args:
            flow: The flow.
            until: When the time of the whole episode is up, on `time.monotonic`.

        Raises:
            Fault: A call failed and the flow did not handle it.
            AgentGymError: Whatever the flow itself raises.
        """
        work = with_retries(flow, self.limits, self.stats, until)
        try:
            asked = next(work)
            while True:
                if isinstance(asked, Pause):
                    _pause(asked)
                    asked = work.send(None)
                    continue
                try:
                    # This thread does what is to be done in a thread: it has nothing else to do meanwhile.
                    answer = asked.function() if isinstance(asked, InThread) else self._exchange(asked)
                except Exception as error:  # noqa: BLE001 - it is for the flow
                    asked = work.throw(error)
                else:
                    asked = work.send(answer)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            work.close()

    def close(self) -> None:
        """Close the connections; a later flow opens new ones."""
        self._let_go_of_the_parents()
        while self._connections:
            self._connections.popitem()[1].close()

    def _exchange(self, asked: Send) -> Reply:
        """Send a request and read the reply to it."""
        call = asked.call
        try:
            reply = self._ask(asked)
        except Fault:
            self._drop_connection(call)
            raise
        except BaseException:
            # Ctrl-C, say. The reply may still come, and must not be taken for that of the next call.
            self._abandon_connection(call)
            raise
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or self._has_surplus(call):
            # After an error of its own a server of this kind closes the connection without a word; and what
            # a server said beyond its reply would be taken for the beginning of the next.
            self._drop_connection(call)
        return reply

    def _ask(self, asked: Send) -> Reply:
        call, left = asked.call, asked.left
        limits = {"connect": min(left, asked.connect), "read": left, "write": left, "pool": left}
        try:
            request = httpx.Request(
                call.method,
                _url(call.url),
                headers={**HEADERS, **authorization(call.server)},
                content=call.content,
                extensions={"timeout": limits, "deadline": asked.deadline},
            )
            response = self._connection(call.server).handle_request(request)
            try:
                response.request = request
                content = b"".join(_limited(response.iter_bytes(), asked))
            except Exception:
                response.close()
                raise
            response.close()
        except (httpx.ConnectTimeout, httpx.PoolTimeout) as error:
            raise ServerUnreachable(f"{call} could not connect: {reason(error)}") from error
        except httpx.ConnectError as error:
            refused = nobody_was_there(error)
            raise ServerUnreachable(f"{call} could not connect: {reason(error)}", refused=refused) from error
        except httpx.TimeoutException as error:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed") from error
        except httpx.DecodingError as error:
            raise BadReply(f"{call} answered in an encoding that cannot be read: {reason(error)}") from error
        except (httpx.UnsupportedProtocol, httpx.InvalidURL, UnicodeError) as error:
            raise BadOption(f"{call} is not a request that can be made: {reason(error)}") from error
        except (httpx.HTTPError, httpx.StreamError) as error:
            raise ConnectionLost(f"{call} lost its connection: {reason(error)}") from error
        if response.is_redirect:
            raise redirected(call, response.headers.get("location"))
        return Reply(call, response.status_code, content)

    def _connection(self, server: str) -> httpx.BaseTransport:
        if self._transport is not None:
            return self._transport
        self._let_go_of_the_parents()
        if server not in self._connections:
            self._connections[server] = DeadlineTransport(server, self.stats)
        return self._connections[server]

    def _has_surplus(self, call: Call) -> bool:
        connection = self._connections.get(call.server)
        return connection is not None and connection.has_surplus

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


def _pause(asked: Pause) -> None:
    if asked.until is None:
        time.sleep(asked.seconds)
    else:
        wait([asked.until], timeout=asked.seconds)


def redirected(call: Call, target: str | None) -> BadReply:
    """Return the fault of a server that sends us elsewhere."""
    return BadReply(f"{call} was redirected to {shown(target or 'nowhere')}; redirects are not followed")


def _limited(chunks: Iterator[bytes], asked: Send) -> Iterator[bytes]:
    """Pass on the chunks of a body until it is too long or too late."""
    size = 0
    for chunk in chunks:
        size += len(chunk)
        check_size(asked.call, size)
        # The network keeps to the deadline; this is for a transport that was handed in.
        if time.monotonic() > asked.deadline:
            raise ServerTimeout(f"{asked.call} had no whole reply in the time allowed")
        yield chunk


def nobody_was_there(error: BaseException | None) -> bool:
    """Return whether a failure to connect tells of the server, and not of us or of its certificate."""
    while error is not None:
        if isinstance(error, ssl.SSLError) or (isinstance(error, OSError) and error.errno in _OURS):
            return False
        error = error.__cause__ or error.__context__
    return True


# A step has the same URL each time, and to read one takes httpx a tenth of all that it does for a request.
_url = lru_cache(maxsize=1024)(httpx.URL)
