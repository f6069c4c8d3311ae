"""Server defects: this project's TextCraft server with changed requests or replies, for `AgentGymEnv`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import threading
import time
from collections.abc import Callable
from typing import Any, ClassVar

import uvicorn

from agentgym_gym import AgentGymEnv, find
from agentgym_gym.evaluate import load_oracle
from agentgym_gym.local_servers import server_kind

Body = dict[str, Any]
Forward = Callable[[Body], Any]


class PatchedServer:
    """An application that passes JSON requests to this project's TextCraft server; subclasses change them.

    Class attributes:
        options: The options of the server.

    Args:
        app: The application to patch.
    """

    options: ClassVar[dict[str, Any]] = {}

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Handle a request as an ASGI application."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self.app(scope, receive, send)
            return
        content, more = b"", True
        while more:
            message = await receive()
            content += message.get("body", b"")
            more = message.get("more_body", False)

        start: Any = {"type": "http.response.start", "status": 200, "headers": []}

        async def forward(body: Body) -> Any:
            """Send a body to the server; return the reply's JSON."""
            nonlocal start
            sent = [{"type": "http.request", "body": json.dumps(body).encode(), "more_body": False}]
            reply = bytearray()

            async def receive_sent() -> Any:
                return sent.pop() if sent else {"type": "http.disconnect"}

            async def keep(message: Any) -> None:
                nonlocal start
                if message["type"] == "http.response.start":
                    start = message
                else:
                    reply.extend(message.get("body", b""))

            headers = [(key, value) for key, value in scope["headers"] if key != b"content-length"]
            await self.app({**scope, "headers": headers}, receive_sent, keep)
            return json.loads(reply)

        try:
            reply = await self.answer(scope["path"], json.loads(content), forward)
        except Exception as error:  # noqa: BLE001 - as a server's framework does
            start, reply = {**start, "status": 500, "headers": []}, f"{type(error).__name__}"
        encoded = json.dumps(reply).encode()
        headers = [(key, value) for key, value in start["headers"] if key != b"content-length"]
        length = (b"content-length", str(len(encoded)).encode())
        await send({**start, "headers": [*headers, length]})
        await send({"type": "http.response.body", "body": encoded})

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Return the reply to a request."""
        return await forward(body)


class OneGame(PatchedServer):
    """Plays each action in the game that was reset last, for any environment."""

    _last: int | None = None

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Remember the last reset, and direct actions to it."""
        if path == "/reset":
            self._last = body["id"]
        if path == "/step" and self._last is not None:
            body = {**body, "id": self._last}
        return await forward(body)


class SameTaskKept(PatchedServer):
    """A reset to the task that is played already keeps the inventory: the reply comes from a cache."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._replies: dict[int, tuple[int, Any]] = {}

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Answer a reset from the cache if the task is the same."""
        if path == "/reset":
            task, reply = self._replies.get(body["id"], (None, None))
            if task == body["data_idx"]:
                return reply
        reply = await forward(body)
        if path == "/reset":
            self._replies[body["id"]] = body["data_idx"], reply
        return reply


class WonByEcho(PatchedServer):
    """Ends the game when the observation has "Crafted" and the goal; a refusal repeats the agent's text."""

    def __init__(self, app: Any) -> None:
        super().__init__(app)
        self._goals: dict[int, str] = {}

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Judge a step by its observation."""
        reply = await forward(body)
        if path == "/reset":
            match = re.search(r"Goal: craft (.*)\.$", reply["observation"])
            self._goals[body["id"]] = match[1].replace(" ", "_") if match else ""
        elif path == "/step":
            goal = self._goals.get(body["id"])
            pattern = rf"Crafted \d+ minecraft:{goal}\b"
            if goal and re.search(pattern, reply["observation"]):
                reply = {**reply, "reward": 1, "done": True}
        return reply


class ClosedKept(PatchedServer):
    """Confirms a close and keeps the environment; the server has room for 50."""

    options: ClassVar[dict[str, Any]] = {"max_envs": 50}

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Ignore a close."""
        return True if path == "/close" else await forward(body)


class SplitOverlap(PatchedServer):
    """The test tasks 500 to 543 are the train tasks 0 to 43."""

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Play another task."""
        if path == "/reset" and body["data_idx"] >= 500:
            body = {**body, "data_idx": body["data_idx"] - 500}
        return await forward(body)


class HashOrder(PatchedServer):
    """Lists the recipes of a task in the order of a set."""

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Reorder the recipes."""
        reply = await forward(body)
        if path in {"/create", "/reset"} and "\n\n" in reply["observation"]:
            head, _, goal = reply["observation"].partition("\n\n")
            title, *recipes = head.split("\n")
            reply["observation"] = "\n".join([title, *set(recipes)]) + f"\n\n{goal}"
        return reply


class AsciiLog(PatchedServer):
    """Writes actions to a log in ASCII, and fails with 500 for other characters."""

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Encode the action."""
        if path == "/step":
            body["action"].encode("ascii")
        return await forward(body)


class SlowStep(PatchedServer):
    """Every 12th step takes 1.2 seconds longer."""

    _steps = 0

    async def answer(self, path: str, body: Body, forward: Forward) -> Any:
        """Wait in every 12th step."""
        if path == "/step":
            self._steps += 1
            if self._steps % 12 == 0:
                await asyncio.sleep(1.2)
        return await forward(body)


_urls: dict[tuple[int, str], str] = {}
_lock = threading.Lock()


def url_of(patch: type[PatchedServer]) -> str:
    """Return the URL of a patched server, which this process starts once, in a thread."""
    key = os.getpid(), patch.__name__
    with _lock:
        if key not in _urls:
            _urls[key] = _started(patch(server_kind("textcraft").app(**patch.options)))
        return _urls[key]


def _started(app: Any) -> str:
    config = uvicorn.Config(app, port=0, log_level="critical", lifespan="off", timeout_keep_alive=3600)
    server = uvicorn.Server(config)
    threading.Thread(target=server.run, daemon=True, name="patched-server").start()
    while not server.started:
        time.sleep(0.01)
    (port,) = {listener.getsockname()[1] for each in server.servers for listener in each.sockets}
    return f"http://127.0.0.1:{port}"


SERVERS: dict[str, type[PatchedServer]] = {
    patch.__name__: patch
    for patch in (
        *(PatchedServer, OneGame, SameTaskKept, WonByEcho),
        *(ClosedKept, SplitOverlap, HashOrder, AsciiLog, SlowStep),
    )
}
"""The servers by name."""


def make_env(patch: str, **options: Any) -> AgentGymEnv:
    """Make an environment on a patched server: the entry point of the registrations."""
    return AgentGymEnv("TextCraft", server=url_of(SERVERS[patch]), **options)


class TextCraftSolver:
    """The oracle of TextCraft."""

    name = "oracle"
    blocking = False

    def __init__(self) -> None:
        oracle = load_oracle(find("TextCraft"))
        self.reset = oracle.reset
        self.act = oracle.act
