"""A server whose replies show which steps it has played, and which fails at a chosen request."""

from __future__ import annotations

import itertools
import socket
import struct
import threading
import time
from collections.abc import Callable

from fake_server import Answer, Connection, FakeServer, Request, as_json

WIN = 3
"""Steps to the end of a task."""

ACTION = "Action: inventory"


class GameServer(FakeServer):
    """Counting games on the wire of TextCraft, which can close environments, or of Maze, which cannot.

    The observation names the task and the number of the step, and the step `WIN` pays 1. So a step that was
    played twice, or in another client's environment, shows in the next observation.

    Args:
        closes: Whether it has the wire of TextCraft.

    Attributes:
        open: The environments that were created and not closed: id, task and number of steps.
        most: The most environments that were open at a time.
        unknown: Environments whose id no client received, because the reply to their creation was cut off.
        fault: Called with a function that plays a request; returns the answer to send. None for no fault.
    """

    def __init__(self, *, closes: bool = True) -> None:
        self.closes = closes
        self.open: dict[int, list[int]] = {}
        self.most = 0
        self.unknown: set[int] = set()
        self.fault: Callable[[Callable[[], Answer]], Answer] | None = None
        self._ids = itertools.count()
        self._life = 0
        self._lock = threading.Lock()
        super().__init__(self._answer)

    @property
    def environment(self) -> str:
        """The environment that it serves."""
        return "TextCraft" if self.closes else "Maze"

    @property
    def action(self) -> str:
        """A reply that is a step."""
        return ACTION if self.closes else "Action: move up"

    def restart(self) -> None:
        """Lose all environments and end all connections, as a new process of the server does."""
        with self._lock:
            self._life += 1
            self.open.clear()
        for connected in list(self._open):
            reset(connected)

    def _serve(self, connected: socket.socket) -> None:
        vars(threading.current_thread())["life"] = self._life
        super()._serve(connected)

    def _answer(self, request: Request) -> Answer:
        fault = self.fault

        def play() -> Answer:
            with self._lock:
                if vars(threading.current_thread())["life"] != self._life:
                    raise ConnectionAbortedError  # a request to the server that is gone
                return self._play(request.path.removeprefix("/maze"), request)

        if fault is None:
            return play()
        before = set(self.open)
        answer = fault(play)
        if callable(answer) and getattr(answer, "cut_off", False):
            self.unknown |= set(self.open) - before
        return answer

    def _play(self, path: str, request: Request) -> Answer:
        if path in {"/", ""}:
            return f"This is environment {'TextCraft' if self.closes else 'LMRL-Gym'}."
        if path == "/create":
            env_id = next(self._ids)
            self.open[env_id] = [-1, 0]
            self.most = max(self.most, len(self.open))
            return {"id": env_id}
        if path == "/close" and self.closes:
            return self.open.pop(request.json["id"], None) is not None
        if path not in {"/reset", "/step", "/observation"}:
            return 404, {"detail": "Not Found"}
        env_id = int(request.query.removeprefix("id=")) if request.query else request.json["id"]
        game = self.open.get(env_id)
        return {"error": "no such id"} if game is None else self._turn(path, request, game)

    def _turn(self, path: str, request: Request, game: list[int]) -> Answer:
        if path == "/observation":
            return observation(*game)
        if path == "/reset":
            game[:] = [request.json["data_idx" if self.closes else "game"], 0]
        else:
            game[1] += 1
        won = game[1] == WIN
        return {"observation": observation(*game), "reward": float(won), "done": won}


def observation(task: int, step: int) -> str:
    """Return the observation of a task after a number of steps."""
    return f"Goal: craft t{task}. Step {step}."


def reset(connected: socket.socket) -> None:
    """Close a connection by RST, so that the other end notices at once."""
    try:
        connected.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass


def lost_before(play: Callable[[], Answer]) -> Answer:
    """Close the connection before the request is played."""
    return lambda connection: connection.hang_up()


def lost_after(play: Callable[[], Answer]) -> Answer:
    """Play the request and close the connection before the reply."""
    play()
    return CutOff(b"")


def lost_within(play: Callable[[], Answer]) -> Answer:
    """Play the request, and close the connection in the middle of the reply."""
    return CutOff(_bytes(play())[:-5])


class CutOff:
    """An answer that ends in the middle.

    Args:
        sent: The bytes before the end of the connection.
    """

    cut_off = True

    def __init__(self, sent: bytes) -> None:
        self._sent = sent

    def __call__(self, connection: Connection) -> None:
        connection.send(self._sent)
        connection.hang_up()


def error_500(play: Callable[[], Answer]) -> Answer:
    """Fail without playing."""
    return 500, "Internal Server Error"


def unavailable(play: Callable[[], Answer]) -> Answer:
    """Refuse the request before it is played, as a gateway does."""
    return 503, "no upstream"


def too_late(play: Callable[[], Answer]) -> Answer:
    """Play the request, and answer after the time limit of the tests."""
    answer = _bytes(play())

    def late(connection: Connection) -> None:
        connection.wait(LATE)
        connection.send(answer)

    return late


def in_two_parts(play: Callable[[], Answer]) -> Answer:
    """Answer in two parts with a pause between."""
    whole = _bytes(play())

    def answer(connection: Connection) -> None:
        connection.send(whole[:20])
        time.sleep(0.01)
        connection.send(whole[20:])

    return answer


LATE = 1.0
"""Seconds of a reply that comes too late."""

FAULTS: dict[str, Callable[[Callable[[], Answer]], Answer]] = {
    "lost before": lost_before,
    "lost after": lost_after,
    "lost within": lost_within,
    "500": error_500,
    "503": unavailable,
    "late": too_late,
    "in parts": in_two_parts,
}
"""The faults of one request."""


def _bytes(answer: Answer) -> bytes:
    return as_json(answer[1], answer[0]) if isinstance(answer, tuple) else as_json(answer)
