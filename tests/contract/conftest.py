"""What the contract tests share: recordings turned into calls of ours, and a server that plays them."""

from __future__ import annotations

import contextlib
import functools
import json
import threading
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qsl

import pytest

from agentgym_gym.calls import Call, Reply
from agentgym_gym.errors import ActionError, BadArguments, Fault
from fake_server import FakeServer, Request, http

OTHER_FILES = {
    "TextCraft": ["textcraft.jsonl", "textcraft_all544.jsonl.gz"],
    "TODOList": ["todo.jsonl"],
    "WebShop": ["webshop.jsonl", "webshop_cap3.jsonl"],
}

# Represent the arguments of a call; no recording has them.
ENV_ID, TASK_ID, ACTION = 987_654_321, 123_456_789, "the action itself"


NOT_FOUND: dict[str, Any] = {"status": 404, "response_json": {"detail": "Not Found"}}


def said(row: dict[str, Any]) -> Any:
    """Return the JSON value of a recorded reply."""
    return row["response_text"] if row.get("response_json") is None else row["response_json"]


def content_of(row: dict[str, Any]) -> bytes:
    """Return the body of a recorded reply."""
    text = row.get("response_text")
    return json.dumps(row["response_json"]).encode() if text is None else text.encode()


def went_well(row: dict[str, Any]) -> bool:
    """Return whether an exchange is no failure: WebArena's failed resets contain ``TimeoutError``."""
    answer = row.get("response_json")
    failed = isinstance(answer, dict) and ("error" in answer or answer.get("observation") == "TimeoutError")
    return row["status"] == 200 and not failed


@dataclass(frozen=True)
class Played:
    """A recorded exchange as one of the wire's flows has played it.

    Attributes:
        flow: Which: create, reset, step or close.
        made_of: What the flow was called with, by name.
        answers: All replies that it was given, as JSON.
        result: What it returned, or the fault or refusal it raised.
    """

    flow: str
    made_of: dict[str, Any]
    answers: list[Any]
    result: Any


class Recorded:
    """The recordings of one environment's server, seen from its wire.

    Args:
        wire: The wire.
        rows: The recorded exchanges.
    """

    def __init__(self, wire: Any, rows: list[dict[str, Any]]) -> None:
        self.wire = wire
        self.rows = rows
        self._good = {(r["method"], r["path"]): r for r in rows if went_well(r)}
        self.calls = {
            name: list(self._calls(name))
            for name in ("identify", "list_envs", "create", "reset", "step", "close")
        }
        if not wire.closes:
            self.calls["close"] = []
        self.paths = {(c.method, c.path) for calls in self.calls.values() for c in calls}

    def _flow(self, name: str, env_id: int = ENV_ID, task_id: int = TASK_ID, action: str = ACTION) -> Any:
        arguments = {
            "identify": (),
            "list_envs": (),
            "create": (task_id,),
            "reset": (env_id, task_id),
            "step": (env_id, action),
            "close": (env_id,),
        }
        return getattr(self.wire, name)(*arguments[name])

    def _calls(self, name: str) -> Iterator[Call]:
        """Return the requests of a flow without failures, made of what stands for its arguments."""
        flow = self._flow(name)
        try:
            call = next(flow)
            while True:
                yield call
                row = self._good.get((call.method, call.path))
                if row is None:
                    return
                call = flow.send(Reply(call, 200, content_of(row)))
        except (StopIteration, Fault):
            return

    def play(self, row: dict[str, Any]) -> Played | str:
        """Play a recorded exchange by the flow of ours that would send it, or skip it with a reason."""
        if "raw_body" in row or not isinstance(row["json_body"], (dict, type(None))):
            return "a body that is not a JSON object"
        if (row["method"], row["path"]) not in self.paths:
            return "a route that we do not use"
        fits = False
        for name, calls in self.calls.items():
            for position, call in enumerate(calls):
                found = _arguments(call, row)
                fits |= found is not None
                for made_of in found or ():
                    played = self._play(name, made_of, position, row)
                    if played is not None:
                        return played if self._may_be_sent(played) else "an action that is never sent"
        if fits and row["json_body"].get("action") is not None and self._marks_actions():
            return "an action without the marks that ours is given"
        assert not fits, f"none of our calls is like this one: {row}"
        return "fields that are not those of the protocol"

    @functools.cached_property
    def played(self) -> list[Played | str]:
        """What `play` returns for each recorded exchange."""
        return list(map(self.play, self.rows))

    def without_faults(self) -> list[dict[str, Any]]:
        """Return the exchanges in which the environment did not fail."""
        pairs = zip(self.rows, self.played, strict=True)
        return [row for row, p in pairs if not isinstance(p, str) and not isinstance(p.result, Fault)]

    def _may_be_sent(self, played: Played) -> bool:
        try:
            self.wire.check(played.made_of.get("action", "a"))
        except BadArguments:
            return False
        return True

    def _marks_actions(self) -> bool:
        return ACTION not in (self.calls["step"][0].body or {}).values()

    def _next(self, call: Call, row: dict[str, Any]) -> dict[str, Any]:
        """Return the recorded answer to a call that followed an exchange, else to one like it."""
        key = (call.method, call.path)
        later = self.rows[self.rows.index(row) + 1 :]
        return next(
            (r for r in later if (r["method"], r["path"]) == key and went_well(r)),
            self._good.get(key, NOT_FOUND),
        )

    def _play(self, name: str, made_of: dict[str, Any], position: int, row: dict[str, Any]) -> Played | None:
        """Play a flow in which the recorded exchange is the one at a position; None if it sends another."""
        flow, answers = self._flow(name, **made_of), []
        try:
            call = next(flow)
            while True:
                here = len(answers) == position
                if here and not _same(call, row):
                    return None
                answered = row if here else self._next(call, row)
                answers.append(said(answered))
                call = flow.send(Reply(call, answered["status"], content_of(answered)))
        except StopIteration as stop:
            return Played(name, made_of, answers, stop.value)
        except (Fault, ActionError) as error:
            return Played(name, made_of, answers, error)


def _same(call: Call, row: dict[str, Any]) -> bool:
    """Return whether a call equals the recorded one, byte for byte."""
    body = None if row["json_body"] is None else json.dumps(row["json_body"]).encode()
    query = {key: str(value) for key, value in (row["query"] or {}).items()}
    return call.content == body and {k: str(v) for k, v in call.query.items()} == query


def _arguments(call: Call, row: dict[str, Any]) -> list[dict[str, Any]] | None:
    """Return what a flow must be called with to ask what was recorded; None where the fields differ."""
    if (call.method, call.path) != (row["method"], row["path"]):
        return None
    asked = {**call.query, **(call.body or {})}
    given = {**(row["query"] or {}), **(row["json_body"] or {})}
    if list(asked) != list(given) or (call.body is None) != (row["json_body"] is None):
        return None
    made_of: dict[str, Any] = {}
    actions = [ACTION]
    for key, stand_in in asked.items():
        value = given[key]
        if stand_in in (ENV_ID, TASK_ID):
            if type(value) is not int:
                return None
            made_of["env_id" if stand_in == ENV_ID else "task_id"] = value
        elif isinstance(stand_in, str) and ACTION in stand_in:
            if not isinstance(value, str):
                return None
            before, after = stand_in.split(ACTION)
            actions = [value, value.removeprefix(before).removesuffix(after)]
        elif value != stand_in:
            return None
    return [made_of if each == ACTION else {**made_of, "action": each} for each in actions]


@pytest.fixture(scope="session")
def recorded(recordings: Callable[[str], list[dict[str, Any]]]) -> Callable[[Any], Recorded]:
    """The recordings of an environment's server."""
    known: dict[str, Recorded] = {}

    def of(environment: Any) -> Recorded:
        if environment.name not in known:
            files = OTHER_FILES.get(environment.name, [f"{environment.name.lower()}.jsonl"])
            rows = [row for name in files for row in recordings(name)]
            known[environment.name] = Recorded(environment.wire, rows)
        return known[environment.name]

    return of


class ReplayServer(FakeServer):
    """A server that answers with what was recorded for the same question, else for one like it."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self._rows: dict[tuple[str, str], list[dict[str, Any]]] = {}
        for row in rows:
            if went_well(row):
                self._rows.setdefault((row["method"], row["path"]), []).append(row)
        self._created = 0
        self._lock = threading.Lock()
        super().__init__(self._answer)

    def _answer(self, request: Request) -> bytes:
        query = dict(parse_qsl(request.query))
        body = request.json if request.method == "POST" else None
        status, content = self._recorded(request.method, request.path, query, body)
        return http(content, f"{status} {HTTPStatus(status).phrase}", "Content-Type: application/json")

    def _recorded(self, method: str, path: str, query: Any, body: Any) -> tuple[int, bytes]:
        rows = self._rows.get((method, path))
        if path == "/list_envs" and rows:
            return 200, json.dumps(list(range(1, self._created + 1))).encode()
        if not rows:
            return 404, b'{"detail": "Not Found"}'
        if path.endswith("/create"):
            return 200, self._created_like(said(rows[0]))
        key = json.dumps({k: v for k, v in {**query, **(body or {})}.items() if k not in ("id", "env_idx")})
        same = [row for row in rows if json.dumps(_question(row)) == key]
        chosen = same[0] if same else rows[zlib.crc32(key.encode()) % len(rows)]
        return chosen["status"], self._named_as_asked(chosen, body or {})

    @staticmethod
    def _named_as_asked(row: dict[str, Any], body: dict[str, Any]) -> bytes:
        """Return the recorded answer with the id of the environment that was asked, if it names one."""
        answer = said(row)
        if not isinstance(answer, dict) or "id" not in answer or "id" not in body:
            return content_of(row)
        return json.dumps({**answer, "id": body["id"]}).encode()

    def _created_like(self, answer: Any) -> bytes:
        with self._lock:
            self._created += 1
            number = self._created
        if isinstance(answer, int):
            return str(number).encode()
        return json.dumps({k: number if k in ("id", "env_idx") else v for k, v in answer.items()}).encode()


def _question(row: dict[str, Any]) -> dict[str, Any]:
    asked = {**(row["query"] or {}), **(row["json_body"] or {})}
    return {k: v for k, v in asked.items() if k not in ("id", "env_idx")}


@pytest.fixture
def replay(recorded: Callable[[Any], Recorded]) -> Iterator[Callable[[Any], list[str]]]:
    """Start servers that play an environment's recordings, but no failures; returns their base URLs.

    There are several, as gymnasium's checker plays several environments and TODOList's server holds but one.
    """
    with contextlib.ExitStack() as stack:

        def start(environment: Any) -> list[str]:
            rows = recorded(environment).without_faults()
            return [stack.enter_context(ReplayServer(rows)).url for _ in range(3)]

        yield start
