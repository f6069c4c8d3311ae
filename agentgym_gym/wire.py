"""The abstract wire: the protocol of one kind of server, and the interpretation of its replies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, ClassVar

from agentgym_gym.calls import Body, Call, Flow, Reply
from agentgym_gym.errors import BadReply, EnvironmentFailed, ServerError, WrongServer

__all__ = ["SERVER_HEADER", "Outcome", "Score", "Seen", "Start", "Wire", "greeting_of", "look"]

SERVER_HEADER = "agentgym-server"
"""The HTTP header by which this project's own servers identify themselves. AgentGym's do not send it.

A second one, with ``-process`` after the name, has a random number that changes when the server restarts."""


@dataclass(frozen=True)
class Start:
    """The beginning of an episode, as returned by the server.

    Attributes:
        observation: The first observation.
        goal: The task in a few words, if the server states one.
        available_actions: The currently possible actions, if the server lists them.
        details: Other data from the beginning that :meth:`Wire.judge` needs.
    """

    observation: str
    goal: str | None = None
    available_actions: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """The server's reply to one action.

    Attributes:
        observation: The next observation of the agent.
        reward: The reward exactly as returned by the server.
        done: Whether the server reported the end of the episode.
        available_actions: The currently possible actions, if the server lists them.
        details: Other data that :meth:`Wire.judge` needs.
    """

    observation: str
    reward: float
    done: bool
    available_actions: tuple[str, ...] | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Score:
    """The score of an episode after an outcome.

    Attributes:
        score: The episode's score so far; its final value is the episode's return.
        success: Whether the task is solved.
        done: Whether the episode is over.
        agentgym_score: The score that AgentGym's own client would report if the episode ended here.
    """

    score: float
    success: bool
    done: bool
    agentgym_score: float


@dataclass
class Seen:
    """The last known state of a task in a remote environment.

    Attributes:
        task_id: The task.
        start: The beginning of the episode.
        outcome: The last outcome; None before the first action.
        unanswered: An action that was sent since, and may have been executed; empty if there is none.
    """

    task_id: int
    start: Start
    outcome: Outcome | None = None
    unanswered: str = ""

    @property
    def observation(self) -> str:
        """The last observation."""
        return self.start.observation if self.outcome is None else self.outcome.observation

    @property
    def done(self) -> bool:
        """Whether the server reported the end of the episode."""
        return self.outcome is not None and self.outcome.done


class Wire(ABC):
    """The protocol of one kind of server. Stateless: one instance serves every episode.

    A wire with options, which ``gymnasium.make`` accepts, is a frozen dataclass with a field for each.

    Class attributes:
        greeting: The right server's reply to ``GET /``.
        plain_greeting: Whether the greeting is plain text instead of JSON.
        routes: Routes that distinguish the server from others with the same greeting, each with the fields of
            its body. They are checked if the server has a description under ``/openapi.json``.
        no_routes: Routes that other servers with the same greeting have, and the right one does not.
        closes: Whether the server can close an environment.
        capacity: Limit of environments per server, for all of its clients; None for no limit.
        reissues_ids: Whether a full server returns ids that are in use, instead of an error.
        time_limits: Seconds by the name of a limit of `Limits`, if a healthy server needs more than the
            general default.
        repeats_ids: Whether a restarted server assigns the same ids again. If not, an id that it accepts is
            still the same environment.
        prefix: Prefix of all routes but the greeting; AgentGym's client has it in the server's URL instead.
    """

    greeting: ClassVar[str]
    plain_greeting: ClassVar[bool] = False
    routes: ClassVar[Mapping[str, Collection[str]]] = {}
    no_routes: ClassVar[Collection[str]] = ()
    closes: ClassVar[bool]
    capacity: ClassVar[int | None] = None
    reissues_ids: ClassVar[bool] = False
    time_limits: ClassVar[Mapping[str, float]] = {}
    repeats_ids: ClassVar[bool] = True
    prefix: ClassVar[str] = ""

    def base_urls(self, server: str) -> tuple[str, ...]:
        """Return the base URLs to try for a server: its URL, and the URL without a final `prefix`."""
        shorter = server.removesuffix(self.prefix) if self.prefix else server
        return (server,) if shorter == server else (server, shorter)

    def identify(self) -> Flow[None]:
        """Check that the server provides the right environment.

        Raises:
            WrongServer: It does not; the message contains its greeting or its routes.
        """
        reply = yield Call("identify", "GET", "/")
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status == HTTPStatus.TOO_MANY_REQUESTS:
            raise ServerError(f"{reply.call} answered HTTP {reply.status}: {reply.excerpt}")
        greeting = greeting_of(reply, plain=self.plain_greeting)
        if greeting != self.greeting:
            raise WrongServer(f"expected a server with the greeting {self.greeting!r}, found {greeting!r}")
        if not self.routes and not self.no_routes:
            return
        reply = yield Call("identify", "GET", "/openapi.json")
        if reply.status != HTTPStatus.OK:
            return  # the greeting is the only identification
        found = _routes_in(reply)
        wrong = [
            *(f"{path} should be there" for path in self.routes if path not in found),
            *(
                f"{path} should take other fields"
                for path, names in self.routes.items()
                if path in found and not set(names) <= found[path]
            ),
            *(f"{path} should not be there" for path in self.no_routes if path in found),
        ]
        if wrong:
            raise WrongServer(f"its routes belong to another environment: {', '.join(wrong)}")

    @abstractmethod
    def create(self, task_id: int) -> Flow[int]:
        """Create a remote environment and return its id (0 is a valid id).

        Args:
            task_id: The task of its first reset; some servers require it here.
        """

    def list_envs(self) -> Flow[tuple[int, ...] | None]:
        """Return the ids of all environments on a server with a fixed capacity.

        None if the server does not list them, or if it assigns the same ids again after a restart, so that a
        listed id may belong to any client. Called before ``create``, and only if ``capacity`` is set.
        """
        yield from ()
        return None

    @abstractmethod
    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task in a remote environment."""

    def check(self, words: str) -> None:  # noqa: B027 - most servers have nothing to fear
        """Check an action that the grammar does not include, before it is sent as written.

        Raises:
            BadArguments: The text would do more on this server than execute an action.
        """

    def render(self, action: object) -> str:
        """Return the text of an action for the server: by default, its string."""
        return str(action)

    def page(self, seen: Seen) -> str:
        """Return the page that AgentGym's client repeats after a reply that it does not send."""
        return seen.observation

    @abstractmethod
    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Execute one action, which is already in the server's syntax."""

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Inspect a remote environment without changing it.

        Called if the server may have been restarted and may have given the id to another client. By default,
        no request is sent, and the environment counts as the same.

        Args:
            env_id: Its id.
            seen: Its last known state.

        Returns:
            Whether its state is the last known one; None if there is no such environment.
        """
        yield from ()
        return True

    def close(self, env_id: int) -> Flow[None]:
        """Close a remote environment. Called only if ``closes`` is true."""
        yield from ()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score an outcome: by default the score is 1 after a positive reward at the end, and 0 before.

        Args:
            start: The beginning of the episode.
            score: The score before this outcome.
            action: The text that was sent.
            outcome: The server's reply.
        """
        success = outcome.done and outcome.reward > 0
        return Score(1.0 if success else score, success, outcome.done, outcome.reward)


def greeting_of(reply: Reply, *, plain: bool = False) -> str:
    """Return the greeting of a server at its root.

    Args:
        reply: The reply to ``GET /``.
        plain: Whether plain text is accepted; otherwise it must be a JSON string.

    Returns:
        The greeting; if there is none, the status and the beginning of the body.
    """
    try:
        text = reply.json()
    except BadReply:
        text = reply.content.decode("utf-8", errors="replace") if plain else None
    if reply.status == HTTPStatus.OK and isinstance(text, str):
        return text
    return f"HTTP {reply.status} {reply.excerpt}"


def look(call: Call, seen: Seen) -> Flow[Body | bool | None]:
    """Request the state of a remote environment, for :meth:`Wire.recognise`.

    Half of the servers answer HTTP 500 for an unknown id. As any server may fail once, the driver repeats the
    request: an environment that is wrongly considered gone is never closed.

    Returns:
        The state; if a server reports none after the end of an episode, whether the known episode is over;
        None if the server reports that there is no such environment.

    Raises:
        Fault: The request failed for another reason.
    """
    reply = yield call
    if reply.status == HTTPStatus.INTERNAL_SERVER_ERROR:
        return None
    try:
        return reply.body()
    except EnvironmentFailed as error:
        return seen.done if "has finished" in str(error) else None


def _routes_in(reply: Reply) -> dict[str, set[str]]:
    """Return the routes of an OpenAPI description, each with the fields of its body."""
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
