"""The words in which a server is spoken to: calls, replies, flows and the abstract wire.

A *flow* is a generator that yields a :class:`Call` and is sent the :class:`Reply` to it, the pattern of
httpx's ``auth_flow``. Everything that knows a protocol is a flow and does no I/O, so the synchronous
driver, an asynchronous one and a test that replays a recording all run the same logic::

    def create(self, task_id: int) -> Flow[int]:
        body = yield from exchange(Call("create", "POST", "/create"))
        return body.integer("id")

A driver that could not get a reply throws a :class:`~agentgym_gym.errors.Fault` into the flow.
"""

from __future__ import annotations

import json
import math
from abc import ABC, abstractmethod
from collections.abc import Collection, Generator, Mapping
from dataclasses import dataclass, field, replace
from http import HTTPStatus
from typing import Any, ClassVar, Literal, TypeAlias, TypeVar
from urllib.parse import urlencode

from agentgym_gym.errors import BadReply, EnvironmentFailed, ServerError, WrongServer
from agentgym_gym.text import no_constant, redact, scrub, shown

__all__ = [
    "Body",
    "Call",
    "Flow",
    "Outcome",
    "Reply",
    "Stage",
    "Start",
    "Verdict",
    "Wire",
    "at",
    "exchange",
    "greeting_of",
]

T = TypeVar("T")

Stage: TypeAlias = Literal["identify", "create", "reset", "observe", "step", "close"]

_SHOWN = 200  # characters of an unexpected reply that go into an error message

# Sending these again can do no harm. A create would leak the first environment, and a step could be
# played twice, so those two are repeated only when the first certainly did not arrive.
_REPEATABLE: frozenset[Stage] = frozenset({"identify", "reset", "observe"})


@dataclass(frozen=True)
class Call:
    """One HTTP request, relative to a server until :func:`at` gives it one.

    Attributes:
        stage: What the request is for; drivers choose the time limit by it.
        method: The HTTP method.
        path: Absolute path on the server, such as ``/maze/step``.
        body: The JSON object to send, or None for no body.
        query: Query parameters, in order.
        server: Base URL without a trailing slash; empty while the call is relative.
    """

    stage: Stage
    method: Literal["GET", "POST"]
    path: str
    body: Mapping[str, Any] | None = None
    query: Mapping[str, str | int] = field(default_factory=dict)
    server: str = ""

    @property
    def repeatable(self) -> bool:
        """Whether sending the call a second time can do no harm."""
        return self.stage in _REPEATABLE

    @property
    def url(self) -> str:
        """The whole URL, query included."""
        query = "?" + urlencode(self.query) if self.query else ""
        return f"{self.server}{self.path}{query}"

    @property
    def content(self) -> bytes | None:
        """The body as JSON in ASCII, so that text which is not valid Unicode still travels."""
        if self.body is None:
            return None
        return json.dumps(self.body, allow_nan=False).encode("ascii")

    def __str__(self) -> str:
        """Say what was asked of whom, for error messages: never the body, never a password."""
        return f"{self.method} {redact(self.server)}{self.path}"


@dataclass(frozen=True)
class Reply:
    """What a server answered.

    Attributes:
        call: The call this answers.
        status: HTTP status code.
        content: The undecoded body.
    """

    call: Call
    status: int
    content: bytes

    def json(self) -> Any:
        """Return the body as JSON.

        Raises:
            BadReply: It is not JSON, or holds the numbers NaN or Infinity, which JSON does not have.
        """
        try:
            return json.loads(self.content, parse_constant=no_constant)
        except (ValueError, RecursionError) as error:
            raise BadReply(f"{self.call} answered something that is not JSON: {self.excerpt}") from error

    @property
    def excerpt(self) -> str:
        """The beginning of the body, quoted, for an error message."""
        shown = self.content[:_SHOWN].decode("utf-8", errors="replace")
        return repr(shown) + ("…" if len(self.content) > _SHOWN else "")


Flow: TypeAlias = Generator[Call, Reply, T]


def at(server: str, flow: Flow[T]) -> Flow[T]:
    """Run a flow of relative calls against one server.

    Args:
        server: Base URL without a trailing slash.
        flow: The flow whose calls are to be sent there.

    Returns:
        What the flow returns.
    """
    try:
        call = next(flow)
        while True:
            try:
                reply = yield replace(call, server=server)
            except Exception as error:  # noqa: BLE001 - whatever the driver throws belongs to the inner flow
                call = flow.throw(error)
            else:
                call = flow.send(reply)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


@dataclass(frozen=True)
class Body:
    """The JSON of a reply, read field by field.

    Every reader takes the name of a field, the position in a list, or None for the whole value, and raises
    :class:`~agentgym_gym.errors.BadReply`, naming the call, when it is missing or of another type than the
    protocol says.

    Attributes:
        call: The call that was answered.
        value: The JSON value.
    """

    call: Call
    value: Any

    def text(self, name: str | int | None = None) -> str:
        """Return a string as valid Unicode."""
        value = self._field(name)
        if not isinstance(value, str):
            raise self._bad(f"{self._called(name)} should be a string, got {shown(value)}")
        return scrub(value)

    def number(self, name: str | int | None = None) -> float:
        """Return a finite number."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self._bad(f"{self._called(name)} should be a number, got {shown(value)}")
        try:
            result = float(value)
        except OverflowError:
            result = math.inf
        if not math.isfinite(result):
            raise self._bad(f"{self._called(name)} should be a finite number, got {shown(value)}")
        return result

    def integer(self, name: str | int | None = None) -> int:
        """Return an integer."""
        value = self._field(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise self._bad(f"{self._called(name)} should be an integer, got {shown(value)}")
        return value

    def flag(self, name: str | int | None = None) -> bool:
        """Return a truth value."""
        value = self._field(name)
        if not isinstance(value, bool):
            raise self._bad(f"{self._called(name)} should be true or false, got {shown(value)}")
        return value

    def texts(self, name: str | int | None = None) -> tuple[str, ...]:
        """Return a list of strings as valid Unicode."""
        value = self._field(name)
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise self._bad(f"{self._called(name)} should be a list of strings, got {shown(value)}")
        return tuple(map(scrub, value))

    def integers(self, name: str | int | None = None) -> tuple[int, ...]:
        """Return a list of integers."""
        value = self._field(name)
        if not isinstance(value, list) or not all(type(each) is int for each in value):
            raise self._bad(f"{self._called(name)} should be a list of integers, got {shown(value)}")
        return tuple(value)

    def has(self, name: str) -> bool:
        """Return whether there is a field of that name, and it is not null."""
        return isinstance(self.value, dict) and self.value.get(name) is not None

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

    @staticmethod
    def _called(name: str | int | None) -> str:
        return "the reply" if name is None else repr(name)

    def _bad(self, what: str) -> BadReply:
        return BadReply(f"{self.call} broke the protocol: {what}")


def exchange(call: Call) -> Flow[Body]:
    """Send a call and return the JSON of its reply.

    Raises:
        ServerError: The status is not 200.
        BadReply: The body is not JSON.
        EnvironmentFailed: The body is an object with an ``error`` key, the way six of the servers report
            failures with status 200. The text under the key may be empty, so the key alone decides.
    """
    reply = yield call
    if reply.status != HTTPStatus.OK:
        raise ServerError(f"{reply.call} answered HTTP {reply.status}: {reply.excerpt}")
    value = reply.json()
    if isinstance(value, dict) and "error" in value:
        raise EnvironmentFailed(f"{reply.call} answered an error: {shown(value['error'])}")
    return Body(reply.call, value)


@dataclass(frozen=True)
class Start:
    """The beginning of an episode, as the server told it.

    Attributes:
        observation: The first observation.
        goal: The task in a few words, where the server states one.
        available_actions: What may be done now, where the server lists it.
        details: What :meth:`Wire.judge` needs of the beginning.
    """

    observation: str
    goal: str | None = None
    available_actions: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The server's answer to one action.

    Attributes:
        observation: What the agent sees next.
        reward: The reward exactly as the server gave it.
        done: Whether the server called the episode finished.
        available_actions: What may be done now, where the server lists it.
        details: What else :meth:`Wire.judge` needs.
    """

    observation: str
    reward: float
    done: bool
    available_actions: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Verdict:
    """Where an episode stands after an outcome.

    Attributes:
        score: The episode's score so far; its final value is the episode's return.
        success: Whether the task is solved.
        done: Whether the episode is over.
        agentgym_score: What AgentGym's own client would report if the episode ended here.
    """

    score: float
    success: bool
    done: bool
    agentgym_score: float


class Wire(ABC):
    """How one kind of server is spoken to. Stateless: one instance serves every episode.

    A wire that takes options, as ``gymnasium.make`` hands them on, is a frozen dataclass with a field for
    each.

    Class attributes:
        greeting: What ``GET /`` answers on the right server.
        plain_greeting: Whether the greeting is plain text, not JSON.
        routes: Routes by which the server is told from others that greet alike, each with the fields of its
            body; looked for where the server describes itself under ``/openapi.json``.
        no_routes: Routes that others which greet alike have, and the right server has not.
        closes: Whether the server can free an environment.
        capacity: How many environments one server can hold, for all of its clients; None for no limit.
        reissues_ids: Whether a full server hands out ids that are in use, instead of refusing.
    """

    greeting: ClassVar[str]
    plain_greeting: ClassVar[bool] = False
    routes: ClassVar[Mapping[str, Collection[str]]] = {}
    no_routes: ClassVar[Collection[str]] = ()
    closes: ClassVar[bool]
    capacity: ClassVar[int | None] = None
    reissues_ids: ClassVar[bool] = False

    def identify(self) -> Flow[None]:
        """Check that the right environment answers.

        Raises:
            WrongServer: Something else answers there; the message says what.
        """
        reply = yield Call("identify", "GET", "/")
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            raise ServerError(f"{reply.call} answered HTTP {reply.status}: {reply.excerpt}")
        said = greeting_of(reply, plain=self.plain_greeting)
        if said != self.greeting:
            raise WrongServer(f"expected a server that says {self.greeting!r}, found one that says {said!r}")
        if not self.routes and not self.no_routes:
            return
        reply = yield Call("identify", "GET", "/openapi.json")
        if reply.status != HTTPStatus.OK:
            return  # it says no more of itself than its greeting
        found = _routes_in(reply)
        missing = [path for path, names in self.routes.items() if not set(names) <= found.get(path, set())]
        strange = [path for path in self.no_routes if path in found]
        if missing or strange:
            raise WrongServer(
                f"its routes are those of another environment: {', '.join(missing + strange)} should "
                f"{'take other fields' if missing else 'not be there'}"
            )

    @abstractmethod
    def create(self, task_id: int) -> Flow[int]:
        """Make a remote environment and return its id (0 is an id like any other).

        Args:
            task_id: The task it will be reset to first, which some servers want to know already.
        """

    def list_envs(self) -> Flow[tuple[int, ...] | None]:
        """Return the ids of all environments on a server that can hold only so many.

        None where the server does not say, or gives out the same ids again after a restart, so that an id on
        the list may be anyone's. Asked before ``create``, and only where :attr:`capacity` is set.
        """
        yield from ()
        return None

    @abstractmethod
    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task in a remote environment."""

    @abstractmethod
    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Play one action, already in the words the server reads."""

    def close(self, env_id: int) -> Flow[None]:
        """Free a remote environment. Called only where :attr:`closes` is true."""
        yield from ()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Verdict:
        """Score an outcome: by default a task is worth 1 once the server has paid for it, else 0.

        Args:
            start: How the episode began.
            score: The score before this outcome.
            action: The words that were sent.
            outcome: What the server answered.
        """
        success = outcome.done and outcome.reward > 0
        return Verdict(1.0 if success else score, success, outcome.done, outcome.reward)


def greeting_of(reply: Reply, *, plain: bool = False) -> str:
    """Return what a server says of itself at its root.

    Args:
        reply: The reply to ``GET /``.
        plain: Whether plain text will do; else it must be a JSON string.

    Returns:
        The greeting; where there is none, the status and how the body begins.
    """
    try:
        said = reply.json()
    except BadReply:
        said = reply.content.decode("utf-8", errors="replace") if plain else None
    if reply.status == HTTPStatus.OK and isinstance(said, str):
        return said
    return f"HTTP {reply.status} {reply.excerpt}"


def _routes_in(reply: Reply) -> dict[str, set[str]]:
    """Return the routes that an OpenAPI description names, each with the fields of its body."""
    try:
        api = reply.json()
        return {path: _fields_of(api, route) for path, route in api["paths"].items()}
    except (BadReply, KeyError, TypeError, AttributeError):
        return {}


def _fields_of(api: Any, route: Any) -> set[str]:
    try:
        schema = route["post"]["requestBody"]["content"]["application/json"]["schema"]
        return set(api["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])
    except (KeyError, TypeError, AttributeError):
        return set()
