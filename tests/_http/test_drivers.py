"""Both drivers against servers that misbehave, over real sockets; what they say: tests/bad_input."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import os
import socket
import ssl
import threading
import time
import warnings
import zlib
from datetime import datetime, timedelta, timezone
from email.utils import format_datetime

import httpx
import pytest
import trustme

from agentgym_gym import errors
from agentgym_gym._backoff import backoff
from agentgym_gym._http import limits, retry, sockets
from agentgym_gym._http.async_driver import AsyncDriver
from agentgym_gym._http.limits import Limits
from agentgym_gym._http.retry import may_repeat, retry_after
from agentgym_gym._http.sync_driver import SyncDriver
from agentgym_gym.calls import Call, Reply, at
from agentgym_gym.wire import Wire
from by_hand import ask
from clock import wait_until
from fake_server import FakeServer, dripping, hang_up, http, in_turn, never, then_hang_up
from interrupts import PACKAGE, interrupted, points_of, run_as_asyncio, spread


def say(*parts):
    """Return an answer in so many parts."""
    return lambda connection: connection.send(*parts)


drip = dripping(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n", b" ")
drip_headers = dripping(b"HTTP/1.1 200 OK\r\n", b"X-Slow: yes\r\n")
continue_for_ever = dripping(b"", b"HTTP/1.1 100 Continue\r\n\r\n")


GOOD = say(http(b'{"observation": "x"}'))


class Awaited:
    """The asynchronous driver, called as the synchronous one is."""

    def __init__(self, **options):
        self.driver = AsyncDriver(**options)
        self.stats = self.driver.stats
        self._loop = asyncio.new_event_loop()

    def run(self, flow):
        async def run():
            try:
                return await self.driver.run(flow)
            except KeyboardInterrupt:
                self.driver.cancel()  # as the environment does
                raise

        return run_as_asyncio(self._loop, run())

    def close(self):
        self._loop.run_until_complete(self.driver.close())
        self._loop.run_until_complete(asyncio.sleep(0.02))  # asyncio closes sockets by callbacks
        self._loop.close()


def by_httpx(**options):
    """The synchronous driver with a client that was handed in."""
    return SyncDriver(http_client=lambda: httpx.Client(trust_env=False), **options)


def by_httpx_awaited(**options):
    return Awaited(http_client=lambda: httpx.AsyncClient(trust_env=False), **options)


ENGINE = [SyncDriver, Awaited]
CLIENTS = [by_httpx, by_httpx_awaited]


@pytest.fixture(params=ENGINE)
def driver_of(request):
    return request.param


everywhere = pytest.mark.parametrize("driver_of", [*ENGINE, *CLIENTS], indirect=True)


@pytest.fixture
def serve(monkeypatch, driver_of):
    monkeypatch.setattr(retry, "backoff", lambda *_: 0.0)
    servers, drivers = [], []

    def start(*script, timeout=1.0, **options):
        servers.append(FakeServer(in_turn(*script)))
        drivers.append(driver_of(limits=Limits.of(timeout), **options))
        return servers[-1], drivers[-1]

    yield start
    for driver in drivers:
        driver.close()
    for server in servers:
        server.stop()


def call(server, stage="step"):
    return at(server.url, ask(Call(stage, "POST", "/it", {"id": 0, "action": "ø\ud800"})))


def test_one_connection_is_kept(serve):
    server, driver = serve(GOOD)
    for _ in range(5):
        assert driver.run(call(server)).text("observation") == "x"
    assert server.connections == 1
    assert server.requests[0].raw.endswith(b'{"id": 0, "action": "\\u00f8\\ud800"}')


@everywhere
@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        (say(http(b"Internal Server Error", "500 Internal Server Error")), errors.ServerError),
        (say(http(b"{}", "422 Unprocessable")), errors.ServerError),
        (say(http(b"")), errors.BadReply),
        (say(http(b"[" * 100_000)), errors.BadReply),
        (say(http(b'["observation"]')), errors.BadReply),
        (say(http(b'{"error": ""}')), errors.EnvironmentFailed),
        (say(http(b"junk", "200 OK", "Content-Encoding: gzip")), errors.BadReply),
        (then_hang_up(b"not http at all\r\n\r\n"), errors.ConnectionLost),
        (hang_up, errors.ConnectionLost),
        pytest.param(never, errors.ServerTimeout, marks=pytest.mark.slow),
        pytest.param(drip, errors.ServerTimeout, marks=pytest.mark.slow),
    ],
)
def test_each_way_to_fail_is_a_fault_and_a_step_is_sent_once(serve, answer, fault):
    late = fault is errors.ServerTimeout
    server, driver = serve(answer, GOOD, timeout={"step": 1.5 if late else 60.0})
    with FakeServer(in_turn(GOOD)) as other:
        driver.run(call(other, "create"))  # the first use of httpx takes a while
    with pytest.raises(fault) as caught:
        driver.run(call(server)).text("observation")
    assert "/it" in str(caught.value)
    assert len(server.requests) == 1
    following = call(server, "reset" if late else "step")  # which may take its time, and is not disturbed
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
    server, driver = serve(answer, GOOD, timeout=10.0)  # the first use of httpx takes a while
    assert driver.run(call(server)).text("observation") == "x"
    assert driver.run(call(server)).text("observation") == "x"
    assert len(server.requests) == 2


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br, gzip"])
def test_what_unfolds_to_too_much_or_not_at_all_is_a_bad_reply(serve, monkeypatch, encoding):
    monkeypatch.setattr(limits, "MAX_REPLY_BYTES", 1000)
    packed = (gzip if encoding == "gzip" else zlib).compress(b" " * 100_000)
    server, driver = serve(say(http(packed, "200 OK", f"Content-Encoding: {encoding}")))
    with pytest.raises(errors.BadReply, match=r"1000 bytes|encoding"):
        driver.run(call(server))


@pytest.mark.slow  # it waits
@pytest.mark.parametrize("answer", [drip, drip_headers, continue_for_ever])
@pytest.mark.parametrize("stage", ["step", "reset"])
def test_no_server_can_stretch_the_time_limit(serve, answer, stage):
    server, driver = serve(answer, timeout=0.3)
    began = time.monotonic()
    with pytest.raises(errors.ServerTimeout):
        driver.run(call(server, stage))
    assert time.monotonic() - began < 10  # each of these would go on for twenty seconds
    wait_until(lambda: server.requests)  # on a busy machine after the time limit
    assert len(server.requests) == 1


@pytest.mark.parametrize("driver_of", CLIENTS, indirect=True)
def test_a_client_that_was_handed_in_keeps_to_the_time_limit_of_a_body(serve):
    server, driver = serve(drip, timeout=0.3)
    with pytest.raises(errors.ServerTimeout):
        driver.run(call(server))


def test_an_idle_connection_is_kept_until_the_server_closes_it(serve):
    """The thread of the event loop stands still meanwhile, so that only the socket knows."""
    server, driver = serve(GOOD, GOOD, then_hang_up(http(SAID)), GOOD)
    driver.run(call(server))
    time.sleep(0.1)
    driver.run(call(server))
    assert server.connections == 1
    driver.run(call(server))
    time.sleep(0.1)
    assert driver.run(call(server)).text("observation") == "x"
    assert (server.connections, len(server.requests)) == (2, 4)


def test_what_comes_on_an_idle_connection_is_not_read_as_a_reply(serve):
    def late(connection):
        connection.send(http(SAID))
        time.sleep(0.05)
        connection.send(http(b'{"observation": "stale"}'))

    server, driver = serve(late, GOOD)
    driver.run(call(server))
    time.sleep(0.15)
    assert driver.run(call(server)).text("observation") == "x"
    assert server.connections == 2


def test_what_comes_after_a_reply_is_not_read_as_the_next(serve):
    server, driver = serve(say(http(b'{"observation": "x"}') + http(b'{"observation": "stale"}')), GOOD)
    assert driver.run(call(server)).text("observation") == "x"
    assert driver.run(call(server)).text("observation") == "x"
    assert server.connections == driver.stats.connections == 2


@pytest.mark.slow
def test_https(monkeypatch, tmp_path, driver_of):
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = FakeServer(in_turn(GOOD, drip), tls=served)
    stranger = driver_of(limits=Limits.of(10))
    with pytest.raises(errors.ServerUnreachable, match="certificate"):
        stranger.run(call(server))
    stranger.close()
    sockets.tls_context.cache_clear()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    driver = driver_of(limits=Limits.of({"create": 10, "step": 0.7}))
    assert driver.run(call(server, "create")).text("observation") == "x"
    with pytest.raises(errors.ServerTimeout):
        driver.run(call(server))
    driver.close()
    server.stop()
    sockets.tls_context.cache_clear()


def test_a_user_name_in_the_url_is_sent(serve):
    server, driver = serve(GOOD)
    url = server.url.replace("http://", "http://me:p%40ss@")
    driver.run(at(url, ask(Call("step", "POST", "/it", {}))))
    assert b"authorization: basic bwu6cebzcw==" in server.requests[0].raw.lower()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.parametrize("driver_of", [SyncDriver], indirect=True)
def test_a_forked_child_does_not_speak_on_its_parents_connection(serve):
    server, driver = serve(GOOD)
    driver.run(call(server))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # the scripted server is a thread of this process
        child = os.fork()
    if child == 0:
        driver.run(call(server))
        driver.close()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    driver.run(call(server))
    assert server.connections == 2  # the parent's, still in use, and the child's own


def test_a_reply_that_is_too_large_is_not_read_to_its_end(serve, monkeypatch):
    monkeypatch.setattr(limits, "MAX_REPLY_BYTES", 1000)
    server, driver = serve(say(http(b" " * 5000)))
    with pytest.raises(errors.BadReply, match="1000 bytes"):
        driver.run(call(server))


def test_nobody_there(serve):
    server, driver = serve(GOOD)
    server.stop()
    with pytest.raises(errors.ServerUnreachable, match="could not connect"):
        driver.run(call(server))


def test_a_lost_reset_is_sent_again(serve):
    server, driver = serve(hang_up, hang_up, GOOD)
    assert driver.run(call(server, "reset")).text("observation") == "x"
    assert len(server.requests) == 3


@pytest.mark.parametrize("first", [hang_up, say(http(b"", "500 Oops"))])
def test_a_close_that_failed_is_sent_again_or_the_environment_would_stay(serve, first):
    server, driver = serve(first, GOOD)
    driver.run(call(server, "close"))
    assert len(server.requests) == 2


def test_a_lost_create_is_not(serve):
    server, driver = serve(hang_up, GOOD)
    with pytest.raises(errors.ConnectionLost):
        driver.run(call(server, "create"))
    assert len(server.requests) == 1


def test_unavailable_is_tried_again_for_it_was_not_processed(serve):
    server, driver = serve(say(http(b"", "503 Service Unavailable")), GOOD)
    assert driver.run(call(server)).text("observation") == "x"
    assert len(server.requests) == 2


def test_unavailable_for_good_is_a_fault(serve):
    server, driver = serve(say(http(b"", "503 Service Unavailable")))
    with pytest.raises(errors.ServerError, match="503"):
        driver.run(call(server))
    assert len(server.requests) == 3


@pytest.mark.parametrize(
    ("driver_of", "status", "stage"),
    [
        (SyncDriver, "429 Too Many Requests", "create"),
        pytest.param(Awaited, "503 Service Unavailable", "create", marks=pytest.mark.slow),
        (SyncDriver, "503 Service Unavailable", "step"),
        (Awaited, "429 Too Many Requests", "step"),
        pytest.param(SyncDriver, "429 Too Many Requests", "close", marks=pytest.mark.slow),
        pytest.param(Awaited, "429 Too Many Requests", "close", marks=pytest.mark.slow),
        pytest.param(by_httpx, "429 Too Many Requests", "step", marks=pytest.mark.slow),
        (by_httpx_awaited, "503 Service Unavailable", "step"),
    ],
    indirect=["driver_of"],
)
def test_who_is_asked_to_wait_waits(serve, status, stage):
    server, driver = serve(*[say(http(b"", status, "Retry-After: 1"))], GOOD, timeout=5)
    began = time.monotonic()
    driver.run(call(server, stage))
    assert (len(server.requests), driver.stats.retries) == (2, 1)
    assert time.monotonic() - began > 0.9


def test_who_is_asked_to_wait_asks_again_until_the_time_is_up(serve):
    busy = say(http(b"", "429 Too Many Requests", "Retry-After: 0"))
    server, driver = serve(*[busy] * 9, GOOD, timeout=5)
    assert driver.run(call(server)).text("observation") == "x"
    assert len(server.requests) == 10


def test_a_wait_beyond_the_time_limit_is_not_begun(serve):
    server, driver = serve(say(http(b"", "429 Too Many Requests", "Retry-After: 9")), timeout=5)
    began = time.monotonic()
    with pytest.raises(errors.ServerError, match="429"):
        driver.run(call(server))
    assert (len(server.requests), time.monotonic() - began < 5) == (1, True)


@everywhere
@pytest.mark.parametrize("status", ["401 Unauthorized", "403 Forbidden", "407 Proxy Authentication Required"])
def test_a_server_that_wants_credentials_is_named_as_that(serve, status):
    server, driver = serve(say(http(b"", status)))
    for stage, kind in (
        ("identify", errors.AccessDenied),
        ("create", errors.AccessDenied),
        ("step", errors.ServerError),
    ):
        with pytest.raises(kind, match=rf"{status[:3]}.* requires credentials.* headers"):
            driver.run(call(server, stage))
    assert len(server.requests) == 3


@everywhere
def test_headers_of_the_user_are_sent_with_every_request(serve):
    server, driver = serve(GOOD, headers={"Authorization": "Bearer s3cret", "accept": "text/x", "X-A": "b"})
    driver.run(call(server))
    url = server.url.replace("http://", "http://me:pw@")
    driver.run(at(url, ask(Call("step", "POST", "/it", {}))))
    for request in server.requests:
        lines = request.raw.lower().split(b"\r\n")
        assert [each for each in lines if each.startswith(b"authorization")] == [
            b"authorization: bearer s3cret"
        ]
        assert [each for each in lines if each.startswith(b"accept:")] == [b"accept: text/x"]
        assert b"x-a: b" in lines
        assert b"content-type: application/json" in lines


@everywhere
def test_a_reply_has_its_headers(serve):
    server, driver = serve(say(http(SAID, "200 OK", "X-Server: ours", "X-Two: a", "x-two: b")))

    def flow():
        return (yield Call("step", "POST", "/it", {}, server=server.url))

    reply = driver.run(flow())
    assert (reply.headers["x-server"], reply.headers["x-two"]) == ("ours", "a, b")


def names(monkeypatch, *addresses):
    """Have a name looked up as these addresses and ports."""
    found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", each) for each in addresses]
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, port, *_, **__: found)


def test_an_address_that_swallows_all_does_not_keep_the_next_from_being_tried(serve, monkeypatch):
    server, driver = serve(GOOD, timeout=5)
    port = int(server.url.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        deaf = stack.enter_context(socket.create_server(("127.0.0.2", 0), backlog=0))
        for _ in range(3):  # after that the system drops what asks for a connection
            full = stack.enter_context(socket.socket())
            full.setblocking(False)
            full.connect_ex(deaf.getsockname())
        names(monkeypatch, deaf.getsockname(), ("127.0.0.1", port))
        began = time.monotonic()
        body = driver.run(at("http://two.test", ask(Call("step", "POST", "/it", {}))))
    assert body.text("observation") == "x"
    assert time.monotonic() - began < 4


def test_nobody_listens_only_where_each_address_refuses(serve, monkeypatch):
    server, driver = serve(GOOD)
    server.stop()
    port = int(server.url.rpartition(":")[2])
    step = Call("create", "POST", "/it", {})

    def refused():
        with pytest.raises(errors.ServerUnreachable) as caught:
            driver.run(at("http://two.test", ask(step)))
        return caught.value.refused

    names(monkeypatch, ("127.0.0.1", port), ("127.0.0.2", port))
    assert refused() is True
    names(monkeypatch, ("127.0.0.1", port), ("255.255.255.255", port))  # which no connection can be made to
    assert refused() is False

    def unknown(*_, **__):
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", unknown)
    assert refused() is False


@pytest.mark.parametrize("driver_of", CLIENTS, indirect=True)
def test_who_refused_a_client_that_was_handed_in_is_not_known(serve):
    server, driver = serve(GOOD)
    server.stop()
    with pytest.raises(errors.ServerUnreachable) as caught:
        driver.run(call(server))
    assert caught.value.refused is None


def test_the_connection_is_dropped_after_an_error_of_the_server(serve):
    server, driver = serve(say(http(b"", "500 Oops")), GOOD)
    with pytest.raises(errors.ServerError):
        driver.run(call(server))
    driver.run(call(server))
    assert server.connections == 2


def test_a_password_is_not_told(driver_of):
    driver = driver_of(limits=Limits.of(1))
    with pytest.raises(errors.ServerUnreachable) as caught:
        driver.run(at("http://me:secret@127.0.0.1:9", ask(Call("close", "POST", "/close", {}))))
    assert "secret" not in str(caught.value)
    driver.close()


def test_loopback_servers_are_not_looked_for_behind_a_proxy(serve, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    server, driver = serve(GOOD)
    assert driver.run(call(server)).text("observation") == "x"


def test_the_flow_is_closed_when_the_driver_is_interrupted(serve, monkeypatch):
    server, driver = serve(GOOD)
    closed = []

    def flow():
        try:
            yield Call("step", "POST", "/it", {}, server=server.url)
        finally:
            closed.append(True)

    def interrupt(asked):
        raise KeyboardInterrupt

    if isinstance(driver, Awaited):
        monkeypatch.setattr(driver.driver, "connection", interrupt)
    else:
        monkeypatch.setattr(driver, "_exchange", interrupt)
    with pytest.raises(KeyboardInterrupt):
        driver.run(flow())
    assert closed


@pytest.mark.slow
# What was just being opened or closed is left to the garbage collector, which says so.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.usefixtures("garbage_collected")
@pytest.mark.parametrize(
    ("driver_of", "within"),
    [(SyncDriver, PACKAGE), (SyncDriver, None), (Awaited, PACKAGE)],
    indirect=["driver_of"],
    ids=["sync", "sync, other code too", "async"],
)
def test_wherever_it_is_interrupted_the_next_call_has_its_own_reply(driver_of, within):
    driver = driver_of(limits=Limits.of(5))
    tried, strange = [], []

    def tell(number):
        return at(server.url, ask(Call("step", "POST", "/it", {"number": number})))

    def interrupt_everywhere():
        driver.run(tell(0))
        for number, point in enumerate(
            spread(points_of(lambda: driver.run(tell(-1)), within=within), 300), 1
        ):
            tried.append(point)
            interrupted(lambda: driver.run(tell(-1)), point)
            if driver.run(tell(number)).integer("number") != number:
                strange.append(str(point))

    with FakeServer(lambda request: http(request.content)) as server:
        # In a thread, since one way to fail is to wait for a lock without end.
        thread = threading.Thread(target=interrupt_everywhere, daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), f"it waits after {tried[-1]}"
        driver.close()
    assert strange == []
    assert len(tried) >= 100


def test_what_may_be_repeated():
    step, reset = Call("step", "POST", "/step"), Call("reset", "POST", "/reset")
    assert may_repeat(step, errors.ServerUnreachable("slow"))
    for stage, begins_anew in {"identify": True, "create": True, "reset": False, "step": False}.items():
        refused = errors.ServerUnreachable("nobody there", refused=True)
        assert may_repeat(Call(stage, "POST", "/it"), refused) is begins_anew
    assert not may_repeat(step, errors.ConnectionLost("x"))
    assert may_repeat(reset, errors.ConnectionLost("x"))
    assert not may_repeat(reset, errors.ServerTimeout("x"))
    assert not may_repeat(reset, errors.BadReply("x"))


@pytest.mark.parametrize(
    ("said", "least", "most"),
    [
        ("7", 7, 7),
        (" 0 ", 0, 0),
        ("9" * 40, 1e6, 1e6),
        ("Fri, 31 Dec 1999 23:59:59 GMT", 0, 0),
    ],
)
def test_how_long_a_reply_asks_to_wait(said, least, most):
    reply = Reply(Call("step", "POST", "/step"), 429, b"", {"retry-after": said})
    assert least <= retry_after(reply) <= most


def test_a_reply_may_ask_to_wait_until_a_moment():
    said = format_datetime(datetime.now(timezone.utc) + timedelta(seconds=90), usegmt=True)
    reply = Reply(Call("step", "POST", "/step"), 429, b"", {"retry-after": said})
    assert 60 < retry_after(reply) <= 90


@pytest.mark.parametrize(
    ("said", "status"), [("", 429), ("soon", 429), ("-1", 429), ("1.5", 503), ("7", 200)]
)
def test_a_reply_that_does_not_ask_for_a_wait(said, status):
    assert retry_after(Reply(Call("step", "POST", "/step"), status, b"", {"retry-after": said})) is None


def test_waits_grow():
    assert 0.05 <= backoff(0, 0.1, jitter=(0.5, 1.5)) <= 0.15
    assert 0.2 <= backoff(2, 0.1, jitter=(0.5, 1.5)) <= 0.6


@pytest.mark.parametrize(
    ("answer", "found"),
    [
        (http(b'"This is environment BabyAI."'), "BabyAI"),
        (http(b"<html>hello"), "html"),
        (http(b'{"detail": "Not Found"}', "404 Not Found"), "404"),
    ],
)
def test_another_environment_is_named(serve, answer, found):
    class Mine(Wire):
        greeting = "This is environment Mine."
        closes = False
        create = reset = step = None  # type: ignore[assignment]

    server, driver = serve(say(answer))
    with pytest.raises(errors.WrongServer, match=found):
        driver.run(at(server.url, Mine().identify()))
