"""The abstract wire: the protocol of one kind of server, and what its answers mean."""

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
"""The HTTP header by which this project's own servers say which they are. AgentGym's have none."""


@dataclass(frozen=True)
class Start:
    """The beginning of an episode, as the server told it.

    Attributes:
        observation: The first observation.
        goal: The task in a few words, if the server states one.
        available_actions: What may be done now, if the server lists it.
        details: What else :meth:`Wire.judge` needs from the beginning.
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
class Score:
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


@dataclass
class Seen:
    """What was last seen of a remote environment.

    Attributes:
        task_id: The task that it plays.
        start: How the episode began.
        outcome: The last outcome; None where no action was played yet.
        unanswered: An action that was sent since, and may have been played; empty where there is none.
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
        """Whether the server called the episode finished."""
        return self.outcome is not None and self.outcome.done


class Wire(ABC):
    """The protocol of one kind of server. Stateless: one instance serves every episode.

    A wire with options, as ``gymnasium.make`` passes them on, is a frozen dataclass with a field for each.

    Class attributes:
        greeting: What ``GET /`` answers on the right server.
        plain_greeting: Whether the greeting is plain text, not JSON.
        routes: Routes that tell the server from others with the same greeting, each with the fields of its
            body. They are checked if the server has a description under ``/openapi.json``.
        no_routes: Routes that other servers with the same greeting have, and the right one does not.
        closes: Whether the server can free an environment.
        capacity: How many environments one server can hold, for all of its clients; None for no limit.
        reissues_ids: Whether a full server hands out ids that are in use, instead of refusing.
        time_limits: Seconds by the name of a limit of `Limits`, where a healthy server needs more than the
            usual default allows.
        repeats_ids: Whether a server that was restarted gives out the same ids again. Where it does not, an
            id that it knows is the one that was made.
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

    def identify(self) -> Flow[None]:
        """Check that the right environment answers.

        Raises:
            WrongServer: Something else answers there; the message says what.
        """
        reply = yield Call("identify", "GET", "/")
        if reply.status >= HTTPStatus.INTERNAL_SERVER_ERROR or reply.status == HTTPStatus.TOO_MANY_REQUESTS:
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
            raise WrongServer(f"its routes are those of another environment: {', '.join(wrong)}")

    @abstractmethod
    def create(self, task_id: int) -> Flow[int]:
        """Make a remote environment and return its id (0 is an id like any other).

        Args:
            task_id: The task it will be reset to first; some servers ask for it here.
        """

    def list_envs(self) -> Flow[tuple[int, ...] | None]:
        """Return the ids of all environments on a server that can hold only so many.

        None if the server does not list them, or if it gives out the same ids again after a restart, so that
        an id in the list may be anyone's. Called before ``create``, and only if ``capacity`` is set.
        """
        yield from ()
        return None

    @abstractmethod
    def reset(self, env_id: int, task_id: int) -> Flow[Start]:
        """Start a task in a remote environment."""

    def check(self, words: str) -> None:  # noqa: B027 - most servers have nothing to fear
        """Check an action that the grammar does not know, before it is sent in the agent's words.

        Raises:
            BadArguments: They would do more on this server than play an action.
        """

    def render(self, action: object) -> str:
        """Return the text that the server reads for an action: by default, its words."""
        return str(action)

    def page(self, seen: Seen) -> str:
        """Return what AgentGym's client shows again after a reply that it does not send."""
        return seen.observation

    @abstractmethod
    def step(self, env_id: int, action: str) -> Flow[Outcome]:
        """Play one action, already in the words the server reads."""

    def recognise(self, env_id: int, seen: Seen) -> Flow[bool | None]:
        """Look at a remote environment, and change nothing in it.

        Asked where the server may have been restarted since, and have given the id to somebody else. By
        default nothing is asked, and the environment is taken for the one that was seen.

        Args:
            env_id: Its id.
            seen: What was last seen of it.

        Returns:
            Whether it shows what was last seen; None where there is no such environment.
        """
        yield from ()
        return True

    def close(self, env_id: int) -> Flow[None]:
        """Free a remote environment. Called only where ``closes`` is true."""
        yield from ()

    def judge(self, start: Start, score: float, action: str, outcome: Outcome) -> Score:
        """Score an outcome: by default a task is worth 1 once the server has paid for it, else 0.

        Args:
            start: How the episode began.
            score: The score before this outcome.
            action: The words that were sent.
            outcome: What the server answered.
        """
        success = outcome.done and outcome.reward > 0
        return Score(1.0 if success else score, success, outcome.done, outcome.reward)


def greeting_of(reply: Reply, *, plain: bool = False) -> str:
    """Return what a server says of itself at its root.

    Args:
        reply: The reply to ``GET /``.
        plain: Whether plain text is accepted; else it must be a JSON string.

    Returns:
        The greeting; if there is none, the status and the beginning of the body.
    """
    try:
        said = reply.json()
    except BadReply:
        said = reply.content.decode("utf-8", errors="replace") if plain else None
    if reply.status == HTTPStatus.OK and isinstance(said, str):
        return said
    return f"HTTP {reply.status} {reply.excerpt}"


def look(call: Call, seen: Seen) -> Flow[Body | bool | None]:
    """Ask what a remote environment shows, for :meth:`Wire.recognise`.

    HTTP 500 is what half of the servers answer to an id that they do not know. As any server may fail once,
    it is asked a second time then: to take an environment for gone leaves it open for ever.

    Returns:
        What it shows; or, where a server shows nothing once an episode is finished, whether the one that was
        seen is; None where the server says that there is no such environment.

    Raises:
        Fault: Something else is wrong.
    """
    reply = yield call
    if reply.status == HTTPStatus.INTERNAL_SERVER_ERROR:
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
