"""Adapters for a user's own client of httpx, or of its successor httpx2, in place of the built-in client.

They support gateways that need proxies, client certificates, cookies, HTTP/2, unix sockets or custom
authentication, and `httpx.MockTransport`. Limits, retries and faults are those of the built-in client, with
three differences. A synchronous client checks its deadline at each chunk of a body. A refused connection is
no proof that the server is gone, because a proxy may have refused it. Connections are identified by the
events of httpx's extension ``trace``.
"""

from __future__ import annotations

import asyncio
import sys
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any

from agentgym_gym._http import abandoned
from agentgym_gym._http.http11 import Headers, joined, redirected
from agentgym_gym._http.limits import check_size
from agentgym_gym._http.sockets import Link
from agentgym_gym._imports import import_object
from agentgym_gym._lifecycle import ProcessId
from agentgym_gym._text import reason, redact_within
from agentgym_gym.calls import MaybeRestarted, Reply
from agentgym_gym.errors import (
    AgentGymError,
    BadOption,
    BadReply,
    ConnectionLost,
    Fault,
    ServerTimeout,
    ServerUnreachable,
)

if TYPE_CHECKING:
    from agentgym_gym._http import HttpClient
    from agentgym_gym._http.retry import Send
    from agentgym_gym.calls import Call

__all__ = ["AwaitedClient", "BlockingClient", "client_source"]


def client_source(given: HttpClient) -> HttpClient:
    """Return the value of ``http_client=``, with an import path resolved.

    Raises:
        BadOption: The import failed, or the object is neither a client nor callable.
    """
    if isinstance(given, str):
        try:
            found: Any = import_object(given)
        except (ImportError, AttributeError, ValueError) as error:
            raise BadOption("http_client", given, f"'module:function': {reason(error)}") from error
    else:
        found = given
    if not callable(found) and _library(found) is None:
        raise BadOption(
            "http_client",
            given,
            "an httpx client, a callable that makes one, or the import path of such a callable, "
            "'module:function'",
        )
    source: HttpClient = found
    return source


# The newest connection of each client. A client without trace events, such as one with an in-process
# transport, has no connection that could be lost.
_newest: weakref.WeakKeyDictionary[Any, Link] = weakref.WeakKeyDictionary()
_NONE = Link()

_CONNECTS = (".connect_tcp", ".connect_unix_socket")


class _Trace:
    """Traces the connections of one request.

    Args:
        client: The client that sends it.
        call: The call of the request.

    Raises:
        MaybeRestarted: The client has opened a connection since the last reply about the environment.
    """

    def __init__(self, client: Any, call: Call) -> None:
        self._client = client
        self._bound = call.connection is not None
        if self._bound and call.connection is not self.newest:
            raise MaybeRestarted

    def __call__(self, event: str, _info: Any) -> None:
        """Handle an event; stop the request before it opens a connection that it must not open."""
        what, _, when = event.rpartition(".")
        if what.endswith(_CONNECTS):
            if when == "started" and self._bound:
                raise MaybeRestarted
            if when == "complete":
                _newest[self._client] = Link()

    async def awaited(self, event: str, info: Any) -> None:
        """Handle an event of an asynchronous client."""
        self(event, info)

    @property
    def newest(self) -> Link:
        """The request's connection, or a newer one."""
        return _newest.get(self._client, _NONE)


class _Client:
    """Base of both adapters: creates the client, builds requests and converts replies."""

    kind: str

    def __init__(self, given: HttpClient, headers: Headers) -> None:
        self._source = client_source(given)
        self._headers = joined({}, headers)
        self._client: Any = None
        self._process = ProcessId()

    @property
    def _ours(self) -> bool:
        return callable(self._source)

    def _get(self) -> Any:
        """Return the client, and create it on first use.

        Raises:
            BadOption: The client has the wrong type, or belongs to another process.
        """
        if not self._process.current:
            if not self._ours:
                raise BadOption(
                    "http_client", problem="belongs to another process: pass a callable that makes a client"
                )
            self._client, self._process = None, ProcessId()
        if self._client is None:
            client: Any = self._made() if callable(self._source) else self._source
            library = _library(client)
            if library is None or not isinstance(client, getattr(library, self.kind)):
                raise BadOption(
                    "http_client", expected=f"or return an httpx.{self.kind}, not a {type(client).__name__}"
                )
            self._client = client
        return self._client

    def _made(self) -> Any:
        """Return a client of the user's callable.

        Raises:
            BadOption: The callable failed, as httpx does for invalid variables of proxies.
        """
        make: Any = self._source
        try:
            return make()
        except AgentGymError:
            raise
        except Exception as error:
            text = f"failed: {type(error).__name__}: {redact_within(reason(error))}"
            raise BadOption("http_client", problem=text) from error

    def _build(self, client: Any, request: Send, trace: Callable[[str, Any], Any]) -> Any:
        call, left = request.call, request.left
        timeout = {"connect": min(left, request.connect), "read": left, "write": left, "pool": left}
        built = client.build_request(
            call.method,
            call.url,
            headers=self._headers,
            content=call.content,
            extensions={"timeout": timeout, "trace": trace},
        )
        if any(name.lower() == "authorization" for name in self._headers):
            built.url = built.url.copy_with(username=None, password=None)  # the header has precedence
        return built

    def _reply(self, call: Call, response: Any, content: bytes, trace: _Trace) -> Reply:
        if response.is_redirect:
            raise redirected(call, response.headers.get("location"))
        headers = {name.lower(): value for name, value in response.headers.items()}
        closing = response.http_version == "HTTP/1.0" or "close" in headers.get("connection", "").lower()
        return Reply(call, response.status_code, content, headers, trace.newest, closing)


class BlockingClient(_Client):
    """Sends requests with an ``httpx.Client``.

    Args:
        given: The client, or a callable that returns one.
        headers: Sent with every request.

    Raises:
        BadOption: See `client_source`.
    """

    kind = "Client"

    def exchange(self, request: Send) -> Reply:
        """Send a request and read the reply to it.

        Raises:
            Fault: The same faults as the built-in client.
            BadOption: The request is invalid, or the client is unusable.
        """
        try:
            return self._exchange(request)
        except (Fault, BadOption, MaybeRestarted):
            raise
        except BaseException:
            self.close()  # such as Ctrl-C: the next call must not read the rest of this reply
            raise

    def _exchange(self, request: Send) -> Reply:
        call, client = request.call, self._get()
        trace = _Trace(client, call)
        with _faults(client, call):
            built = self._build(client, request, trace)
            response = client.send(built, stream=True, follow_redirects=False)
            try:
                body = bytearray()
                for chunk in response.iter_bytes():
                    _keep(body, chunk, request)
            finally:
                response.close()
            return self._reply(call, response, bytes(body), trace)

    def close(self) -> None:
        """Close the client, if this object created it; the next request creates another."""
        client, self._client = self._client, None
        if client is not None and self._ours and self._process.current:
            client.close()


class AwaitedClient(_Client):
    """Sends requests with an ``httpx.AsyncClient``, in one event loop at a time.

    Args:
        given: The client, or a callable that returns one.
        headers: Sent with every request.

    Attributes:
        status: The HTTP status of the last reply; 0 if its head did not arrive.

    Raises:
        BadOption: See `client_source`.
    """

    kind = "AsyncClient"
    status = 0

    def __init__(self, given: HttpClient, headers: Headers) -> None:
        super().__init__(given, headers)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sending: asyncio.Task[None] | None = None

    def send(self, request: Send, answer: Callable[[Reply | Exception], None]) -> None:
        """Send a request in the running event loop.

        Args:
            request: The request.
            answer: Called with the reply, or with the `Fault` or `BadOption` of a failure. Not called if
                `close` comes first.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop = loop
            if self._ours:
                self._client = None  # its connections belong to the previous event loop
        self.status = 0
        self._sending = loop.create_task(self._send(request, answer))

    async def _send(self, request: Send, answer: Callable[[Reply | Exception], None]) -> None:
        try:
            how: Reply | Exception = await asyncio.wait_for(self._answer(request), request.left)
        except asyncio.TimeoutError:
            how = ServerTimeout(f"{request.call} had no whole reply in the time allowed")
        except Exception as error:  # noqa: BLE001 - it is for the caller
            how = error
        try:
            answer(how)
        except BaseException:
            if isinstance(how, Reply):
                abandoned.pass_on(how)  # Ctrl-C came before the flow could use the reply
            raise

    async def _answer(self, request: Send) -> Reply:
        call, client = request.call, self._get()
        trace = _Trace(client, call)
        with _faults(client, call):
            built = self._build(client, request, trace.awaited)
            response = await client.send(built, stream=True, follow_redirects=False)
            self.status = response.status_code
            try:
                body = bytearray()
                async for chunk in response.aiter_bytes():
                    _keep(body, chunk, request)
            finally:
                await response.aclose()
            return self._reply(call, response, bytes(body), trace)

    def give_up(self) -> None:
        """Cancel the request under way."""
        self.close()

    def close(self) -> None:
        """Cancel the request under way."""
        if self._sending is not None:
            self._sending.cancel()

    def abandon(self) -> None:
        """Close the client, if this object created it, from any thread and without waiting."""
        client, self._client, loop = self._client, None, self._loop
        if client is not None and self._ours and loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(client.aclose(), loop)

    async def aclose(self) -> None:
        """Close the client, if this object created it in this event loop; the next request makes another."""
        self.close()
        if self._sending is not None and self._loop is asyncio.get_running_loop():
            await asyncio.wait({self._sending})
        client, self._client = self._client, None
        if client is not None and self._ours and self._loop is asyncio.get_running_loop():
            await client.aclose()


def _library(client: object) -> ModuleType | None:
    """Return the library of a client, httpx or its successor httpx2; None if it is neither."""
    for each in type(client).__mro__:
        name = each.__module__.partition(".")[0]
        if name in {"httpx", "httpx2"} and each.__name__ in {"Client", "AsyncClient"}:
            return sys.modules[name]
    return None


def _keep(body: bytearray, chunk: bytes, request: Send) -> None:
    """Append a chunk to a body, and check its size and the deadline."""
    body += chunk
    check_size(request.call, len(body))
    if time.monotonic() > request.deadline:
        raise ServerTimeout(f"{request.call} had no whole reply in the time allowed")


@contextmanager
def _faults(client: Any, call: Call) -> Iterator[None]:
    """Convert the exceptions of a client to faults."""
    library: Any = _library(client)
    try:
        yield
    except (library.ConnectTimeout, library.PoolTimeout) as error:
        slow = isinstance(error, library.ConnectTimeout)  # a full pool is the client's fault
        raise ServerUnreachable(f"{call} could not connect: {reason(error)}", server_slow=slow) from error
    except (library.ConnectError, library.ProxyError) as error:
        raise ServerUnreachable(f"{call} could not connect: {reason(error)}", refused=None) from error
    except library.TimeoutException as error:
        raise ServerTimeout(f"{call} had no whole reply in the time allowed") from error
    except library.DecodingError as error:
        raise BadReply(f"{call} answered in an encoding that cannot be read: {reason(error)}") from error
    except (
        library.UnsupportedProtocol,
        library.LocalProtocolError,
        library.InvalidURL,
        UnicodeError,
    ) as error:
        raise BadOption(f"{call} is not a request that can be made: {reason(error)}") from error
    except (library.HTTPError, library.StreamError, OSError) as error:
        raise ConnectionLost(f"{call} lost its connection: ", reason(error)) from error
    except RuntimeError as error:
        if not client.is_closed:
            raise
        raise BadOption("http_client", problem="is closed") from error
