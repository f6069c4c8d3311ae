"""A small server whose every execution is counted, and a transport that breaks what passes through it."""

from __future__ import annotations

import itertools
import json
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import gymnasium
import httpx
import pytest

import agentgym_gym
import inside
import property_profile  # noqa: F401 - it loads the profile
from agentgym_gym import catalogue
from agentgym_gym.envs.textcraft import TEXTCRAFT, TextCraftWire


class FakeTextCraft(httpx.BaseTransport):
    """A server of TextCraft's wire with one recipe, in this process and without a socket.

    Attributes:
        envs: What each open environment holds.
        shown: The last observation of each.
    """

    def __init__(self) -> None:
        self.envs: dict[int, set[str]] = {}
        self.shown: dict[int, str] = {}
        self._ids = itertools.count()

    def restart(self) -> None:
        """Forget everything; ids begin at 0 again."""
        self.envs.clear()
        self._ids = itertools.count()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        body = json.loads(request.content) if request.content else {}
        body.setdefault("id", int(request.url.params.get("id", -1)))
        answer = self._answer(f"{request.method} {request.url.path}", body)
        if isinstance(answer, dict) and "observation" in answer:
            self.shown[answer.get("id", body["id"])] = answer["observation"]
        return httpx.Response(200, content=json.dumps(answer))

    def _answer(self, route: str, body: dict[str, Any]) -> Any:
        env_id = body.get("id")
        if route == "POST /create":
            env_id = next(self._ids)
            self.envs[env_id] = set()
            return {"id": env_id, **self._told("Goal: craft anything.")}
        if route == "POST /close":
            return self.envs.pop(env_id, None) is not None
        if route == "POST /reset" and env_id in self.envs:
            self.envs[env_id].clear()
            text = "Crafting commands:\ncraft 4 oak planks using 1 oak logs\n\nGoal: craft oak planks."
            return {"id": env_id, **self._told(text)}
        if route == "GET /observation" and env_id in self.envs:
            return self.shown[env_id]
        if route == "POST /step" and env_id in self.envs:
            return self._step(self.envs[env_id], body["action"])
        return "This is environment TextCraft." if route == "GET /" else {"error": str(env_id)}

    def _step(self, holds: set[str], action: str) -> dict[str, Any]:
        if action == "get 1 oak logs":
            holds.add("oak logs")
            return self._told("Got 1 oak logs")
        if action == "craft 4 oak planks using 1 oak logs" and "oak logs" in holds:
            return self._told("Crafted 4 minecraft:oak_planks", reward=1, done=True)
        return self._told(f"Could not execute {action}")

    @staticmethod
    def _told(observation: str, *, reward: float = 0, done: bool = False) -> dict[str, Any]:
        return {"observation": observation, "reward": reward, "done": done}


class FakeWithoutClose(FakeTextCraft):
    """A server that frees nothing, and fails with a bare HTTP 500."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        if request.url.path == "/close":
            return httpx.Response(404, json={"detail": "Not Found"})
        response = super().handle_request(request)
        failed = b"error" in response.content
        return httpx.Response(500, text="Internal Server Error") if failed else response


class Elsewhere(httpx.BaseTransport):
    """Takes requests to any host to one real server."""

    def __init__(self, url: str) -> None:
        self._url = httpx.URL(url)
        self._transport = httpx.HTTPTransport()

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        url = self._url.copy_with(raw_path=request.url.raw_path)
        content_type = {"Content-Type": "application/json"}
        return self._transport.handle_request(
            httpx.Request(request.method, url, headers=content_type, content=request.content)
        )

    def close(self) -> None:
        self._transport.close()


class _Broken(httpx.SyncByteStream):
    """A body whose second half does not come."""

    def __init__(self, content: bytes, error: httpx.TransportError) -> None:
        self._content = content
        self._error = error

    def __iter__(self) -> Iterator[bytes]:
        yield self._content[: len(self._content) // 2]
        raise self._error


def _respond(status: int, content: bytes, **headers: str) -> Callable[..., httpx.Response | None]:
    return lambda value, _: httpx.Response(status, content=content, headers=headers)


def _change(**fields: Any) -> Callable[..., httpx.Response | None]:
    """Return what changes fields of a reply that is an object; `...` takes a field out."""

    def changed(value: Any, content: bytes) -> httpx.Response | None:
        if not isinstance(value, dict):
            return None
        value = {k: v for k, v in {**value, **fields}.items() if v is not ...}
        return httpx.Response(200, content=json.dumps(value).encode())

    return changed


def _raise(error: type[httpx.TransportError]) -> Callable[..., httpx.Response | None]:
    def raised(value: Any, content: bytes) -> httpx.Response:
        raise error("injected")

    return raised


def _stop(error: type[httpx.TransportError]) -> Callable[..., httpx.Response | None]:
    return lambda value, content: httpx.Response(200, stream=_Broken(content, error("injected")))


class Break(NamedTuple):
    """One way for a call to go wrong.

    Attributes:
        ran: Whether the server carries the request out.
        reply: What comes back in its place, made of its JSON and its bytes; None for the reply itself.
        kind: The fault that a step ends with when this happens to it; None where all is well with it.
        again: Whether any call is repeated.
    """

    ran: bool
    reply: Callable[[Any, bytes], httpx.Response | None]
    kind: str | None
    again: bool = False


_PAGE = b"<!doctype html><title>It works!</title>"

BREAKS: dict[str, Break] = {
    # What is lost on the way there.
    "refused": Break(False, _raise(httpx.ConnectError), "ServerUnreachable"),
    "no connection in time": Break(False, _raise(httpx.ConnectTimeout), "ServerUnreachable", again=True),
    "503": Break(False, _respond(503, b"Service Unavailable"), "ServerError", again=True),
    "lost before": Break(False, _raise(httpx.WriteError), "ConnectionLost"),
    "closed before": Break(False, _raise(httpx.RemoteProtocolError), "ConnectionLost"),
    "late before": Break(False, _raise(httpx.ReadTimeout), "ServerTimeout"),
    "not sent in time": Break(False, _raise(httpx.WriteTimeout), "ServerTimeout"),
    "500 before": Break(False, _respond(500, b"Internal Server Error"), "ServerError"),
    "502": Break(False, _respond(502, _PAGE), "ServerError"),
    "404": Break(False, _respond(404, b'{"detail": "Not Found"}'), "ServerError"),
    "422": Break(False, _respond(422, b'{"detail": [{"type": "missing"}]}'), "ServerError"),
    "redirect": Break(False, _respond(307, b"", location="http://elsewhere.test/step"), "BadReply"),
    # What is lost on the way back.
    "lost after": Break(True, _raise(httpx.ReadError), "ConnectionLost"),
    "closed after": Break(True, _raise(httpx.RemoteProtocolError), "ConnectionLost"),
    "late after": Break(True, _raise(httpx.ReadTimeout), "ServerTimeout"),
    "cut off": Break(True, _stop(httpx.RemoteProtocolError), "ConnectionLost"),
    "stalled": Break(True, _stop(httpx.ReadTimeout), "ServerTimeout"),
    "500 after": Break(True, _respond(500, b"Internal Server Error"), "ServerError"),
    "504": Break(True, _respond(504, _PAGE), "ServerError"),
    # What comes back, but is no reply.
    "half the JSON": Break(True, lambda v, c: httpx.Response(200, content=c[: len(c) // 2]), "BadReply"),
    "HTML": Break(True, _respond(200, _PAGE, **{"content-type": "text/html"}), "BadReply"),
    "nothing": Break(True, _respond(200, b""), "BadReply"),
    "204": Break(True, _respond(204, b""), "ServerError"),
    "an empty error": Break(True, _respond(200, b'{"error": ""}'), "EnvironmentFailed"),
    "an odd error": Break(True, _respond(200, b'{"error": {"\\ud800": [null]}}'), "EnvironmentFailed"),
    "a list": Break(True, lambda v, c: httpx.Response(200, content=b"[" + c + b"]"), "BadReply"),
    "a million brackets": Break(True, _respond(200, b"[" * 1_000_000), "BadReply"),
    "a million digits": Break(True, _respond(200, b'{"reward": ' + b"9" * 1_000_000 + b"}"), "BadReply"),
    "not UTF-8": Break(True, lambda v, c: httpx.Response(200, content=c[:-1] + b"\xff\xfe"), "BadReply"),
    "not gzip": Break(True, _respond(200, b"not gzip", **{"content-encoding": "gzip"}), "BadReply"),
    "reward NaN": Break(True, _change(reward=float("nan")), "BadReply"),
    "reward Infinity": Break(True, _change(reward=float("inf")), "BadReply"),
    "reward too large": Break(True, _change(reward=10**400), "BadReply"),
    "reward a string": Break(True, _change(reward="1"), "BadReply"),
    "reward true": Break(True, _change(reward=True), "BadReply"),
    "reward missing": Break(True, _change(reward=...), "BadReply"),
    "done missing": Break(True, _change(done=...), "BadReply"),
    "done a number": Break(True, _change(done=1), "BadReply"),
    "done null": Break(True, _change(done=None), "BadReply"),
    "observation null": Break(True, _change(observation=None), "BadReply"),
    "observation missing": Break(True, _change(observation=...), "BadReply"),
    "observation a list": Break(True, _change(observation=["a"]), "BadReply"),
    # What is odd, but a reply.
    "id 0": Break(True, _change(id=0), None),
    "a million letters": Break(True, _change(observation="Goal: craft x\n" * 70_000), None),
    "lone surrogates": Break(True, _change(observation="\ud800 Goal: craft \udfff."), None),
    "more fields": Break(True, _change(score=[None], deleted="?"), None),
    "a reward of -0.0": Break(True, _change(reward=-0.0), None),
}
"""Every way for a call to go wrong, by name."""


class BreakingTransport(httpx.BaseTransport):
    """Passes requests on to a server, breaks some on request, and records their results.

    Attributes:
        breaks: What to do to the next requests, in order; None lets one pass.
        seen: The paths of the requests since the last :meth:`begin`.
        steps: How many steps the server carried out since then.
        told: The replies to steps that arrived since then.
        open: The ids that the server holds.
        excused: Those of them that no client can be blamed for: it was never told of them, or the request to
            close them never arrived.
        busy: The ids on which the server may still be at work, because a reply did not come in time.

    Args:
        server: The server.
        host: The one host that requests may be for.
        frees: Whether the server frees environments, so that no id is ever used by two.
    """

    def __init__(self, server: httpx.BaseTransport, host: str, *, frees: bool = True) -> None:
        self.breaks: deque[str | None] = deque()
        self.seen: list[str] = []
        self.steps = 0
        self.told: list[dict[str, Any]] = []
        self.open: set[int] = set()
        self.excused: set[int] = set()
        self.busy: set[int] = set()
        self._server = server
        self._host = host
        self._frees = frees
        self._owners: dict[int, Any] = {}
        self._caller: Any = None

    def begin(self, caller: Any, breaks: Sequence[str | None] = ()) -> None:
        """Note who makes the requests from now on, and what is to happen to them.

        Args:
            caller: Any object with the attribute ``lease``, the remote environment that it holds now.
            breaks: What to do to its requests.
        """
        self._caller = caller
        self.breaks = deque(breaks)
        self.seen, self.steps, self.told = [], 0, []

    def forget(self) -> None:
        """Note that the server was restarted."""
        self.open.clear()
        self.excused.clear()
        self.busy.clear()

    def close(self) -> None:
        """Do nothing: several clients share this."""

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        path = request.url.path
        self.seen.append(path)
        assert request.url.host == self._host, f"a redirect was followed to {request.url}"
        assert len(self.seen) <= 50, f"there is no end of requests: {self.seen}"
        env_id = json.loads(request.content).get("id") if request.content else None
        if path == "/observation":
            env_id = int(request.url.params["id"])
        elif env_id is not None:
            owner = self._owners.get(env_id)
            if not self._frees and path == "/reset" and (owner.lease is None or owner.lease.env_id != env_id):
                self._owners[env_id] = self._caller  # given back by its owner, and so free to be used again
            assert self._owners.get(env_id) is self._caller, f"{path} on another's environment {env_id}"
            assert path == "/close" or env_id not in self.busy, f"{path} while environment {env_id} is busy"
        name = self.breaks.popleft() if self.breaks else None
        broken = BREAKS[name] if name else Break(True, lambda value, content: None, None)
        self._account_for_break(path, env_id, broken)
        if not broken.ran:
            return broken.reply(None, b"")
        answer = self._server.handle_request(request)
        content = answer.read()
        value = json.loads(content) if answer.status_code == 200 else None

        def reply() -> httpx.Response:
            return broken.reply(value, content) or httpx.Response(answer.status_code, content=content)

        self._account(path, env_id, value, _heard(reply))
        return reply()

    def _account_for_break(self, path: str, env_id: int | None, broken: Break) -> None:
        if env_id not in self.open or not broken.kind:
            return
        # What was never asked to close stays; and what cannot be closed may be given up after any fault.
        if not self._frees or (path == "/close" and not broken.ran):
            self.excused.add(env_id)
        if broken.kind == "ServerTimeout":
            self.busy.add(env_id)

    def _account(self, path: str, env_id: int | None, value: Any, heard: Any) -> None:
        """Note what the server did, and how much of it the client receives."""
        self.steps += path == "/step"
        if path == "/close" and value is True:
            self.open.discard(env_id)
            self.excused.discard(env_id)
        if path == "/create" and value is not None:
            learned = heard.get("id") if isinstance(heard, dict) and "error" not in heard else None
            self.open.add(value["id"])
            if learned != value["id"]:
                self.excused.add(value["id"])
            if learned is not None:
                self._owners[learned] = self._caller
                self.busy.discard(learned)  # by the server's reply
        if path == "/step" and isinstance(heard, dict):
            self.told.append(heard)


def _heard(reply: Callable[[], httpx.Response]) -> Any:
    """Return the JSON that a careful client reads in a reply; None where it reads none."""

    def refuse(name: str) -> None:
        raise ValueError(name)

    try:
        response = reply()
        return json.loads(response.read(), parse_constant=refuse) if response.status_code == 200 else None
    except (httpx.HTTPError, ValueError, RecursionError):
        return None


@dataclass
class World:
    """One server and the way to it.

    Attributes:
        environment: The name of the environment it serves.
        url: Its address; no two worlds share one, since the library keeps its state of a server.
        transport: The way to it.
        restart: Restarts the server, where that is possible.
    """

    environment: str
    url: str
    transport: BreakingTransport
    restart: Callable[[], None] | None = None
    breaks: dict[str, Break] = field(default_factory=lambda: dict(BREAKS))

    @property
    def pool(self) -> inside.LeasePool:
        """The library's state of the server."""
        return inside.pool_at(self.environment, self.url)


_numbers = itertools.count()


def _fake_world(environment: str, server: FakeTextCraft) -> World:
    host = f"world-{next(_numbers)}.test"
    transport = BreakingTransport(server, host, frees=agentgym_gym.find(environment).wire.closes)

    def restart() -> None:
        server.restart()
        transport.forget()
        inside.given_up(f"http://{host}").clear()

    return World(environment, f"http://{host}", transport, restart)


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    inside.retry_at_once(monkeypatch)
    inside.note_given_up(monkeypatch)
    inside.never_open_circuits(monkeypatch)  # tests/_leasing is of those


@pytest.fixture
def new_world() -> Callable[[], World]:
    """Return what makes a world with a fake TextCraft server."""
    return lambda: _fake_world("TextCraft", FakeTextCraft())


class _NoCloseWire(TextCraftWire):
    closes = False


@pytest.fixture
def new_world_without_close(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], World]]:
    """Return what makes a world whose server frees nothing and fails with HTTP 500, as eight of them do."""
    environment = replace(TEXTCRAFT, name="TextCraftWithoutClose", wire=_NoCloseWire())
    inside.forget_registrations(monkeypatch)
    catalogue.register(environment)
    yield lambda: _fake_world(environment.name, FakeWithoutClose())
    for each in environment.ids:
        del gymnasium.registry[each]


@pytest.fixture
def new_real_world(textcraft_url: str) -> Iterator[Callable[[], World]]:
    """Return what makes a world with the local TextCraft server, behind another name each time."""
    server = Elsewhere(textcraft_url)

    def made() -> World:
        host = f"world-{next(_numbers)}.test"
        # Others are on that server too, and environment 0 may be theirs.
        breaks = {name: broken for name, broken in BREAKS.items() if name != "id 0"}
        return World("TextCraft", f"http://{host}", BreakingTransport(server, host), breaks=breaks)

    yield made
    server.close()
