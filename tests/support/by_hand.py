"""Flows played by hand: a small wire, and each reply to it, without a server or a socket."""

from __future__ import annotations

import json
from dataclasses import replace

from agentgym_gym import catalogue, errors
from agentgym_gym.calls import Call, InThread, Reply
from agentgym_gym.wire import Outcome, Start, Wire

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
    """Holds two, says which, and gives out ids that never come again."""

    capacity = 2

    def list_envs(self):
        body = (yield Call("observe", "GET", "/list_envs")).body()
        return tuple(body.value)


def make(wire: Wire) -> catalogue.Environment:
    return replace(catalogue.find("TextCraft"), name="Hand", wire=wire)


def play(flow, *answers):
    """Drive a flow by answers, each a stage and JSON or a fault; return its result and the calls."""
    answers, asked = list(answers), []
    try:
        call = next(flow)
        while True:
            if isinstance(call, InThread):
                call = flow.send(call.function())  # no answer is needed for files
                continue
            asked.append(call)
            assert answers, f"nothing was expected after {[c.stage for c in asked]}"
            stage, answer = answers.pop(0)
            assert call.stage == stage
            if isinstance(answer, errors.Fault):
                call = flow.throw(answer)
            else:
                call = flow.send(Reply(call, 200, json.dumps(answer).encode()))
    except StopIteration as stop:
        assert not answers, f"never asked for {answers}"
        return stop.value, asked


IDENTIFY = ("identify", GREETING)
SEEN = {"observation": "seen"}
STEPPED = {"observation": "on", "reward": 0, "done": False}
DOWN = errors.ServerUnreachable("down", refused=True)
LOST = errors.ConnectionLost("lost")


def created(env_id):
    return ("create", {"id": env_id})


def listed(*env_ids):
    return ("observe", list(env_ids))
