"""A server of TextCraft's wire that counts its environments and fails on request."""

from __future__ import annotations

import itertools
import threading
from collections import Counter
from typing import Any

from fake_server import Answer, FakeServer, Request, hang_up


class CountedServer(FakeServer):
    """A server of TextCraft's wire, over a real socket, that counts its environments and fails on request.

    Args:
        answers: What it answers to a path, to be another kind of server; all else is then 404.

    Attributes:
        open: The ids of the environments that were made and not closed.
        shown: What each environment showed last.
        most: The most that were open at a time.
        asked: How often each path was asked.
        broken: Paths that are answered by HTTP 500.
        vanish_at: A path that is answered by the end of the connection.
        held_up: Paths that are not answered before `let_go` is set.
        arrived: Set when one of those was asked.
    """

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self._answers = answers
        self.open: set[int] = set()
        self.shown: dict[int, str] = {}
        self.most = 0
        self.asked: Counter[str] = Counter()
        self.broken: set[str] = set()
        self.vanish_at: str | None = None
        self.held_up: set[str] = set()
        self.arrived, self.let_go = threading.Event(), threading.Event()
        self._ids = itertools.count()
        self._lock = threading.Lock()
        super().__init__(self._counted)

    def stop(self) -> None:
        self.let_go.set()
        super().stop()

    def _counted(self, request: Request) -> Answer:
        with self._lock:
            self.asked[request.path] += 1
        if request.path in self.held_up:
            self.arrived.set()
            self.let_go.wait(60)
        if self._answers is not None:
            return self._answers.get(request.path, (404, {"detail": "Not Found"}))
        if request.path in self.broken:
            return 500, "broken"
        with self._lock:
            answer = self._textcraft(request.path, request.json)
            if request.path == "/observation":
                env_id = int(request.query.removeprefix("id="))
                answer = self.shown[env_id] if env_id in self.open else {"error": "no such id"}
        return hang_up if request.path == self.vanish_at else answer

    def _textcraft(self, path: str, body: dict[str, Any]) -> Answer:
        if path == "/":
            return "This is environment TextCraft."
        if path == "/create":
            env_id = next(self._ids)
            self.open.add(env_id)
            self.shown[env_id] = "Goal: craft y."
            self.most = max(self.most, len(self.open))
            return {"id": env_id}
        if path == "/close":
            known = body["id"] in self.open
            self.open.discard(body["id"])
            return known
        if path in {"/reset", "/step"} and body["id"] in self.open:
            said = f"You did {body['action']}." if path == "/step" else "Goal: craft x."
            self.shown[body["id"]] = said
            return {"observation": said, "reward": 0, "done": False}
        return {"error": "no such id"}
