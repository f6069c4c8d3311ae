"""Unfinished requests: a local server cuts them after a time, and the oldest beyond a number or a size."""

from __future__ import annotations

import json
import re
import select
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator

import httpx
import pytest

import programs
from agentgym_servers._frame.request_limits import INCOMING_LIMITS
from clock import wait_until

pytestmark = pytest.mark.slow

PROGRAM = textwrap.dedent(
    """
    import json, sys, time
    from agentgym_gym.local_servers import server_kind
    from agentgym_servers._frame.listening import listen, run_until_stopped
    from agentgym_servers._frame.request_limits import IncomingLimits

    app = server_kind("textcraft").app()

    async def slow(scope, receive, send):
        if scope["path"] == "/blocked":
            time.sleep(3)
        if scope["path"] == "/slow":
            import asyncio
            await asyncio.sleep(3)
        path = "/" if scope["path"] in ("/blocked", "/slow") else scope["path"]
        await app({**scope, "path": path}, receive, send)

    given = json.loads(sys.argv[1])
    files = given.pop("files", None)
    if files is not None:
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    limits = IncomingLimits(**given)
    with listen("127.0.0.1", 0) as listener:
        run_until_stopped(slow, listener, title="x", exit_with_parent=True, limits=limits)
    """
)

HALF_HEAD = b"POST /create HTTP/1.1\r\nHost: 127.0.0.1\r\nConte"
GET = b"GET %s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def half_body(size: int, sent: int) -> bytes:
    head = f"POST /create HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: {size}\r\n\r\n"
    return head.encode() + b" " * sent


@pytest.fixture
def serve() -> Iterator[Callable[..., int]]:
    """Starts a server with the given limits; returns its port."""
    started = []

    def start(**limits: float) -> int:
        process = subprocess.Popen(
            [sys.executable, "-c", PROGRAM, json.dumps(limits)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=programs.environment(),
        )
        started.append(process)
        return int(process.stdout.readline().rpartition(":")[2])

    yield start
    for process in started:
        process.kill()
        process.communicate()


@pytest.fixture
def connect() -> Iterator[Callable[..., socket.socket]]:
    opened = []

    def connection(port: int, content: bytes = b"") -> socket.socket:
        opened.append(socket.create_connection(("127.0.0.1", port), timeout=30))
        opened[-1].sendall(content)
        return opened[-1]

    yield connection
    for each in opened:
        each.close()


def rest(connection: socket.socket) -> bytes:
    """Return everything up to the end of a connection."""
    content = b""
    try:
        while chunk := connection.recv(65536):
            content += chunk
    except ConnectionResetError:
        pass
    return content


def is_open(connection: socket.socket) -> bool:
    connection.setblocking(False)
    try:
        return connection.recv(1, socket.MSG_PEEK) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False
    finally:
        connection.settimeout(30)


def one_reply(connection: socket.socket) -> bytes:
    """Return one response whole."""
    content = b""
    while (size := re.search(rb"(?is)content-length: (\d+)\r\n.*?\r\n\r\n", content)) is None or (
        len(content) < size.end() + int(size[1])
    ):
        chunk = connection.recv(65536)
        assert chunk, content
        content += chunk
    return content


def status(content: bytes) -> int:
    return int(content.split()[1])


def test_half_a_request_ends_after_its_time_and_others_are_served_meanwhile(serve, connect):
    port = serve(head_seconds=2, body_seconds=3)
    began = time.monotonic()
    heads = [connect(port, HALF_HEAD) for _ in range(500)]
    silent = [connect(port) for _ in range(20)]
    bodies = [connect(port, half_body(2**20, 50_000)) for _ in range(60)]
    assert httpx.get(f"http://127.0.0.1:{port}").status_code == 200
    assert {status(rest(each)) for each in [*heads, *silent]} == {408}
    assert {status(rest(each)) for each in bodies} == {408}
    assert time.monotonic() - began > 2.9
    assert httpx.get(f"http://127.0.0.1:{port}").status_code == 200


def test_bytes_that_trickle_in_do_not_prolong_the_time(serve, connect):
    connection = connect(serve(head_seconds=1), b"GET / HTTP/1.1\r\n")
    deadline = time.monotonic() + 20
    while not select.select([connection], [], [], 0.1)[0] and time.monotonic() < deadline:
        connection.sendall(b"a: b\r\n")
    assert status(rest(connection)) == 408


def test_the_oldest_are_cut_beyond_the_number(serve, connect):
    port = serve(max_unfinished=100)
    first = [connect(port, HALF_HEAD) for _ in range(100)]
    assert httpx.get(f"http://127.0.0.1:{port}").status_code == 200  # so all of `first` have arrived
    assert all(map(is_open, first))
    more = [connect(port, HALF_HEAD) for _ in range(30)]
    assert [status(rest(each)) for each in first[:30]] == [503] * 30
    assert httpx.get(f"http://127.0.0.1:{port}").status_code == 200
    assert all(map(is_open, [*first[30:], *more]))


def test_the_oldest_are_cut_beyond_the_size(serve, connect):
    port = serve(max_unfinished_bytes=10 * 2**20)
    bodies = [connect(port, half_body(2**20, 2**20 - 1)) for _ in range(30)]
    assert [status(rest(each)) for each in bodies[:20]] == [503] * 20
    last = bodies[-1]
    last.sendall(b" ")
    assert status(one_reply(last)) == 422  # its body is no JSON, but it was read to its end


def test_a_head_without_end_is_refused(serve, connect):
    connection = connect(serve(), b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\na: " + b"x" * 70_000)
    assert status(rest(connection)) == 431


def test_an_idle_connection_stays_and_an_unfinished_request_on_it_does_not(serve, connect):
    connection = connect(serve(head_seconds=0.5), GET % b"/")
    assert status(one_reply(connection)) == 200
    time.sleep(1.5)
    connection.sendall(GET % b"/")
    assert status(one_reply(connection)) == 200
    connection.sendall(HALF_HEAD)
    assert status(rest(connection)) == 408


def test_a_request_in_progress_is_not_cut_for_the_half_one_after_it(serve, connect):
    connection = connect(serve(head_seconds=0.5), GET % b"/slow" + HALF_HEAD)
    content = rest(connection)
    assert content.startswith(b"HTTP/1.1 200 ")
    assert content.count(b"HTTP/1.1 408 ") == 1


def test_requests_that_came_while_the_server_was_busy_are_read(serve, connect):
    port = serve(head_seconds=1, body_seconds=1)
    waiting = connect(port, half_body(2**20, 10))
    time.sleep(0.2)
    blocked = connect(port, GET % b"/blocked")
    time.sleep(0.2)
    waiting.sendall(b" " * (2**20 - 10))
    assert status(one_reply(blocked)) == 200
    assert status(one_reply(waiting)) == 422


def test_the_limits_leave_room_for_every_honest_client():
    assert INCOMING_LIMITS.max_unfinished_bytes >= 64 * 2**20
    assert INCOMING_LIMITS.max_unfinished >= 1024
    assert INCOMING_LIMITS.head_seconds >= 20
    assert INCOMING_LIMITS.body_seconds >= 60


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such limit")
def test_more_connections_than_a_shell_allows_files(serve, connect):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard < 1000:
        pytest.skip(f"the system allows {hard} files")
    resource.setrlimit(resource.RLIMIT_NOFILE, (100, hard))  # which the server inherits
    try:
        port = serve()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    held = [connect(port, HALF_HEAD) for _ in range(300)]
    assert httpx.get(f"http://127.0.0.1:{port}").status_code == 200
    assert all(map(is_open, held))


@pytest.mark.skipif(sys.platform != "linux", reason="sets the limit of another process")
def test_a_server_without_descriptors_answers_and_serves_again(serve, connect):
    port = serve(files=100)
    idle = [connect(port, GET % b"/") for _ in range(60)]
    assert all(b" 200 OK" in each.recv(65536) for each in idle)
    began = time.monotonic()
    refused = [connect(port, GET % b"/") for _ in range(60)]  # more than the server can open
    answers = [rest(each) for each in refused if b" 200 OK" not in each.recv(65536, socket.MSG_PEEK)]
    assert time.monotonic() - began < 20
    assert len(answers) > 30
    assert all(b"503 Service Unavailable" in each and b"ulimit -n" in each for each in answers)
    for each in idle:
        each.close()
    wait_until(lambda: b" 200 OK" in connect(port, GET % b"/").recv(65536), 5)
