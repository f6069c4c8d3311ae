"""A game on a local server, played as its environment plays it, mostly without a socket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

from agentgym_gym import find
from agentgym_gym.calls import Call, Flow, Reply
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.local_servers import ServedWorld, server_kind

if TYPE_CHECKING:
    from typing_extensions import Self

    from agentgym_gym.wire import Outcome, Start

T = TypeVar("T")


def close_workers(app: Any) -> None:
    """End the processes that SQLGym's application has started; other applications have none."""
    workers = getattr(getattr(app, "state", None), "workers", None)
    if workers is not None:
        workers.close()


class LocalGame:
    """One environment on a new local server: ``with LocalGame("Maze") as game: game.reset(3)``.

    The requests use the environment's wire, so that no test contains the fields of a server.

    Args:
        name: The name of the environment.
        url: The URL of a running server; None for a new one in this process.
        options: The options of the new server, such as ``seed=1``, ``data=folder`` or ``twin=True``.

    Attributes:
        environment: The environment.
        seen: The observations since the last reset, the first one included.
        head: The header of the last reply that names the served world.
    """

    def __init__(self, name: str, *, url: str | None = None, **options: Any) -> None:
        self.environment = find(name)
        self.seen: list[str] = []
        self.head = ""
        self._id: int | None = None
        self._loop = asyncio.new_event_loop()
        self._app = None if url else server_kind(name.lower()).app(**options)
        transport = httpx.ASGITransport(self._app) if self._app else None
        self._client = httpx.AsyncClient(transport=transport, base_url=url or "http://server", timeout=60)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.run_until_complete(self._client.aclose())
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        close_workers(self._app)

    def reset(self, task: int) -> Start:
        """Begin a task, in an environment that is made for the first one."""
        wire = self.environment.wire
        if self._id is None:
            self._id = self.drive(wire.create(task))
        start = self.drive(wire.reset(self._id, task))
        self.seen = [start.observation]
        return start

    def step(self, action: object) -> Outcome:
        """Do an action: a typed one, or the text that the server is to get."""
        wire = self.environment.wire
        text = action if isinstance(action, str) else wire.render(action)
        assert self._id is not None, "reset it first"
        outcome = self.drive(wire.step(self._id, text))
        self.seen.append(outcome.observation)
        return outcome

    def call(self, function: str, /, **arguments: object) -> str:
        """Call a function of a tool server; return what it returns, without the words around it."""
        shown = self.step(f"Action: {function} with Action Input: {arguments!r}").observation
        return shown.removeprefix("Observation: ").removesuffix("\nGive me one action.")

    def win(self, task: int) -> tuple[list[Any], Outcome]:
        """Begin a task, and let the oracle play it; return its actions, and what the last one led to."""
        start = self.reset(task)
        oracle = load_oracle(self.environment)
        info = {"task_id": task, "goal": start.goal, "served_by": self.head}
        observation = start.observation
        oracle.reset(None, observation, info)
        actions, outcome = [], None
        while outcome is None or not outcome.done:
            action = oracle.act(observation, info)
            if action is None:
                break
            actions.append(action)
            outcome = self.step(action)
            observation = outcome.observation
        assert outcome is not None, "the oracle does nothing"
        return actions, outcome

    def play(self, task: int, actions: Iterable[object]) -> Outcome:
        """Begin a task, do all these actions, and return what the last one led to."""
        self.reset(task)
        for action in actions:
            outcome = self.step(action)
        return outcome

    def drive(self, flow: Flow[T]) -> T:
        """Run a flow of the wire: send its calls, and return its result."""
        try:
            call = next(flow)
            while True:
                call = flow.send(self._reply(call))
        except StopIteration as stop:
            result: T = stop.value
            return result

    def get(self, path: str, **query: Any) -> httpx.Response:
        """Ask for a view, such as ``/observation``; the environment's own id is ``game.id``."""
        return self._ask("GET", path, params=query)

    def post(self, path: str, **body: Any) -> httpx.Response:
        """Post JSON."""
        return self._ask("POST", path, json=body)

    @property
    def id(self) -> int:
        """The id of the environment on the server."""
        assert self._id is not None, "reset it first"
        return self._id

    def _reply(self, call: Call) -> Reply:
        headers = {"content-type": "application/json"} if call.content else {}
        reply = self._ask(call.method, call.path, params=call.query, content=call.content, headers=headers)
        return Reply(call, reply.status_code, reply.content, dict(reply.headers))

    def _ask(self, method: str, path: str, **sent: Any) -> httpx.Response:
        reply = self._loop.run_until_complete(self._client.request(method, path, **sent))
        self.head = reply.headers.get("agentgym-server", "")
        return reply


def solution(name: str, task: int, seed: int = 0, *, twin: bool = False) -> list[Any]:
    """Return the actions of an oracle that derives the world from its seed, without a game."""
    environment = find(name)
    oracle = load_oracle(environment)
    served_by = str(ServedWorld(environment.name, 1, seed, twin=twin))
    info = {"task_id": task, "served_by": served_by}
    oracle.reset(None, "", info)
    actions = []
    while (action := oracle.act("", info)) is not None:
        actions.append(action)
    return actions
