"""The bytes of requests and replies, without a socket; over one they are in tests/test_exchanges.py."""

from __future__ import annotations

import pytest

from agentgym_gym import errors
from agentgym_gym._http.http11 import ResponseParser, origin_of, request_of
from agentgym_gym.calls import Call

CALL = Call("step", "POST", "/step", {"id": 0}, server="http://a.test")


@pytest.mark.parametrize(
    ("server", "line", "host"),
    [
        ("http://127.0.0.1:36001", b"GET / HTTP/1.1", b"Host: 127.0.0.1:36001"),
        ("http://me:pw@example.org/games/", b"GET /games/ HTTP/1.1", b"Host: example.org"),
        ("https://[::1]:8443", b"GET / HTTP/1.1", b"Host: [::1]:8443"),
        ("http://bücher.example/ä", b"GET /%C3%A4/ HTTP/1.1", b"Host: xn--bcher-kva.example"),
    ],
)
def test_a_request_is_for_the_server(server, line, host):
    first, second, *rest = request_of(Call("identify", "GET", "/", server=server)).split(b"\r\n")
    assert (first, second) == (line, host)
    assert not any(b"pw" in each for each in rest)
    assert not any(each.startswith(b"Content-Length") for each in rest)


def test_text_of_an_agent_stays_in_the_body():
    call = Call("step", "POST", "/step", {"action": "x\r\n\r\nGET / HTTP/1.1"}, server="http://a.test")
    head, _, body = request_of(call).partition(b"\r\n\r\n")
    assert b"Content-Length: %d" % len(body) in head
    assert b"\r\n" not in body


@pytest.mark.parametrize("path", ["/a b", "/a\r\nX: y", "/ä", "/a\x00"])
def test_an_unusable_path_is_refused(path):
    with pytest.raises(errors.BadOption):
        request_of(Call("step", "POST", path, {}, server="http://a.test"))


def test_a_server_that_cannot_be_is_named():
    with pytest.raises(errors.BadOption, match="cannot be used"):
        origin_of("http://a\x00b")


@pytest.mark.parametrize(
    ("after", "last"),
    [(b"", False), (b"HTTP/1.1 200 OK\r\n", True), (b"rubbish", True)],
)
def test_bytes_after_a_reply_end_the_connection(after, last):
    incoming = ResponseParser(CALL)
    incoming.feed(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}" + after)
    assert (incoming.complete, incoming.last) == (True, last)
    assert incoming.reply().content == b"{}"


@pytest.mark.parametrize("said", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n{}"])
def test_a_truncated_reply_is_not_a_reply(said):
    incoming = ResponseParser(CALL)
    if said:
        incoming.feed(said)
    incoming.end()
    assert (incoming.complete, incoming.last) == (False, True)


def test_another_protocol_is_not_spoken():
    with pytest.raises(errors.ConnectionLost, match="not HTTP"):
        ResponseParser(CALL).feed(
            b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"
        )
