"""Calls, replies and flows: requests to a server, independent of their transport and their meaning.

A *flow* is a generator that yields a :class:`Call` and receives the :class:`Reply` to it, the pattern of
httpx's ``auth_flow``. All protocol code consists of flows, which do no network and no file I/O, so the
synchronous driver, the asynchronous one and a test that replays a recording all run the same logic::

    from agentgym_gym.calls import Call, Flow

    def create() -> Flow[int]:
        body = (yield Call("create", "POST", "/create")).body()
        return body.integer("id")

A driver that could not get a reply throws a :class:`~agentgym_gym.errors.Fault` into the flow. A flow may
read the clock. A :data:`WaitingFlow` also yields a :class:`WaitForFuture` to wait for another episode, and an
:class:`InThread` to read or write a file.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, Literal, Protocol, TypeAlias, TypeVar
from urllib.parse import urlencode

from agentgym_gym._text import no_constant, redact, scrub, shown
from agentgym_gym.errors import BadReply, EnvironmentFailed, Fault, JudgeFailed, ServerError

__all__ = [
    "Body",
    "Call",
    "Flow",
    "InThread",
    "MaybeRestarted",
    "Reply",
    "ServerConnection",
    "Stage",
    "WaitForFuture",
    "WaitingFlow",
    "at",
    "listening",
    "relay",
]

T = TypeVar("T")

Stage: TypeAlias = Literal["identify", "create", "reset", "observe", "step", "close"]

# Reused codecs, which `json.dumps` and `json.loads` would create for each call.
_encode = json.JSONEncoder(allow_nan=False).encode
_decode = json.JSONDecoder(parse_constant=no_constant).decode

_SHOWN = 200  # characters of an unexpected reply in an error message
_REASON = 500  # characters of the reason that a server gives

# Idempotent stages; ids that were closed stay closed. A second create would leak the first environment, and a
# step could be executed twice: they are retried only if the first request certainly did not arrive.
_REPEATABLE: frozenset[Stage] = frozenset({"identify", "reset", "observe", "close"})


class ServerConnection(Protocol):
    """A connection to a server: while it is open, the server was not restarted."""

    opened: int
    """Its position in the order in which this process opened its connections."""

    @property
    def lives(self) -> bool:
        """Whether both its ends are open, as far as this process can see without waiting."""


@dataclass(frozen=True)
class Call:
    """One HTTP request, relative until ``on`` or ``at`` sets its server.

    Attributes:
        stage: The purpose of the request, which determines its time limit.
        method: The HTTP method.
        path: Absolute path on the server, such as ``/maze/step``.
        body: The JSON object to send, or None for no body.
        query: Query parameters, in order.
        server: Base URL without a trailing slash; empty while the call is relative.
        late: Called in another thread with a reply that arrives after the call was abandoned: after its time
            limit, or after its task or program was interrupted.
        connection: The connection of its environment's last reply, or an older one. The call is sent only
            while that is open; otherwise the driver throws ``MaybeRestarted`` instead of a reply. None if the
            call may be sent in any case.
        within: The stage whose time limit applies instead of its own.
    """

    stage: Stage
    method: Literal["GET", "POST"]
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | int] = field(default_factory=dict)
    server: str = ""
    connection: ServerConnection | None = field(default=None, compare=False, repr=False)
    within: Stage | None = None
    late: Callable[[Reply], object] | None = field(default=None, compare=False, repr=False)

    @property
    def repeatable(self) -> bool:
        """Whether the call is idempotent."""
        return self.stage in _REPEATABLE

    @property
    def may_be_sent(self) -> bool:
        """Whether the server is still the process that last replied about the environment."""
        return self.connection is None or self.connection.lives

    @property
    def target(self) -> str:
        """The path and the query."""
        return f"{self.path}?{urlencode(self.query)}" if self.query else self.path

    @property
    def url(self) -> str:
        """The whole URL, including the query."""
        return self.server + self.target

    @property
    def content(self) -> bytes | None:
        """The body as JSON in ASCII, which can contain text that is not valid Unicode."""
        return None if self.body is None else _encode(self.body).encode("ascii")

    def on(
        self, server: str, *, connection: ServerConnection | None = None, within: Stage | None = None
    ) -> Call:
        """Return the same call for a server; see the attributes for the arguments."""
        request = self.stage, self.method, self.path, self.body, self.query
        return Call(*request, server, connection, within, self.late)

    def __str__(self) -> str:
        """Return the method and URL for error messages: never the body, never a password."""
        return f"{self.method} {redact(self.server)}{self.path}"


@dataclass(frozen=True)
class Reply:
    """The reply of a server.

    Attributes:
        call: The call that it answers.
        status: HTTP status code.
        content: The undecoded body.
        headers: The headers by lower-case name; repeated headers are joined by commas.
        connection: Its connection; None if it is unknown.
        closing: Whether the server announced that it closes the connection.
    """

    call: Call
    status: int
    content: bytes
    headers: Mapping[str, str] = field(default_factory=dict)
    connection: ServerConnection | None = field(default=None, compare=False, repr=False)
    closing: bool = False

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            BadReply: It is not JSON, or contains the numbers NaN or Infinity, which JSON does not have.
        """
        try:
            return _decode(self.content.decode(json.detect_encoding(self.content), "surrogatepass"))
        except (ValueError, RecursionError) as error:
            raise BadReply(f"{self.call} answered something that is not JSON: {self.excerpt}") from error

    def body(self) -> Body:
        """Return the JSON of a successful reply, with readers for its fields.

        Raises:
            JudgeFailed: The server cannot score the task.
            ServerError: The status is not 200.
            BadReply: The body is not JSON.
            EnvironmentFailed: The body is an object with an ``error`` key, by which six of the servers report
                failures with status 200. The text under the key may be empty, so only the key counts.
        """
        if JudgeFailed.header in self.headers:
            raise JudgeFailed(f"{self.call} failed: {self._reason}")
        if self.status != HTTPStatus.OK:
            raise ServerError(f"{self.call} answered HTTP {self.status}: {self.excerpt}")
        value = self.json()
        if isinstance(value, dict) and "error" in value:
            raise EnvironmentFailed(f"{self.call} answered an error: {shown(value['error'])}")
        return Body(self.call, value)

    @property
    def _reason(self) -> str:
        """The reason of a failure: the ``error`` of a JSON object, or the text."""
        try:
            text = self.json()["error"]
        except (BadReply, KeyError, TypeError):
            text = self.content.decode("utf-8", errors="replace").removeprefix("Internal Server Error: ")
        return scrub(str(text))[:_REASON]

    @property
    def excerpt(self) -> str:
        """The beginning of the body, quoted, for an error message."""
        shown = self.content[:_SHOWN].decode("utf-8", errors="replace")
        return repr(shown) + ("…" if len(self.content) > _SHOWN else "")


class MaybeRestarted(Exception):
    """Thrown into a flow instead of a reply: the call was not sent, as the server may have been restarted.

    Attributes:
        after: The fault of the previous attempt; None if this is the first.
    """

    after: Fault | None = None

    @property
    def was_sent(self) -> bool:
        """Whether the previous attempt may have reached the server."""
        return self.after is not None and self.after.was_sent


@dataclass(frozen=True)
class WaitForFuture:
    """An operation for the driver: wait for an event in this process; it has no result.

    It has the time limit of ``create``. When it is over, the driver cancels ``until``.

    Attributes:
        until: The future to wait for.
        seconds: The longest time until the flow resumes in any case, to check again.
        began: The start of the wait, on `time.monotonic`.
    """

    until: Future[Any]
    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)


@dataclass(frozen=True)
class InThread:
    """An operation for the driver: call a function that reads or writes files, and return its result.

    A driver in an event loop calls it in a thread, any other driver calls it directly. An exception is thrown
    into the flow. Cancelling the task does not interrupt the function: the flow receives the result, and ends
    at its next operation of another kind.

    Attributes:
        function: The function, without arguments.
    """

    function: Callable[[], Any]


Flow: TypeAlias = Generator[Call, Reply, T]
"""A flow of calls."""

WaitingFlow: TypeAlias = Generator[Call | WaitForFuture | InThread, Any, T]
"""A flow that may also wait, and read and write files."""


def relay(
    flow: Flow[T], change: Callable[[Call], Call], on_reply: Callable[[Reply], object] | None = None
) -> Flow[T]:
    """Run a flow with modified calls.

    Args:
        flow: The flow.
        change: Returns the call to send instead of a call.
        on_reply: Called with each reply before the flow receives it.

    Returns:
        The result of the flow.
    """
    try:
        call = next(flow)
        while True:
            try:
                reply = yield change(call)
            except Exception as error:  # noqa: BLE001 - each exception of the driver is for the inner flow
                call = flow.throw(error)
            else:
                if on_reply is not None:
                    on_reply(reply)
                call = flow.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def at(server: str, flow: Flow[T]) -> Flow[T]:
    """Run a flow of relative calls on one server.

    Args:
        server: Base URL without a trailing slash.
        flow: The flow of relative calls.

    Returns:
        The result of the flow.
    """
    return relay(flow, lambda call: call.on(server))


def listening(flow: Flow[T], late: Callable[[Reply], object]) -> Flow[T]:
    """Run a flow with a handler for late replies.

    Args:
        flow: The flow.
        late: Handles the reply to an abandoned call; see `Call`.

    Returns:
        The result of the flow.
    """
    return relay(flow, lambda call: replace(call, late=late))


@dataclass(frozen=True)
class Body:
    """The JSON of a reply, with readers for its fields.

    Every reader takes the name of a field, the position in a list, or None for the whole value. It raises
    :class:`~agentgym_gym.errors.BadReply` if that is missing or has the wrong type.

    Attributes:
        call: The call of the reply.
        value: The JSON value.
    """

    call: Call
    value: Any

    def text(self, name: str | int | None = None) -> str:
        """Return a string as valid Unicode."""
        value = self._field(name)
        if not isinstance(value, str):
            raise self._not("a string", name, value)
        return scrub(value)

    def number(self, name: str | int | None = None) -> float:
        """Return a finite number."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._not("a number", name, value)
        if not abs(value) <= sys.float_info.max:  # an integer may be too large for a float
            raise self._not("a finite number", name, value)
        return float(value)

    def integer(self, name: str | int | None = None) -> int:
        """Return an integer."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._not("an integer", name, value)
        return value

    def flag(self, name: str | int | None = None) -> bool:
        """Return a bool."""
        value = self._field(name)
        if not isinstance(value, bool):
            raise self._not("true or false", name, value)
        return value

    def texts(self, name: str | int | None = None) -> tuple[str, ...]:
        """Return a list of strings as valid Unicode."""
        return tuple(map(scrub, self._list_of(str, "strings", name)))

    def integers(self, name: str | int | None = None) -> tuple[int, ...]:
        """Return a list of integers."""
        return tuple(self._list_of(int, "integers", name))

    def check_id(self, name: str, env_id: int) -> None:
        """Check that the reply, if it contains an environment id, contains the requested one.

        Raises:
            BadReply: It contains another: it is the reply to another client's request.
        """
        if self.has(name) and self.integer(name) != env_id:
            raise self._bad(f"the reply is of remote environment {shown(self.value[name])}, not of {env_id}")

    def has(self, name: str) -> bool:
        """Return whether there is a field of that name, and it is not null."""
        return isinstance(self.value, dict) and self.value.get(name) is not None

    def _list_of(self, kind: type, called: str, name: str | int | None) -> list[Any]:
        value = self._field(name)
        if not isinstance(value, list) or not all(type(each) is kind for each in value):
            raise self._not(f"a list of {called}", name, value)
        return value

    def _field(self, name: str | int | None) -> Any:
        if name is None:
            return self.value
        if isinstance(name, int):
            if not isinstance(self.value, list) or len(self.value) <= name:
                raise self._bad(f"expected a list of more than {name}, got {shown(self.value)}")
            return self.value[name]
        if not isinstance(self.value, dict):
            raise self._bad(f"expected an object with {name!r}, got {shown(self.value)}")
        if name not in self.value:
            raise self._bad(f"{name!r} is missing; there are {shown(sorted(self.value))}")
        return self.value[name]

    def _not(self, expected: str, name: str | int | None, value: Any) -> BadReply:
        called = "the reply" if name is None else repr(name)
        return self._bad(f"{called} should be {expected}, got {shown(value)}")

    def _bad(self, what: str) -> BadReply:
        return BadReply(f"{self.call} broke the protocol: {what}")
