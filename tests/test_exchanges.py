"""All kinds of clients against servers that misbehave, over real sockets. Their content: tests/bad_input."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import gzip
import itertools
import os
import socket
import ssl
import sys
import textwrap
import threading
import time
import zlib

import httpx
import pytest
import trustme

import by_hand
import inside
import programs
from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.calls import Call
from awaited_env import Awaited
from by_hand import ask
from clock import wait_until
from fake_server import FakeServer, dripping, hang_up, http, in_turn, never, then_hang_up


def say(*parts):
    """Return an answer in these parts."""
    return lambda connection: connection.send(*parts)


drip = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" ")
drip_headers = dripping(b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n")
continue_for_ever = dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")


GOOD = say(http(b'{"observation": "x"}'))


class Relay(by_hand.HandWire):
    """A wire whose step is a flow of the test."""

    closes = False
    repeats_ids = False
    flow = None

    def step(self, env_id, action):
        Relay.result = yield from Relay.flow
        return by_hand.Outcome("on", 0.0, done=False)


class Scripted(FakeServer):
    """A server of the wire above, whose answers to ``/it`` come from a script.

    Attributes:
        asked: The requests for ``/it``.
    """

    def __init__(self, *script, **options):
        self._script, self._ids = in_turn(*script), itertools.count()
        super().__init__(self._answer, **options)

    @property
    def asked(self):
        return [request for request in self.requests if request.path == "/it"]

    def _answer(self, request):
        usual = {"/": by_hand.GREETING, "/reset": by_hand.SEEN}
        if request.path == "/create":
            return {"id": next(self._ids)}
        return usual[request.path] if request.path in usual else self._script(request)


NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # or httpx would read all certificates for each client


class Driver:
    """Runs flows on a server by the steps of an environment, which was reset before each.

    Args:
        kind: The class of the environment, and the client that it is given.
        url: The URL of the server.
        timeout: Seconds for a reply to ``/it``.
        options: Other options of the environment.
    """

    def __init__(self, kind, url, timeout=60.0, **options):
        kind, client = kind
        limits = timeout if isinstance(timeout, dict) else {"step": timeout}
        clients = {} if client is None else {"http_client": lambda: client(trust_env=False, verify=NO_TLS)}
        self.env = kind("Hand", server=url, on_fault="raise", timeout=limits, **clients, **options)

    def run(self, flow):
        self.env.reset(seed=0)
        Relay.flow = flow
        self.env.step("inventory")
        return Relay.result

    @property
    def stats(self):
        return getattr(self.env, "_env", self.env).stats


KINDS = {
    "sync": (AgentGymEnv, None),
    "awaited": (Awaited, None),
    "httpx": (AgentGymEnv, httpx.Client),
    "httpx, awaited": (Awaited, httpx.AsyncClient),
}
"""Environments, and the class of the client that they are given."""

ENGINE, CLIENTS = ["sync", "awaited"], ["httpx", "httpx, awaited"]


@pytest.fixture(params=ENGINE)
def driver_of(request):
    return KINDS[request.param]


everywhere = pytest.mark.parametrize("driver_of", [*ENGINE, *CLIENTS], indirect=True)


@pytest.fixture(autouse=True)
def _environment(monkeypatch):
    inside.retry_at_once(monkeypatch)
    by_hand.register(by_hand.make(Relay()), monkeypatch)


@pytest.fixture
def serve(started, driver_of):
    drivers = []

    def start(*script, **options):
        server = started(Scripted(*script))
        drivers.append(Driver(driver_of, server.url, **options))
        return server, drivers[-1]

    yield start
    for driver in drivers:
        driver.env.close()


def call(stage="step"):
    return ask(Call(stage, "POST", "/it", {"id": 0, "action": "ø\ud800"}))


def test_one_connection_is_kept(serve):
    server, driver = serve(GOOD)
    for _ in range(5):
        assert driver.run(call()).text("observation") == "x"
    assert server.connections == 1
    assert server.asked[0].raw.endswith(b'{"id": 0, "action": "\\u00f8\\ud800"}')


ON_THE_WIRE = [
    (say(http(b"junk", "200 OK", "Content-Encoding: gzip")), errors.BadReply),
    (then_hang_up(b"not http at all\r\n\r\n"), errors.ConnectionLost),
    (hang_up, errors.ConnectionLost),
]
IN_THE_BODY = [  # which is read alike by any client
    (say(http(b"{}", "422 Unprocessable")), errors.ServerError),
    (say(http(b"")), errors.BadReply),
    (say(http(b"[" * 100_000)), errors.BadReply),
    (say(http(b'["observation"]')), errors.BadReply),
    (say(http(b'{"error": ""}')), errors.EnvironmentFailed),
]
LATE = [(never, errors.ServerTimeout), (drip, errors.ServerTimeout)]


@pytest.mark.parametrize(
    ("driver_of", "answer", "fault"),
    [
        *((kind, *row) for row in ON_THE_WIRE for kind in KINDS),
        *((kind, *row) for row in IN_THE_BODY for kind in ("sync", "httpx, awaited")),
        *(pytest.param(kind, *row, marks=pytest.mark.slow) for row in LATE for kind in KINDS),
    ],
    indirect=["driver_of"],
)
def test_each_way_to_fail_is_a_fault_and_a_step_is_sent_once(serve, answer, fault):
    late = fault is errors.ServerTimeout
    server, driver = serve(answer, GOOD, timeout={"step": 0.5 if late else 60.0})
    with pytest.raises(fault) as caught:
        driver.run(call()).text("observation")
    assert "/it" in str(caught.value)
    wait_until(lambda: server.asked)  # on a busy machine after the time limit
    assert len(server.asked) == 1
    following = call("reset" if late else "step")  # which may take its time, and is not disturbed
    assert driver.run(following).text("observation") == "x"


SAID = b'{"observation": "x"}'


@everywhere
@pytest.mark.parametrize(
    "answer",
    [
        then_hang_up(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + SAID),
        then_hang_up(b"HTTP/1.0 200 OK\r\n\r\n" + SAID),
        say(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n14\r\n" + SAID + b"\r\n0\r\n\r\n"),
        say(b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n", http(SAID)),
        say(http(gzip.compress(SAID), "200 OK", "Content-Encoding: gzip")),
        say(http(zlib.compress(SAID), "200 OK", "Content-Encoding: Deflate")),
        say(http(SAID, "200 OK", "Content-Encoding: identity")),
        say(*(bytes([byte]) for byte in http(SAID))),
    ],
    ids=["to the end", "1.0", "chunked", "interim", "gzip", "deflate", "identity", "byte by byte"],
)
def test_each_way_in_which_a_reply_may_come(serve, answer):
    server, driver = serve(answer, GOOD)
    assert driver.run(call()).text("observation") == "x"
    assert driver.run(call()).text("observation") == "x"
    assert len(server.asked) == 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br, gzip"])
def test_bodies_that_decompress_to_too_much_or_not_at_all_are_bad_replies(serve, monkeypatch, encoding):
    inside.limit_replies(monkeypatch, 1000)
    packed = (gzip if encoding == "gzip" else zlib).compress(b" " * 100_000)
    _server, driver = serve(say(http(packed, "200 OK", f"Content-Encoding: {encoding}")))
    with pytest.raises(errors.BadReply, match=r"1000 bytes|encoding"):
        driver.run(call())


@pytest.mark.slow  # it waits
@pytest.mark.parametrize(
    ("answer", "stage"),
    [(drip, "step"), (drip_headers, "step"), (continue_for_ever, "step"), (drip, "observe")],
)
def test_no_server_can_stretch_the_time_limit(serve, answer, stage):
    server, driver = serve(answer, timeout={"step": 0.3, "reset": 1.5})
    began = time.monotonic()
    with pytest.raises(errors.ServerTimeout):
        driver.run(call(stage))
    assert time.monotonic() - began < 10  # each of these would go on for twenty seconds
    wait_until(lambda: server.asked)  # on a busy machine after the time limit
    assert len(server.asked) == 1


@pytest.mark.parametrize("driver_of", CLIENTS, indirect=True)
def test_a_client_that_was_handed_in_keeps_to_the_time_limit_of_a_body(serve):
    _server, driver = serve(drip, timeout=0.3)
    with pytest.raises(errors.ServerTimeout):
        driver.run(call())


def test_an_idle_connection_is_kept_until_the_server_closes_it(serve):
    """The thread of the event loop does nothing meanwhile, so that only the socket shows it."""
    server, driver = serve(GOOD, GOOD, then_hang_up(http(SAID)), GOOD)
    driver.run(call())
    time.sleep(0.1)
    driver.run(call())
    assert server.connections == 1
    driver.run(call())
    wait_until(lambda: server.open_connections == 0)
    assert driver.run(call()).text("observation") == "x"
    assert (server.connections, len(server.asked)) == (2, 4)


def test_bytes_on_an_idle_connection_are_not_read_as_a_reply(serve):
    replied, sent = threading.Event(), threading.Event()

    def late(connection):
        connection.send(http(SAID))
        replied.wait(30)
        connection.send(http(b'{"observation": "stale"}'))
        sent.set()

    server, driver = serve(late, GOOD)
    driver.run(call())
    replied.set()
    assert sent.wait(30)
    assert driver.run(call()).text("observation") == "x"
    assert server.connections == 2


def test_bytes_after_a_reply_are_not_read_as_the_next(serve):
    server, driver = serve(say(http(b'{"observation": "x"}') + http(b'{"observation": "stale"}')), GOOD)
    assert driver.run(call()).text("observation") == "x"
    assert driver.run(call()).text("observation") == "x"
    assert server.connections == driver.stats.connections == 2


@pytest.mark.slow
def test_https(monkeypatch, tmp_path, driver_of, started):
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = started(Scripted(GOOD, drip, tls=served))
    stranger = Driver(driver_of, server.url)
    with pytest.raises(errors.ServerUnreachable, match="certificate"):
        stranger.run(call())
    stranger.env.close()
    inside.forget_certificates()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    driver = Driver(driver_of, server.url)
    try:
        assert driver.run(call()).text("observation") == "x"
        inside.limit_times(getattr(driver.env, "_env", driver.env), step=0.3)
        with pytest.raises(errors.ServerTimeout):
            driver.run(call())
        driver.env.close()
    finally:
        inside.forget_certificates()


def test_a_user_name_in_the_url_is_sent(started, driver_of):
    server = started(Scripted(GOOD))
    driver = Driver(driver_of, server.url.replace("http://", "http://me:p%40ss@"))
    driver.run(call())
    assert all(b"authorization: basic bwu6cebzcw==" in request.raw.lower() for request in server.requests)
    driver.env.close()


FORKS = """
    import os, sys
    from agentgym_gym import AgentGymEnv

    env = AgentGymEnv("TextCraft", server=sys.argv[1])
    env.reset(seed=0)
    child = os.fork()
    if child == 0:
        env.reset(seed=0)
        env.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    assert "fault" not in env.step("Action: inventory")[4]
    env.close()
"""


@pytest.mark.slow  # a separate program
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_forked_child_does_not_use_its_parents_connection(counted):
    server = counted()
    ended = programs.run([sys.executable, "-c", textwrap.dedent(FORKS), server.url], timeout=120)
    assert ended.returncode == 0
    assert server.connections == 2  # the parent's, still in use, and the child's own
    assert server.open == set()


def test_a_reply_that_is_too_large_is_not_read_to_its_end(serve, monkeypatch):
    inside.limit_replies(monkeypatch, 1000)
    _server, driver = serve(say(http(b" " * 5000)))
    with pytest.raises(errors.BadReply, match="1000 bytes"):
        driver.run(call())


def test_no_server_at_the_address(serve):
    server, driver = serve(GOOD)
    server.stop()
    with pytest.raises(errors.ServerUnreachable, match="could not connect"):
        driver.run(call())


@pytest.mark.parametrize(
    ("stage", "answer", "requests"),
    [
        ("identify", hang_up, 3),
        ("reset", hang_up, 3),
        ("observe", hang_up, 3),
        ("create", hang_up, 1),
        ("step", hang_up, 1),
        ("reset", say(http(b"junk")), 1),
    ],
)
def test_retried_requests(serve, stage, answer, requests):
    server, driver = serve(answer)
    with pytest.raises(errors.Fault):
        driver.run(call(stage))
    assert len(server.asked) == requests


@pytest.mark.parametrize(
    ("code", "stage", "retries"),
    [
        (errno.ECONNREFUSED, "identify", 2),
        (errno.ECONNREFUSED, "create", 2),
        (errno.ECONNREFUSED, "reset", 0),
        (errno.ECONNREFUSED, "step", 0),
        (errno.ENETUNREACH, "step", 2),
    ],
)
def test_requests_that_cannot_be_sent_are_retried(serve, monkeypatch, stage, code, retries):
    def refuse(*_args):
        raise OSError(code, os.strerror(code))

    server, driver = serve(then_hang_up(http(b"{}")), GOOD)

    def flow():
        yield Call("observe", "POST", "/it", {})
        wait_until(lambda: server.open_connections == 0)
        monkeypatch.setattr(socket.socket, "connect_ex", lambda *_args: code)
        monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", refuse)
        yield Call(stage, "POST", "/it", {})

    with pytest.raises(errors.ServerUnreachable):
        driver.run(flow())
    assert driver.stats.retries == retries


@pytest.mark.parametrize("first", [hang_up, say(http(b"", "500 Oops"))])
def test_a_close_that_failed_is_sent_again_or_the_environment_would_stay(serve, first):
    server, driver = serve(first, GOOD)
    driver.run(call("close"))
    assert len(server.asked) == 2


def test_unavailable_is_tried_again_for_it_was_not_processed(serve):
    server, driver = serve(say(http(b"", "503 Service Unavailable")), GOOD)
    assert driver.run(call()).text("observation") == "x"
    assert len(server.asked) == 2


def test_unavailable_for_good_is_a_fault(serve):
    server, driver = serve(say(http(b"", "503 Service Unavailable")))
    with pytest.raises(errors.ServerError, match="503"):
        driver.run(call())
    assert len(server.asked) == 3


@pytest.mark.parametrize(
    ("driver_of", "status", "stage"),
    [
        pytest.param("sync", "429 Too Many Requests", "create", marks=pytest.mark.slow),
        pytest.param("awaited", "503 Service Unavailable", "create", marks=pytest.mark.slow),
        ("sync", "503 Service Unavailable", "step"),
        ("awaited", "429 Too Many Requests", "step"),
        pytest.param("sync", "429 Too Many Requests", "close", marks=pytest.mark.slow),
        pytest.param("awaited", "429 Too Many Requests", "close", marks=pytest.mark.slow),
        pytest.param("httpx", "429 Too Many Requests", "step", marks=pytest.mark.slow),
        pytest.param("httpx, awaited", "503 Service Unavailable", "step", marks=pytest.mark.slow),
    ],
    indirect=["driver_of"],
)
def test_the_retry_after_header_is_obeyed(serve, status, stage):
    server, driver = serve(*[say(http(b"", status, "Retry-After: 1"))], GOOD)
    began = time.monotonic()
    driver.run(call(stage))
    assert (len(server.asked), driver.stats.retries) == (2, 1)
    assert time.monotonic() - began > 0.9


def test_a_reply_that_sets_a_wait_is_retried_until_the_time_is_up(serve):
    busy = say(http(b"", "429 Too Many Requests", "Retry-After: 0"))
    server, driver = serve(*[busy] * 9, GOOD, timeout=5)
    assert driver.run(call()).text("observation") == "x"
    assert len(server.asked) == 10


@pytest.mark.parametrize(
    ("header", "status", "requests"),
    [
        ("61", 429, 1),  # beyond the time limit: there is no wait
        ("9" * 40, 503, 1),
        ("Fri, 31 Dec 2100 23:59:59 GMT", 429, 1),
        (" 0 ", 429, 5),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 429, 5),
        ("", 429, 3),  # no wait is asked for
        ("soon", 429, 3),
        ("-1", 429, 3),
        ("1.5", 503, 3),
    ],
)
def test_the_wait_that_a_reply_sets(serve, header, status, requests):
    busy = say(http(b"", f"{status} Busy", f"Retry-After: {header}"))
    server, driver = serve(*[busy] * 4, GOOD)
    if requests == 5:
        driver.run(call())
    else:
        with pytest.raises(errors.ServerError, match=str(status)):
            driver.run(call())
    assert len(server.asked) == requests


@everywhere
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "407 Proxy Authentication Required"])
def test_a_server_that_requires_credentials_is_named_as_that(serve, status):
    server, driver = serve(say(http(b"", status)))
    for stage, kind in (
        ("identify", errors.AccessDenied),
        ("create", errors.AccessDenied),
        ("step", errors.ServerError),
    ):
        with pytest.raises(kind, match=rf"{status[:3]}.*credentials.*headers"):
            driver.run(call(stage))
    assert len(server.asked) == 3


HEADERS = {"Authorization": "Bearer s3cret", "accept": "text/x", "X-A": "b"}


@everywhere
def test_headers_of_the_user_are_sent_with_every_request(serve, driver_of):
    server, driver = serve(GOOD, headers=HEADERS)
    driver.run(call())
    also = Driver(driver_of, server.url.replace("http://", "http://me:pw@"), headers=HEADERS)
    also.run(call())
    also.env.close()
    assert len(server.asked) == 2
    for request in server.requests:
        lines = request.raw.lower().split(b"\r\n")
        assert [each for each in lines if each.startswith(b"authorization")] == [
            b"authorization: bearer s3cret"
        ]
        assert [each for each in lines if each.startswith(b"accept:")] == [b"accept: text/x"]
        assert b"x-a: b" in lines
        assert request.method == "GET" or b"content-type: application/json" in lines


@everywhere
def test_a_reply_has_its_headers(serve):
    _server, driver = serve(say(http(SAID, "200 OK", "X-Server: ours", "X-Two: a", "x-two: b")))

    def flow():
        return (yield Call("step", "POST", "/it", {}))

    reply = driver.run(flow())
    assert (reply.headers["x-server"], reply.headers["x-two"]) == ("ours", "a, b")


def names(monkeypatch, *addresses):
    """Have a name looked up as these addresses and ports."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, *_, **__: found)


def test_an_address_that_swallows_all_does_not_keep_the_next_from_being_tried(
    started, monkeypatch, driver_of
):
    server = started(Scripted(GOOD))
    port = int(server.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _ in range(3):  # after that the system drops requests for a connection
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(deaf.getsockname())
        names(monkeypatch, deaf.getsockname(), ("127.0.0.1", port))
        driver = Driver(driver_of, f"http://two-{port}.test")  # with 10 seconds to connect
        assert driver.run(call()).text("observation") == "x"
        driver.env.close()


def test_refused_only_if_each_address_refuses(started, monkeypatch, driver_of):
    server = started(Scripted(GOOD))
    server.stop()
    port = int(server.url.rpartition(":")[2])
    driver = Driver(driver_of, f"http://two-{port}.test")

    def refused():
        with pytest.raises(errors.ServerUnreachable) as caught:
            driver.run(call())
        return caught.value.refused

    names(monkeypatch, ("127.0.0.1", port), ("127.0.0.2", port))
    assert refused() is True
    names(monkeypatch, ("127.0.0.1", port), ("255.255.255.255", port))  # which no connection can be made to
    assert refused() is False

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert refused() is False
    driver.env.close()


@pytest.mark.parametrize("driver_of", CLIENTS, indirect=True)
def test_who_refused_a_client_that_was_handed_in_is_not_known(serve):
    server, driver = serve(GOOD)
    server.stop()
    with pytest.raises(errors.ServerUnreachable) as caught:
        driver.run(call())
    assert caught.value.refused is None


def test_the_connection_is_dropped_after_an_error_of_the_server(serve):
    server, driver = serve(say(http(b"", "500 Oops")), GOOD)
    with pytest.raises(errors.ServerError):
        driver.run(call())
    driver.run(call())
    assert server.connections == 2


def test_no_error_contains_a_password(started, driver_of):
    server = started(Scripted(GOOD))
    server.stop()
    driver = Driver(driver_of, server.url.replace("http://", "http://me:secret@"))
    with pytest.raises(errors.ServerUnreachable) as caught:
        driver.run(call())
    assert "secret" not in str(caught.value)
    driver.env.close()


def test_no_proxy_is_used_for_loopback_servers(serve, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test")
    _server, driver = serve(GOOD)
    assert driver.run(call()).text("observation") == "x"


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (http(b'"This is environment BabyAI."'), "BabyAI"),
        (http(b"<html>hello"), "html"),
        (http(b'{"detail": "Not Found"}', "404 Not Found"), "404"),
    ],
)
def test_another_environment_is_named(started, driver_of, answer, found):
    server = started(by_hand.HandServer())
    server.bad["/"] = answer
    driver = Driver(driver_of, server.url)
    with pytest.raises(errors.WrongServer, match=found):
        driver.run(call())
    driver.env.close()
