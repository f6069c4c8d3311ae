"""How requests reach a model's server: headers, TLS, proxies, a client handed in, connections that end."""

from __future__ import annotations

import asyncio
import pickle
import ssl
import threading
from functools import partial

import httpx
import pytest
import trustme

import inside
from agentgym_gym import errors
from agentgym_gym.evaluate import ChatAgent
from fake_model import Lines, asked, completion, refused, replies
from fake_server import FakeServer, http, in_turn

PROXY_VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY")


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in PROXY_VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID"):
        monkeypatch.delenv(name, raising=False)


def client():
    return httpx.AsyncClient(trust_env=False)


@pytest.fixture(params=[None, client], ids=["engine", "httpx"])
def http_client(request):
    return request.param


@pytest.fixture
def model(model, http_client):
    return partial(model, http_client=http_client)


def test_headers_are_sent_and_shown_nowhere(model, monkeypatch, http_client):
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "project-1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-More: from-variable\nX-Token: other\n")
    headers = {"X-Token": "token-of-mine", "authorization": "Token mine-too"}
    server, agent = model(completion(), headers=headers)
    replies(pickle.loads(pickle.dumps(agent)) if http_client is None else agent)  # noqa: S301
    sent = server.requests[0].headers
    assert (sent["x-token"], sent["authorization"], sent["x-more"]) == (
        *("token-of-mine", "Token mine-too"),
        "from-variable",
    )
    assert (sent["openai-organization"], sent["openai-project"]) == ("org-1", "project-1")
    assert sent["user-agent"].startswith("agentgym-gym/")
    assert (sent["content-type"], sent["accept"]) == ("application/json", "application/json")
    assert "token-of-mine" not in f"{agent!r} {agent.describe()}"


def test_a_header_that_an_error_repeats_is_hidden(model):
    _, agent = model((400, {"error": {"message": "bad token-of-mine"}}), headers={"X-Token": "token-of-mine"})
    with pytest.raises(errors.BadOption, match=r"bad \*\*\*"):
        replies(agent)


def test_a_private_authority(started, monkeypatch, tmp_path):
    authority = trustme.CA()
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.cert_pem.write_to_path(tmp_path / "ca.pem")
    server = started(FakeServer(in_turn(completion("Action: a")), tls=served))
    agent = ChatAgent("m", base_url=f"{server.url}/v1", retry_seconds=0)
    inside.forget_certificates()
    with pytest.raises(errors.ModelUnreachable, match="certificate"):
        replies(agent)
    inside.forget_certificates()
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "ca.pem"))
    try:
        assert [reply.action for reply in replies(agent, 2)] == ["Action: a"] * 2
    finally:
        inside.forget_certificates()
    assert len(asked(server)) == 2


@pytest.mark.slow  # a client of httpx reads certificates
def test_a_client_that_trusts_a_private_authority(started):
    authority = trustme.CA()
    served, context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.create_default_context()
    authority.issue_cert("127.0.0.1").configure_cert(served)
    authority.configure_trust(context)
    server = started(FakeServer(in_turn(completion("Action: a")), tls=served))
    agent = ChatAgent("m", base_url=server.url, http_client=lambda: httpx.AsyncClient(verify=context))
    assert replies(agent)[0].action == "Action: a"


@pytest.mark.parametrize("by", ["variable", "client"])
def test_a_proxy(started, monkeypatch, by):
    proxy = started(FakeServer(in_turn(completion("Action: a"))))
    if by == "variable":
        monkeypatch.setenv("HTTP_PROXY", proxy.url)
        agent = ChatAgent("m", base_url="http://model.invalid/v1")
    else:
        agent = ChatAgent(
            "m", base_url="http://model.invalid/v1", http_client=lambda: httpx.AsyncClient(proxy=proxy.url)
        )
    assert [reply.action for reply in replies(agent, 2)] == ["Action: a"] * 2
    assert proxy.requests[0].raw.startswith(b"POST http://model.invalid/v1/chat/completions HTTP/1.1")
    assert proxy.connections == 1


PROXY = "http://proxy"


@pytest.mark.parametrize(
    ("url", "variables", "proxied"),
    [
        ("https://api.model.invalid/v1", {}, False),
        ("https://api.model.invalid/v1", {"HTTPS_PROXY": PROXY}, True),
        ("https://api.model.invalid/v1", {"ALL_PROXY": PROXY}, True),
        ("https://api.model.invalid/v1", {"HTTP_PROXY": PROXY}, False),
        ("https://api.model.invalid/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "model.invalid"}, False),
        ("https://api.model.invalid/v1", {"HTTPS_PROXY": PROXY, "NO_PROXY": "*"}, False),
        ("http://gpu.invalid:8000/v1", {"HTTP_PROXY": PROXY}, True),
        ("http://gpu.invalid:8000/v1", {"HTTP_PROXY": PROXY, "NO_PROXY": "gpu.invalid:8000"}, False),
        ("http://localhost:PORT/v1", {"HTTP_PROXY": PROXY}, False),
        ("http://[::1]:PORT/v1", {"HTTP_PROXY": PROXY}, False),
    ],
)
def test_variables_that_name_a_proxy(started, monkeypatch, unreachable_url, url, variables, proxied):
    url = url.replace("PORT", unreachable_url.rpartition(":")[2])
    proxy = started(FakeServer(in_turn((403, {}))))
    for name, value in variables.items():
        monkeypatch.setenv(name.lower(), proxy.url if value == PROXY else value)
    with pytest.raises((errors.AgentFault, errors.SetupError)):
        replies(ChatAgent("m", base_url=url, retry_seconds=0))
    assert (proxy.connections > 0) is proxied


def test_a_chunked_reply(model):
    whole = http(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    body = b'{"choices": [{"message": {"content": "Action: a"}}]}'
    chunks = b"".join(b"1\r\n%c\r\n" % byte for byte in body) + b"0\r\n\r\n"
    server, agent = model(whole + chunks)
    assert [reply.action for reply in replies(agent, 3)] == ["Action: a"] * 3
    assert server.connections == 1


def test_a_reply_that_ends_with_its_connection(model):
    def answer(connection):
        connection.send(b'HTTP/1.1 200 OK\r\n\r\n{"choices": [{"message": {"content": "Action: a"}}]}')
        connection.hang_up()

    server, agent = model(answer)
    assert [reply.step["retries"] for reply in replies(agent, 2)] == [0, 0]
    assert server.connections == 2


@pytest.mark.parametrize("status", ["301 Moved", "307 Temporary Redirect", "308 Permanent Redirect"])
def test_a_redirect_ends_the_run(model, status):
    server, agent = model(refused(status, None, "Location: https://elsewhere.example/v1"))
    with pytest.raises(errors.BadOption, match=r"elsewhere\.example"):
        replies(agent)
    assert len(asked(server)) == 1


@pytest.mark.parametrize("how", ["cancelled", "timeout"])
def test_a_request_that_is_abandoned_closes_its_connection(model, how):
    """So that the server stops generating."""
    waiting, closed = threading.Event(), threading.Event()

    def wait_for_the_end(connection):
        waiting.set()
        connection.socket.settimeout(60)
        if connection.socket.recv(1) == b"":
            closed.set()
        connection.hang_up()

    async def play(seconds):
        _, agent = model(wait_for_the_end, timeout=seconds, retry_seconds=0)
        await agent.reset(Lines(), "o0", {})
        asking = asyncio.ensure_future(agent.act("o0", {}))
        if how == "cancelled":
            assert await asyncio.to_thread(waiting.wait, 60)
            asking.cancel()
        with pytest.raises(asyncio.CancelledError if how == "cancelled" else errors.ModelTimeout):
            await asking
        if waiting.is_set():
            assert await asyncio.to_thread(closed.wait, 60)
        await agent.close()

    for seconds in (0.3, 3, 30) if how == "timeout" else (60,):  # on a busy machine, connecting takes long
        if not waiting.is_set():
            asyncio.run(play(seconds))
    assert closed.is_set()


def test_a_query_of_the_base_url_is_part_of_each_request(model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "key-of-mine")
    server, _ = model(completion())
    url = f"{server.url}/openai/deployments/gpt?api-version=2024-10-21"
    agent = ChatAgent("gpt", base_url=url)
    replies(agent, 2)
    assert [(request.path, request.query) for request in server.requests] == [
        ("/openai/deployments/gpt/chat/completions", "api-version=2024-10-21")
    ] * 2
    sent = server.requests[0].headers
    assert (sent["api-key"], sent.get("authorization")) == ("key-of-mine", None)  # as Azure requires
    assert agent.describe()["base_url"] == url


def test_a_key_in_the_query_is_shown_nowhere(model):
    server, _ = model((400, {"error": {"message": "bad secret-of-mine"}}))
    agent = ChatAgent("m", base_url=f"{server.url}/v1?key=secret-of-mine&region=eu")
    with pytest.raises(errors.BadOption, match=r"bad \*\*\*") as raised:
        replies(agent)
    assert server.requests[0].query == "key=secret-of-mine&region=eu"
    assert "secret-of-mine" not in f"{agent!r} {agent.describe()} {raised.value}"
    assert "key=***&region=eu" in agent.describe()["base_url"]


def test_a_key_in_a_header_replaces_the_placeholder(model):
    server, agent = model(completion(), headers={"X-API-Key": "token-of-mine"})
    replies(agent)
    sent = server.requests[0].headers
    assert (sent["x-api-key"], sent.get("authorization")) == ("token-of-mine", None)


def test_a_url_with_the_whole_path_is_a_base_url(model):
    server, _ = model(completion())
    replies(ChatAgent("m", base_url=f"{server.url}/v1/chat/completions"))
    assert server.requests[0].path == "/v1/chat/completions"
