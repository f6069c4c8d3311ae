"""Seconds until ``agentgym eval`` reports a server that fails, and the line that it prints.

Each row starts a real fault on a real socket: the server of the model, or of the environment, is absent from
the start, or fails after some replies. ``agentgym eval`` runs in its own process, without a terminal, with
all timeouts at their defaults. The time starts with the command, or else with the fault, and ends with the
first line that names the fault, or without one after `LONGEST` seconds.

Prints JSON: for each row the seconds, the line, and whether the command ended with an error then. Run it with
``python benchmarks/failing_servers.py``.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from _common import free_port, report, usually

from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import FaultyProxy

LONGEST = usually(400.0, quick=20.0)
WARM = 20  # replies before a fault begins midway
EXIT_SECONDS = 2.0

QUOTA = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
REPLY = {
    "choices": [
        {"index": 0, "finish_reason": "stop", "message": {"content": "Thought: x\n\nAction:\ninventory"}}
    ],
    "usage": {"prompt_tokens": 10, "completion_tokens": 5},
}
PAGE = (200, b"<html><title>Sign in</title></html>")
FAULTS: dict[str, tuple[int, bytes] | None] = {
    "quota": (429, json.dumps(QUOTA).encode()),
    "page": PAGE,
    "other JSON": (200, b'{"message": "hello"}'),
    "no model": (404, b'{"error": {"message": "The model does not exist"}}'),
    "no path": (404, b"<html>Not Found</html>"),
    "no key": (401, b'{"error": {"message": "Invalid API key"}}'),
    "error": (500, b"oops"),
    "busy": (503, b'{"error": {"message": "overloaded"}}'),
    "hang": None,
}
"""Status and body of all replies of a faulty model server; None for no reply."""


class Model:
    """A model server in this process.

    Args:
        fault: The fault of all replies, a key of `FAULTS`; "" for valid replies.
    """

    def __init__(self, fault: str = "") -> None:
        self.fault, self.replies, self._over = fault, 0, threading.Event()
        model = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                self.rfile.read(int(self.headers["Content-Length"]))
                status, body = 200, json.dumps(REPLY).encode()
                if model.fault:
                    reply = FAULTS[model.fault]
                    if reply is None:
                        model._over.wait()
                        return
                    status, body = reply
                time.sleep(0.05)
                model.replies += 1
                self._send(status, body)

            def do_GET(self) -> None:
                self._send(200, b'{"data": [{"id": "other"}]}')

            def _send(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._connections: list[socket.socket] = []
        accept = self._server.get_request

        def get_request() -> tuple[socket.socket, object]:
            connection, address = accept()
            self._connections.append(connection)
            return connection, address

        self._server.handle_error = lambda *_: None  # type: ignore[method-assign] # clients are killed
        self._server.get_request = get_request  # type: ignore[method-assign] # to close them in `stop`
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def is_warm(self) -> bool:
        """Return whether the server has sent enough replies for a fault midway."""
        return self.replies > WARM

    def stop(self) -> None:
        """Close the server and its connections."""
        self._over.set()
        self._server.shutdown()
        self._server.server_close()
        for connection in self._connections:
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue


@dataclass(frozen=True)
class Case:
    """A fault.

    Attributes:
        name: The fault in words.
        arguments: The servers, as options of ``agentgym eval``.
        named: A pattern of the line that names the fault.
        begin: Starts the fault midway; None if it is there from the start.
        warm: Whether the fault may start now.
    """

    name: str
    arguments: list[str]
    named: str
    begin: Callable[[], None] | None = None
    warm: Callable[[], bool] = lambda: True


@contextmanager
def silent_address() -> Iterator[str]:
    """Yield an address that answers no connection attempt, like that of a firewall that drops packets."""
    with ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in range(4):  # fill the queue
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(listener.getsockname())
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


def model_cases(stack: ExitStack) -> Iterator[Case]:
    """Yield the faults of a model server."""

    def served(fault: str = "") -> Model:
        model = Model(fault)
        stack.callback(model.stop)
        return model

    def options(url: str) -> list[str]:
        return ["--model", "tiny", "--base-url", url]

    gone = "cannot connect|connection broke|broke off"
    yield Case("model: nothing listens", options(f"http://127.0.0.1:{free_port()}/v1"), gone)
    yield Case(
        "model: does not answer", options(f"{stack.enter_context(silent_address())}/v1"), "cannot reach"
    )
    words = {
        "quota": ("quota is used up", "out of quota"),
        "no key": ("HTTP 401", "HTTP 401"),
        "no model": ("HTTP 404", "HTTP 404, no such model"),
        "no path": ("HTTP 404", "HTTP 404, an HTML page"),
        "page": ("retrying", "HTTP 200, an HTML page"),
        "other JSON": ("retrying", "HTTP 200, other JSON"),
        "error": ("HTTP 500", "HTTP 500"),
        "busy": ("HTTP 503", "HTTP 503"),
        "hang": (r"longest|no complete reply", "no reply"),
    }
    for fault, (named, text) in words.items():
        yield Case(f"model: {text}", options(served(fault).url), named)
    for fault in ("quota", "error", "hang"):
        named, text = words[fault]
        model = served()
        begin = partial(setattr, model, "fault", fault)
        yield Case(f"model: {text}, midway", options(model.url), named, begin, model.is_warm)
    model = served()
    yield Case("model: gone midway", options(model.url), gone, model.stop, model.is_warm)


def environment_cases(stack: ExitStack) -> Iterator[Case]:
    """Yield the faults of an environment's server."""
    page = Model()
    stack.callback(page.stop)
    options = ["--agent", "random", "--server"]
    unreachable = "could not connect|no server of"
    yield Case("environment: nothing listens", [*options, f"http://127.0.0.1:{free_port()}"], unreachable)
    yield Case("environment: does not answer", [*options, stack.enter_context(silent_address())], unreachable)
    yield Case("environment: another program", [*options, page.url.removesuffix("/v1")], "no server of")
    for kind, text, named in (
        ("error", "HTTP 500, midway", "ServerError"),
        ("garble", "an HTML page, midway", "BadReply"),
        ("silent", "no reply, midway", " waits "),
    ):
        proxy = stack.enter_context(FaultyProxy(local_server(stack).start(), 0.0, kinds=(kind,)))  # type: ignore[arg-type]
        begin = partial(setattr, proxy.faults, "share", 1.0)
        yield Case(f"environment: {text}", [*options, proxy.url], named, begin)
    server = local_server(stack)
    yield Case(
        "environment: gone midway",
        [*options, server.start()],
        "ServerUnreachable|ConnectionLost",
        server.stop,
    )


def local_server(stack: ExitStack) -> LocalServer:
    """Return a server of TextCraft that the stack stops."""
    server = LocalServer("textcraft")
    stack.callback(server.stop)
    return server


def measure(case: Case) -> dict[str, object]:
    """Return the seconds until the fault was named, the line, and whether the command ended with an error."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        command = [sys.executable, "-m", "agentgym_gym", "eval", "TextCraft", *case.arguments]
        command += ["--limit", "90", "--samples", "4", "--out", str(out)]
        variables = {**os.environ, "PYTHONUNBUFFERED": "1", "COLUMNS": "1000", "OPENAI_API_KEY": "sk-none"}
        began = time.monotonic()
        run = subprocess.Popen(  # noqa: S603 - the command under test
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=variables
        )
        limit = threading.Timer(LONGEST, run.kill)
        limit.start()
        if case.begin is not None:
            episodes = out / "episodes.jsonl"
            while run.poll() is None and not (episodes.exists() and episodes.stat().st_size and case.warm()):
                time.sleep(0.01)
            began = time.monotonic()
            case.begin()
        line, seconds = "", None
        for line in run.stdout or ():
            if re.search(case.named, line):
                seconds = round(time.monotonic() - began, 1)
                break
        try:
            status = run.wait(EXIT_SECONDS)
        except subprocess.TimeoutExpired:
            status = None
        limit.cancel()
        run.kill()
        run.communicate()  # closes the pipe
    clean = re.sub(r"127\.0\.0\.1:\d+", "HOST:PORT", line.strip())
    return {"seconds": seconds, "line": clean if seconds is not None else None, "ended": status == 2}  # noqa: PLR2004


def main() -> None:
    """Measure all rows, or two with ``--quick``."""
    with ExitStack() as stack:
        cases = [*model_cases(stack), *environment_cases(stack)]
        rows = {case.name: measure(case) for case in usually(cases, quick=[cases[0], cases[-1]])}
    report(benchmark="failing_servers", cpus=os.cpu_count(), rows=rows)


if __name__ == "__main__":
    main()
