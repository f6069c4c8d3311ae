"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import itertools
import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import agentgym_gym
from agentgym_gym._leasing import capacity, held
from agentgym_gym.servers.local import LocalServer


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A TextCraft server of one test's own, which may be killed."""
    server = LocalServer("textcraft")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def textcraft_url() -> Iterator[str]:
    """Base URL of the TextCraft server that all tests share.

    A local one, stopped when the session ends, unless AGENTGYM_TEST_TEXTCRAFT_URL names another to be
    tested against, such as AgentGym's own.
    """
    other = os.environ.get("AGENTGYM_TEST_TEXTCRAFT_URL")
    if other:
        yield other
        return
    server = LocalServer("textcraft")
    yield server.start()
    server.stop()


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Base URL of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"http://127.0.0.1:{server.getsockname()[1]}"


class CountedServer:
    """A server of TextCraft's wire, over a real socket, that counts what it holds and fails when told to.

    Args:
        answers: What it answers to a path, to be another kind of server; all else is then 404.

    Attributes:
        url: Its base URL.
        open: The ids of the environments that were made and not closed.
        most: The most that were open at a time.
        asked: How often each path was asked.
        broken: Paths that are answered by HTTP 500.
        vanish_at: A path that is answered by the end of the connection.
        held_up: Paths that are not answered before `let_go` is set.
    """

    def __init__(self, answers: dict[str, Any] | None = None) -> None:
        self.open: set[int] = set()
        self._answers = answers
        self.most = 0
        self.asked: dict[str, int] = {}
        self.broken: set[str] = set()
        self.vanish_at: str | None = None
        self.held_up: set[str] = set()
        self.arrived, self.let_go = threading.Event(), threading.Event()
        self._ids = itertools.count()
        self._lock = threading.Lock()
        counted = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or "{}")
                status, answer = counted._answer(self.path.partition("?")[0], body)
                content = json.dumps(answer).encode()
                if self.path == counted.vanish_at:
                    self.close_connection = True
                    return
                with contextlib.suppress(OSError):  # nobody may be waiting any more
                    self.send_response(status)
                    self.send_header("Content-Length", str(len(content)))
                    self.end_headers()
                    self.wfile.write(content)

            do_GET = do_POST  # noqa: N815 - the names are http.server's

            def log_message(self, *_: Any) -> None:
                pass

        class Server(ThreadingHTTPServer):
            daemon_threads = True
            request_queue_size = 128

        self._server = Server(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()

    def stop(self) -> None:
        self.let_go.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()

    def _answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        with self._lock:
            self.asked[path] = self.asked.get(path, 0) + 1
        if path in self.held_up:
            self.arrived.set()
            self.let_go.wait(60)
        if self._answers is not None:
            return (200, self._answers[path]) if path in self._answers else (404, {"detail": "Not Found"})
        with self._lock:
            if path in self.broken:
                return 500, "broken"
            if path == "/create":
                env_id = next(self._ids)
                self.open.add(env_id)
                self.most = max(self.most, len(self.open))
                return 200, {"id": env_id}
            if path == "/close":
                known = body["id"] in self.open
                self.open.discard(body["id"])
                return 200, known
            if path in {"/reset", "/step"} and body["id"] in self.open:
                return 200, {"observation": "Goal: craft x.", "reward": 0, "done": False}
        return 200, "This is environment TextCraft." if path == "/" else {"error": "no such id"}


@pytest.fixture
def counted() -> Iterator[Callable[..., CountedServer]]:
    """Starts servers that count what they hold."""
    started: list[CountedServer] = []

    def start(answers: dict[str, Any] | None = None) -> CountedServer:
        started.append(CountedServer(answers))
        return started[-1]

    yield start
    for server in started:
        server.stop()


@pytest.fixture
def interrupted_at() -> Callable[[int, Callable[[], object]], bool]:
    """Runs something, with a Ctrl-C at the n-th line of Python that it executes; returns whether it came."""

    def run(number: int, work: Callable[[], object]) -> bool:
        left = number

        def trace(frame: FrameType, event: str, argument: object) -> Any:
            nonlocal left
            left -= event == "line"
            if event == "line" and not left:
                raise KeyboardInterrupt
            return trace

        before = sys.gettrace()
        sys.settrace(trace)
        try:
            work()
        except KeyboardInterrupt:
            return True
        finally:
            sys.settrace(before)
        return False

    return run


@pytest.fixture
def report_at_end(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes a line that is printed when all tests have run, also where they ran in several processes."""
    return lambda line: record_property("report_at_end", line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        line
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for name, line in report.user_properties
        if name == "report_at_end" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in sorted(lines):
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep servers that the developer has configured out of the tests."""
    for environment in agentgym_gym.environments():
        monkeypatch.delenv(environment.variable, raising=False)


@pytest.fixture(autouse=True)
def _slots_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Keep the slots of servers apart, as those of different tests may have one address."""
    folder = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]  # not `tmp_path`, which is made
    monkeypatch.setattr(capacity, "FOLDER", tmp_path_factory.getbasetemp() / "slots" / folder)
    yield
    held._leave_all()


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], list[dict[str, Any]]]:
    """Exchanges recorded from AgentGym's own servers, by file name.

    They are not part of this repository: they are looked for in the folder that AGENTGYM_WIRE names, else in
    ``shared/wire`` beside the checkout, and a test that wants them is skipped where they are absent.
    """
    beside = Path(__file__).resolve().parents[2] / "shared" / "wire"
    folder = Path(os.environ.get("AGENTGYM_WIRE") or beside)

    def read(name: str) -> list[dict[str, Any]]:
        file = folder / name
        if not file.is_file():
            pytest.skip(f"no recording {file}; AGENTGYM_WIRE can name the folder that holds it")
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            return [json.loads(line) for line in lines]

    return read
