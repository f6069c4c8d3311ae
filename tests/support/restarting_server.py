"""A server of TextCraft's and of Maze's wire that restarts at its port, and has forgotten all then."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading
from collections import Counter
from typing import Any, NamedTuple

from agentgym_gym.wire import SERVER_HEADER
from fake_server import Answer, FakeServer, Request, as_json, http

OWNER = "x-owner"
"""The header by which the server distinguishes its clients."""

OTHER = "somebody else"


class Theft(NamedTuple):
    """A request by which one client changed the environment of another."""

    path: str
    client: str
    owner: str


class RestartingServer(FakeServer):
    """A server whose ids begin at 0 each time that it is restarted; `OTHER` is given the first ones.

    The observation of an environment names its owner and all actions in it.

    Attributes:
        asked: How often each path was asked, since the server was made.
        thefts: What was done to environments by others than their owners.
        envs: The environments, each its owner and what it shows.
        restart_at: The number of the request, from 1, at which the server restarts; 0 for none.
        moment: When it does: ``"before"`` the request is carried out, ``"unanswered"``, when it is but the
            reply is not sent, or ``"answered"``, just after the reply.
        keep_alive: Whether it keeps connections open.
        taken: How many environments the other makes at each restart.
        broken: How many requests are still answered by HTTP 500, by path.
        header: Whether its replies, but not its errors, name its process as this project's own servers do.
    """

    def __init__(self) -> None:
        self.asked: Counter[str] = Counter()
        self.thefts: list[Theft] = []
        self.envs: dict[int, tuple[str, str]] = {}
        self.restart_at = 0
        self.moment = "before"
        self.keep_alive = True
        self.taken = 4
        self.broken: Counter[str] = Counter()
        self.header = False
        self._number = 0
        self._life = 0
        self._ids = itertools.count()
        self._lock = threading.RLock()
        super().__init__(self._in_time)

    def restart(self) -> None:
        """End all connections, forget all environments, and let the other make some."""
        with self._lock:
            self._life += 1
            self.envs.clear()
            self._ids = itertools.count()
            for _ in range(self.taken):
                self.envs[next(self._ids)] = (OTHER, f"{OTHER} plays")
            self.hang_up_all()

    def hang_up_all(self) -> None:
        """End all connections."""
        for connected in list(self._open):
            with contextlib.suppress(OSError):
                connected.shutdown(socket.SHUT_RDWR)

    @property
    def others(self) -> list[str]:
        """What the environments of the other show."""
        return [shown for owner, shown in self.envs.values() if owner == OTHER]

    def _serve(self, connected: socket.socket) -> None:
        vars(threading.current_thread())["life"] = self._life
        super()._serve(connected)

    def _in_time(self, request: Request) -> Answer:
        with self._lock:
            if vars(threading.current_thread())["life"] != self._life:
                raise ConnectionAbortedError  # what was asked of the server that is gone
            self.asked[request.path] += 1
            self._number += 1
            due = self._number == self.restart_at
            if due and self.moment == "before":
                self.restart()
                return b""
            if self.broken[request.path]:
                self.broken[request.path] -= 1
                return 500, "broken"
            answer = self._answered(request)
            if due and self.moment == "unanswered":
                self.restart()
                return b""
        if self.header:
            content = as_json(answer).partition(b"\r\n\r\n")[2]
            names = f"{SERVER_HEADER}: ours", f"{SERVER_HEADER}-process: {self._life}"
            return http(content, "200 OK", "Content-Type: application/json", *names)
        if due:
            return lambda connection: (connection.send(as_json(answer)), self.restart())
        return answer if self.keep_alive else self._last(answer)

    @staticmethod
    def _last(answer: Any) -> Answer:
        content = as_json(answer).partition(b"\r\n\r\n")[2]

        def send(connection: Any) -> None:
            connection.send(http(content, "200 OK", "Content-Type: application/json", "Connection: close"))
            connection.hang_up()

        return send

    def _answered(self, request: Request) -> Any:
        path, client = request.path.removeprefix("/maze"), request.headers.get(OWNER, "")
        if path == "/":
            return "This is environment " + ("LMRL-Gym." if self.wire == "Maze" else "TextCraft.")
        if path == "/openapi.json":
            return 404, {}
        if path == "/create":
            env_id = next(self._ids)
            self.envs[env_id] = (client, "nothing")
            return {"id": env_id}
        body = request.json
        env_id = int(request.query.removeprefix("id=") or body["id"])
        if env_id in self.envs:
            return (
                self.envs[env_id][1] if path == "/observation" else self._change(path, client, env_id, body)
            )
        return {"error": f"The id {env_id} is not valid."}

    def _change(self, path: str, client: str, env_id: int, body: dict[str, Any]) -> Any:
        owner, shown = self.envs[env_id]
        if owner != client:
            self.thefts.append(Theft(path, client, owner))
        if path == "/close":
            del self.envs[env_id]
            return True
        task = body.get("data_idx", body.get("game"))
        shown = f"{client} plays {task}" if path == "/reset" else f"{shown}, {body['action']}"
        self.envs[env_id] = (owner, shown)
        return {"observation": shown, "reward": 0, "done": False}

    wire = "TextCraft"
