"""A small wire made by hand: an environment of it for one test, and its flows without a server."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import gymnasium

import inside
from agentgym_gym import catalogue
from agentgym_gym.calls import Call, InThread, Reply
from agentgym_gym.wire import Outcome, Start, Wire
from fake_server import Answer, FakeServer, Request

GREETING = "This is environment Hand."


def ask(call):
    """Ask for the body of one reply."""
    return (yield call).body()


class HandWire(Wire):
    """A wire small enough to play by hand."""

    greeting = GREETING
    closes = True

    def create(self, task_id):
        return (yield Call("create", "POST", "/create", {})).body().integer("id")

    def reset(self, env_id, task_id):
        body = (yield Call("reset", "POST", "/reset", {"id": env_id, "task": task_id})).body()
        return Start(body.text("observation"))

    def step(self, env_id, action):
        body = (yield Call("step", "POST", "/step", {"id": env_id, "action": action})).body()
        return Outcome(body.text("observation"), body.number("reward"), body.flag("done"))

    def close(self, env_id):
        (yield Call("close", "POST", "/close", {"id": env_id})).body()


class Endless(HandWire):
    """Cannot close."""

    closes = False


class Small(HandWire):
    """Holds two, like a server with a cap."""

    capacity = 2


class Wrapping(HandWire):
    """Hands out ids in use when it is full."""

    reissues_ids = True
    closes = False


class Listing(Endless):
    """Has room for two, lists them, and never reuses an id."""

    capacity = 2
    repeats_ids = False

    def list_envs(self):
        body = (yield Call("observe", "GET", "/list_envs")).body()
        return tuple(body.value)


def make(wire: Wire) -> catalogue.Environment:
    return replace(catalogue.find("TextCraft"), name="Hand", namespace="own", wire=wire)


def register(environment: catalogue.Environment, monkeypatch) -> None:
    """Register an environment until the end of the test."""
    inside.forget_registrations(monkeypatch)
    monkeypatch.setitem(gymnasium.registry, environment.id, None)
    catalogue.register(environment)


SEEN = {"observation": "seen"}
STEPPED = {"observation": "on", "reward": 0, "done": False}


class HandServer(FakeServer):
    """A server of the wires made by hand.

    Args:
        ids: The ids that it assigns, in order; by default the integers from 0.

    Attributes:
        there: The ids of the environments that were created and not closed.
        asked: The path and the body of each request.
        bad: The answer to a path instead of the usual one.
        at: Called for a path before it is answered.
    """

    def __init__(self, ids=None):
        self.ids = iter(itertools.count() if ids is None else ids)
        self.there: list[int] = []
        self.asked: list[tuple[str, Any]] = []
        self.bad: dict[str, Answer] = {}
        self.at = {}
        super().__init__(self._answer)

    def used(self, path: str) -> list[int]:
        """Return the ids of the environments that a path was asked for."""
        return [body["id"] for asked, body in self.asked if asked == path]

    def times(self, path: str) -> int:
        """Return how often a path was asked for."""
        return [asked for asked, _ in self.asked].count(path)

    def _answer(self, request: Request) -> Answer:
        path, body = request.path, request.json
        self.asked.append((path, body))
        if path in self.at:
            self.at[path]()
        if path in self.bad:
            return self.bad[path]
        if path == "/":
            return GREETING
        if path == "/create":
            self.there.append(next(self.ids))
            return {"id": self.there[-1]}
        if path == "/list_envs":
            return self.there
        if path == "/close":
            self.there.remove(body["id"])
            return True
        return SEEN if path == "/reset" else STEPPED


def answered(flow, *answers):
    """Answer the calls of a flow; return its result and the calls.

    Each answer is a status and a value, which is sent as JSON; bytes are sent as they are.
    """
    answers, calls = list(answers), []
    try:
        call = next(flow)
        while True:
            calls.append(call)
            status, value = answers.pop(0)
            content = value if isinstance(value, bytes) else json.dumps(value).encode()
            call = flow.send(Reply(call, status, content))
    except StopIteration as stop:
        assert answers == []
        return stop.value, calls


def exchange(flow, value, status=200):
    """Answer the one call of a flow; return its result and the call."""
    result, (call,) = answered(flow, (status, value))
    return result, call


def play(flow):
    """Run a flow that needs no request, only files."""
    try:
        operation = next(flow)
        while isinstance(operation, InThread):
            operation = flow.send(operation.function())
    except StopIteration as stop:
        return stop.value
    raise AssertionError(f"{operation} was not expected")
