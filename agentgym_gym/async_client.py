"""The asynchronous driver: moves the bytes of a flow over one kept-alive connection, in an event loop.

On aiohttp: httpx's own pool looks through all its requests at each of them, and its throughput falls as they
grow in number. What may be repeated, and how long it may take, is as for the synchronous driver.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import socket
import weakref
from collections.abc import AsyncGenerator
from functools import lru_cache
from http import HTTPStatus
from typing import Any, TypeVar

import aiohttp
from aiohttp.http_exceptions import ContentEncodingError
from yarl import URL

from agentgym_gym.calls import Call, Reply, WaitingFlow
from agentgym_gym.client import HEADERS, nobody_was_there, redirected
from agentgym_gym.delivery import Limits, Pause, Send, Stats, check_size, delivered
from agentgym_gym.errors import BadOption, BadReply, ConnectionLost, Fault, ServerTimeout, ServerUnreachable
from agentgym_gym.transport import KEEPALIVE_EXPIRY, authorization, tls_context

__all__ = ["AsyncDriver"]

T = TypeVar("T")


class AsyncDriver:
    """Runs flows, one at a time, in whichever event loop it is called in.

    Args:
        limits: The time allowed.

    Attributes:
        stats: What was counted.
    """

    def __init__(self, *, limits: Limits) -> None:
        self.limits = limits
        self.stats = Stats()
        self._session: aiohttp.ClientSession | None = None
        self._home: tuple[int, asyncio.AbstractEventLoop] | None = None

    async def run(self, flow: WaitingFlow[T], until: float = math.inf) -> T:
        """Carry out a flow's calls and return its result.

        Args:
            flow: The flow.
            until: When the time of the whole episode is up, on `time.monotonic`.

        Raises:
            Fault: A call failed and the flow did not handle it.
            AgentGymError: Whatever the flow itself raises.
        """
        work = delivered(flow, self.limits, self.stats, until)
        try:
            asked = next(work)
            while True:
                if isinstance(asked, Pause):
                    await _pause(asked)
                    asked = work.send(None)
                    continue
                try:
                    reply = await self._exchange(asked)
                except Fault as fault:
                    asked = work.throw(fault)
                else:
                    asked = work.send(reply)
        except StopIteration as stop:
            result: T = stop.value
            return result
        finally:
            work.close()

    async def close(self) -> None:
        """Close the connection; a later flow opens a new one."""
        session, loop = self._let_go()
        if session is not None and loop is not None:
            await _end(session)

    def abandon(self) -> None:
        """Close the connection without waiting, from wherever."""
        session, loop = self._let_go()
        if session is not None and loop is not None:
            if loop.is_running():
                loop.call_soon_threadsafe(_begin, session)
            else:
                _begin(session)

    def _let_go(self) -> tuple[aiohttp.ClientSession | None, asyncio.AbstractEventLoop | None]:
        """Forget the session; return it, and the loop it was opened in if that was in this process."""
        session, self._session = self._session, None
        if session is None or self._home is None:
            return None, None
        pid, loop = self._home
        if pid != os.getpid():
            _inherited.append(session)
            return session, None
        return session, loop

    async def _exchange(self, asked: Send) -> Reply:
        """Send a request and read the reply to it."""
        try:
            reply = await self._ask(asked)
        except BaseException:
            # A fault, or we were cancelled. The reply may still come, and must not be taken for another's.
            await self.close()
            raise
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            # After an error of its own a server of this kind closes the connection without a word.
            await self.close()
        return reply

    async def _ask(self, asked: Send) -> Reply:
        call, left = asked.call, asked.left
        timeout = aiohttp.ClientTimeout(total=left, sock_connect=min(left, asked.connect))
        try:
            session = await self._opened(call.server)
            async with session.request(
                call.method,
                _url(call.server, call.url),
                data=call.content,
                headers={**HEADERS, **authorization(call.server)},
                timeout=timeout,
                allow_redirects=False,
            ) as response:
                content = await _body(call, response)
        except aiohttp.ConnectionTimeoutError as error:
            raise ServerUnreachable(f"{call} could not connect: {_reason(error)}") from error
        except aiohttp.ClientConnectorError as error:
            refused = nobody_was_there(error)
            raise ServerUnreachable(f"{call} could not connect: {_reason(error)}", refused=refused) from error
        except asyncio.TimeoutError as error:
            raise ServerTimeout(f"{call} had no whole reply in the time allowed") from error
        except (aiohttp.InvalidURL, UnicodeError) as error:
            raise BadOption(f"{call} is not a request that can be made: {_reason(error)}") from error
        except (aiohttp.ClientError, OSError) as error:
            if isinstance(error.__cause__, ContentEncodingError):
                raise BadReply(f"{call} answered in an encoding that cannot be read: {error}") from error
            raise ConnectionLost(f"{call} lost its connection: {_reason(error)}") from error
        if HTTPStatus.MULTIPLE_CHOICES <= response.status < HTTPStatus.BAD_REQUEST:
            raise redirected(call, response.headers.get("location"))
        return Reply(call, response.status, content)

    async def _opened(self, server: str) -> aiohttp.ClientSession:
        home = (os.getpid(), asyncio.get_running_loop())
        if self._session is not None and self._home != home:
            self.abandon()
        if self._session is None:
            self._home = home
            (await _drivers_of(home[1])).add(self)
            # No context is made for plain HTTP, where none is needed.
            connector = aiohttp.TCPConnector(
                ssl=tls_context() if server.startswith("https:") else True,
                keepalive_timeout=KEEPALIVE_EXPIRY,
                socket_factory=self._socket,
            )
            self._session = aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())
        return self._session

    def _socket(self, address: aiohttp.AddrInfoType) -> socket.socket:
        self.stats.connections += 1
        family, kind, protocol, *_ = address
        return socket.socket(family, kind, protocol)


async def _pause(asked: Pause) -> None:
    if asked.until is None:
        await asyncio.sleep(asked.seconds)
    else:
        await asyncio.wait({asyncio.wrap_future(asked.until)}, timeout=asked.seconds)


_guards: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, tuple[Any, weakref.WeakSet[AsyncDriver]]] = (
    weakref.WeakKeyDictionary()
)


async def _drivers_of(loop: asyncio.AbstractEventLoop) -> weakref.WeakSet[AsyncDriver]:
    """Return the drivers whose connections are closed with an event loop, as ``asyncio.run`` closes it."""
    if loop not in _guards:
        drivers: weakref.WeakSet[AsyncDriver] = weakref.WeakSet()
        guard = _guard(drivers)
        await guard.__anext__()
        _guards[loop] = guard, drivers
    return _guards[loop][1]


async def _guard(drivers: weakref.WeakSet[AsyncDriver]) -> AsyncGenerator[None, None]:
    """Wait, as an asynchronous generator does, for the event loop to finish all of them."""
    try:
        yield
    finally:
        for driver in list(drivers):
            await driver.close()


async def _end(session: aiohttp.ClientSession) -> None:
    """Close a session at once: nobody waits for a server to say goodbye under TLS."""
    if session.connector is not None:
        await session.connector.close(abort_ssl=True)
    session.detach()


def _begin(session: aiohttp.ClientSession) -> None:
    """Close a session as far as that goes without waiting."""
    ending = _end(session)
    with contextlib.suppress(StopIteration):
        ending.send(None)
    ending.close()
    session.detach()


_inherited: list[Any] = []  # held for ever, or else the garbage collector would close them


async def _body(call: Call, response: aiohttp.ClientResponse) -> bytes:
    chunks, size = [], 0
    while chunk := await response.content.readany():
        size += len(chunk)
        check_size(call, size)
        chunks.append(chunk)
    return b"".join(chunks)


@lru_cache(maxsize=256)
def _url(server: str, url: str) -> URL:
    """The URL as it stands, but for a user name and password, which go into a header."""
    whole = URL(url, encoded=True)
    return whole if "@" not in server else whole.with_user(None)


def _reason(error: Exception) -> str:
    return str(error) or type(error).__name__
