"""The proxy over real sockets, before the local TextCraft server and one with scripted replies."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time
from types import SimpleNamespace

import httpx
import pytest

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import KINDS, SEEN_AS, FaultyProxy
from clock import wait_until

pytestmark = pytest.mark.slow  # many processes or waits

JSON = b'{"observation": "\xc3\xb8", "reward": 0, "done": false}'
GET = "Action: get 1 oak logs"


def refuses(url):
    try:
        socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 1).close()
    except ConnectionRefusedError:
        return True
    return False


def talk(url, request):
    """Send bytes, and return all that comes back until the connection ends."""
    with socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])), 5) as connection:
        connection.sendall(request)
        came = []
        while chunk := connection.recv(1 << 16):
            came.append(chunk)
        return b"".join(came)


def post(path, body=b"{}", *headers):
    lines = [f"POST {path} HTTP/1.1", "Host: here", f"Content-Length: {len(body)}", *headers]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


# ------------------------------------------------------------------------------------------ faults as seen


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_is_seen_as_its_fault(make_env, textcraft_url, kind, arrives):
    with FaultyProxy(textcraft_url, 0, kinds=[kind], stages=["step"], delay=30) as proxy:
        env = make_env(server=proxy.url, timeout={"step": 1.5 if SEEN_AS[kind] == "ServerTimeout" else 30})
        env.reset(options={"task_id": 0})
        assert "fault" not in env.step("Action: inventory")[4]
        proxy.faults.share = 1
        _, reward, terminated, truncated, info = env.step(GET)
        assert (info["fault"]["kind"], reward) == (SEEN_AS[kind], 0.0)
        assert (terminated, truncated) == (False, True)
        assert proxy.injected == {kind: 1}
        assert proxy.faults.calls["step"] == 2, "a step is sent once"
        [made] = proxy.journal.created
        observation = httpx.get(f"{textcraft_url}/observation", params={"id": made.id}).json()
        assert ("oak logs" in observation) == arrives
        env.reset(options={"task_id": 1})
        assert (made.reply_sent, made.close_requested, made.closed) == (True, True, True)
    assert proxy.unplanned == 0


def test_a_late_reply_within_the_timeout_counts(make_env, textcraft_url):
    with FaultyProxy(textcraft_url, 1, kinds=["delay"], delay=0.05) as proxy:
        env = make_env(server=proxy.url)
        env.reset(options={"task_id": 0})
        began = time.monotonic()
        assert "fault" not in env.step(GET)[4]
        assert time.monotonic() - began >= 0.05
        assert proxy.injected["delay"] == sum(proxy.faults.calls.values()) >= 3


def test_a_reset_connection_is_reset_and_a_cut_reply_ends(scripted):
    scripted.reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(JSON), JSON)
    for kind in ("reset", "lost"):
        with (
            FaultyProxy(scripted.url, 1, kinds=[kind]) as proxy,
            pytest.raises(ConnectionResetError),
        ):
            talk(proxy.url, post("/step"))
    assert len(scripted.requests) == 1  # of the one that was lost
    with FaultyProxy(scripted.url, 1, kinds=["truncate"]) as proxy:
        assert talk(proxy.url, post("/step")) == scripted.reply[: -(len(JSON) - len(JSON) // 2)]


def test_only_the_chosen_stages_get_faults(textcraft_url):
    with FaultyProxy(textcraft_url, 1, kinds=["error"], stages=["reset"]) as proxy:
        env = AgentGymEnv("TextCraft", server=proxy.url)
        with contextlib.closing(env), pytest.raises(errors.ServerError):
            env.reset(options={"task_id": 0})
        # "identify" is missing if the port is one at which this process has recognised a server before.
        assert set(proxy.faults.calls) | {"identify"} == {"identify", "create", "reset", "close"}
        assert proxy.injected == {"error": proxy.faults.calls["reset"]}


# ---------------------------------------------------------------------------------- what is not to be seen

CHUNKED = b'6\r\n{"a": \r\n3;x=y\r\n 1}\r\n0\r\nTrailer: t\r\n\r\n'


@pytest.mark.parametrize(
    "reply",
    [
        b"HTTP/1.1 200 OK\r\ndate: today\r\nX-Odd:  two  \r\nContent-Length: %d\r\n\r\n%s"
        % (len(JSON), JSON),
        b"HTTP/1.1 200 Fine\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED,
        b"HTTP/1.1 204 No Content\r\nserver: x\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 307 Temporary Redirect\r\nLocation: /elsewhere\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: 4\r\n\r\nwait",
        b"HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" + b"ab\n" * 3_000_000,
    ],
    ids=["plain", "chunked", "204", "404", "307", "503", "9MB"],
)
def test_calls_without_a_fault_are_forwarded_byte_for_byte(scripted, reply):
    scripted.reply = reply
    bodies = [b"", b'{"action": "\\ud800"}', bytes(range(256)) * 4_000]
    requests = [post("/a/step?x=%20y&z", body, "X-Own: \xff") for body in bodies]
    requests[-1] = requests[-1].replace(b"X-Own", b"Connection: close\r\nX-Own", 1)
    with FaultyProxy(scripted.url, 0) as proxy:
        came = talk(proxy.url, b"".join(requests))
    assert came == reply * 3
    host = scripted.url.removeprefix("http://").encode()
    assert [request.raw for request in scripted.requests] == [
        request.replace(b"Host: here", b"Host: " + host) for request in requests
    ]


def test_odd_forms_of_replies(scripted):
    with FaultyProxy(f"{scripted.url}/below/", 0) as proxy:
        scripted.reply = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
        assert httpx.put(f"{proxy.url}/x").text == "ok"
        assert scripted.requests[-1].raw.startswith(b"PUT /below/x HTTP/1.1\r\n")
        scripted.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n"
        assert httpx.head(f"{proxy.url}/x").headers["content-length"] == "2"
        scripted.reply, scripted.ends = b"HTTP/1.0 200 OK\r\n\r\nto the end", True
        assert httpx.get(f"{proxy.url}/x").text == "to the end"
        assert proxy.unplanned == 0
        scripted.reply = b"no HTTP\r\n\r\n"
        with pytest.raises(httpx.RemoteProtocolError):
            httpx.get(f"{proxy.url}/x")
        assert proxy.unplanned == 1
        assert talk(proxy.url, b"nonsense\r\n\r\n") == b""


def test_connections_are_kept_on_both_sides(scripted):
    scripted.reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
    with FaultyProxy(scripted.url, 0) as proxy, httpx.Client(base_url=proxy.url) as client:
        for _ in range(20):
            client.post("/step")
    assert (
        scripted.connections == 2
    )  # one for the client, and one by which the proxy sees that there is a server


# ------------------------------------------------------------------------------------------- the journal


def test_environments_of_lost_replies_are_in_the_journal(textcraft_url):
    with FaultyProxy(textcraft_url, 1, kinds=["lost"], stages=["create"]) as proxy, httpx.Client() as client:
        with pytest.raises(httpx.ReadError):
            client.post(f"{proxy.url}/create", json={})
        for kind in ("truncate", "garble"):
            proxy.faults.kinds = (kind,)
            with contextlib.suppress(httpx.RemoteProtocolError):
                client.post(f"{proxy.url}/create", json={})
        proxy.faults.share = 0
        env_id = client.post(f"{proxy.url}/create", json={}).json()["id"]
        wait_until(lambda: proxy.journal.created[-1].reply_sent)
        lost, cut, garbled, well = proxy.journal.created
        assert [made.reply_sent for made in proxy.journal.created] == [False, False, False, True]
        assert (well.id, well.path, well.life) == (env_id, "/create", 0)
        for made in (lost, cut, garbled):  # they exist, and no client has their ids
            assert client.post(f"{textcraft_url}/close", json={"id": made.id}).json() is True
        proxy.faults.share, proxy.faults.stages, proxy.faults.kinds = 1, ("close",), ("error",)
        client.post(f"{proxy.url}/close", json={"id": env_id})
        assert (well.close_requested, well.closed) == (True, False)
        proxy.faults.share = 0
        client.post(f"{proxy.url}/close", json={"id": env_id})
        assert (well.close_requested, well.closed) == (True, True)
    assert json.loads(json.dumps(proxy.report())) == {
        "calls": {"create": 4, "close": 2},
        "injected": {"lost": 1, "truncate": 1, "garble": 1, "error": 1},
        "unplanned": 0,
        "created": [vars(made) for made in proxy.journal.created],
    }


def test_a_client_that_gave_up_did_not_get_the_id(textcraft_url):
    with FaultyProxy(textcraft_url, 1, kinds=["delay"], delay=30) as proxy:
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{proxy.url}/create", json={}, timeout=httpx.Timeout(30, read=0.2))
        wait_until(lambda: proxy.journal.created)
        assert not proxy.journal.created[0].reply_sent
        httpx.post(f"{textcraft_url}/close", json={"id": proxy.journal.created[0].id})


@pytest.mark.parametrize(("reply", "made"), [(b"7", [7]), (b'{"env_idx": 7}', [7]), (b'{"error": "7"}', [])])
def test_ids_are_read_in_the_form_of_each_server(scripted, reply, made):
    scripted.reply = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(reply), reply)
    with FaultyProxy(scripted.url, 0) as proxy:
        httpx.post(f"{proxy.url}/maze/create")
        httpx.post(f"{proxy.url}/wordle/close", json={"env_idx": 7})
        assert [(each.id, each.close_requested) for each in proxy.journal.created] == [
            (each, False) for each in made
        ]
        httpx.post(f"{proxy.url}/maze/close", json={"env_idx": 7})
        assert [(each.id, each.closed) for each in proxy.journal.created] == [(each, True) for each in made]


# ------------------------------------------------------------------------------- servers that come and go


@pytest.fixture
def mortal():
    """A server to be stopped, and started again at its port."""
    first = LocalServer("textcraft")
    url = first.start()
    again = LocalServer("textcraft", port=int(url.rpartition(":")[2]))
    yield SimpleNamespace(url=url, stop=first.stop, start=again.start)
    first.stop()
    again.stop()


@pytest.mark.parametrize("make_env", [AgentGymEnv], indirect=True)
def test_the_proxy_listens_only_while_its_server_does(make_env, mortal):
    with FaultyProxy(mortal.url, 0) as proxy:
        env = make_env(server=proxy.url)
        env.reset(options={"task_id": 0})
        mortal.stop()
        assert env.step(GET)[4]["fault"]["kind"] in {"ConnectionLost", "ServerUnreachable"}
        wait_until(lambda: refuses(proxy.url))
        with pytest.raises(errors.ServerUnreachable) as caught:
            env.reset(options={"task_id": 0})
        assert caught.value.refused
        mortal.start()
        wait_until(lambda: not refuses(proxy.url))
        env.reset(options={"task_id": 0})
        assert "fault" not in env.step(GET)[4]
        first, second = proxy.journal.created
        assert (first.life, second.life) == (0, 1)
        assert not first.close_requested  # it may be another's now


def test_a_proxy_can_start_before_its_server(mortal):
    url = mortal.url
    mortal.stop()
    with FaultyProxy(url, 0) as proxy:
        assert refuses(proxy.url)
        mortal.start()
        wait_until(lambda: not refuses(proxy.url))
        assert httpx.get(proxy.url).json() == "This is environment TextCraft."
        assert proxy.journal.life == 0


def test_down_is_as_if_the_server_were_gone(make_env, textcraft_url):
    with FaultyProxy(textcraft_url, 0) as proxy:
        env = make_env(server=proxy.url)
        env.reset(options={"task_id": 0})
        with proxy.down():
            assert refuses(proxy.url)
            assert env.step(GET)[4]["fault"]["kind"] in {"ConnectionLost", "ServerUnreachable"}
        env.reset(options={"task_id": 0})
        assert proxy.journal.life == 0
        for made in proxy.journal.created[:1]:  # the client cannot detect that this server remembers
            httpx.post(f"{textcraft_url}/close", json={"id": made.id})


def test_hanging_calls_do_not_prevent_the_proxy_from_ending(textcraft_url):
    with FaultyProxy(textcraft_url, 1, kinds=["silent"]) as proxy:
        connection = socket.create_connection(("127.0.0.1", int(proxy.url.rpartition(":")[2])))
        connection.sendall(post("/step"))
        wait_until(lambda: proxy.injected["silent"])
    with connection:
        assert connection.recv(1) == b""


# ---------------------------------------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"share": 1.5}, "share"),
        ({"delay": -1}, "delay"),
        ({"kinds": ["rest"]}, "kinds"),
        ({"kinds": "reset"}, "kinds"),
        ({"stages": []}, "stages"),
        ({"stages": ["/step"]}, "stages"),
        ({"port": 70_000}, "port"),
        ({"server": "127.0.0.1:80"}, "URL"),
        ({"server": "http://127.0.0.1:x"}, "URL"),
    ],
)
def test_a_mistake_is_named(arguments, message):
    with pytest.raises(errors.BadOption, match=message):
        FaultyProxy(**{"server": "http://games.test", **arguments})


def test_an_error_that_ends_its_thread_is_raised(textcraft_url, monkeypatch):
    async def fail(*_, **__):
        raise ValueError("odd")

    monkeypatch.setattr(asyncio, "open_connection", fail)
    with pytest.raises(ValueError, match="odd"), FaultyProxy(textcraft_url):
        pytest.fail("it serves")


def test_a_port_in_use_is_named(textcraft_url):
    port = int(textcraft_url.rpartition(":")[2])
    with pytest.raises(errors.BadOption, match=str(port)), FaultyProxy(textcraft_url, port=port):
        pass
