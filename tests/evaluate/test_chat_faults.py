"""Failures of a model's server: retried, named, and without secrets."""

from __future__ import annotations

import asyncio
import email.utils
import logging
import socket
import ssl
import threading
import time
import traceback
from functools import partial

import httpx
import pytest

import inside
from agentgym_gym import errors
from agentgym_gym.evaluate import ChatAgent
from fake_model import Lines, asked, completion, refused, replies
from fake_server import FakeServer, as_json, dripping, hang_up, http, in_turn, never, then_hang_up

KEY = "sk-secret-of-mine"
NO_TLS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # or httpx would read all certificates for each client


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    inside.pause_model(monkeypatch, 0.002)
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(params=["engine", "httpx"])
def sent_by(request):
    """What sends the requests: None for the library's HTTP engine, or a client of httpx."""
    return None if request.param == "engine" else (lambda: httpx.AsyncClient(trust_env=False, verify=NO_TLS))


# The content of a reply is read alike for each client.
by_the_engine = pytest.mark.parametrize("sent_by", ["engine"], indirect=True)


@pytest.fixture
def model(model, sent_by):
    return partial(model, http_client=sent_by)


def wrong(body, status="200 OK"):
    return http(body, status, "Content-Type: application/json")


def half(connection):
    connection.send(b'HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"choices": [')
    connection.hang_up()


def half_chunked(connection):
    connection.send(b'HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n')
    connection.hang_up()


FAULTS = {
    "429": ((429, {"error": {"message": "slow down"}}), "ModelBusy", "HTTP 429: slow down"),
    "503": ((503, {"detail": "loading"}), "ModelBusy", "HTTP 503: loading"),
    "408": ((408, {}), "ModelTimeout", "HTTP 408"),
    "409": ((409, {}), "ModelError", "HTTP 409"),
    "500": (refused("500 Oops"), "ModelError", "HTTP 500"),
    "500 in HTML": (http(b"<h1>no</h1>", "500 Oops"), "ModelError", "<h1>no</h1>"),
    "502": ((502, {"error": "bad gateway"}), "ModelError", "HTTP 502: bad gateway"),
    "529": (refused("529 Overloaded", {"error": {"message": "over"}}), "ModelError", "HTTP 529: over"),
    "hangs up": (hang_up, "ModelError", "the connection broke before a reply came"),
    "half a head": (then_hang_up(b"HTTP/1.1 200"), "ModelError", "the connection broke"),
    "no HTTP": (then_hang_up(b"SMTP ready\r\n\r\n"), "ModelError", "the connection broke"),
    "half a body": (half, "BadCompletion", "broke off"),
    "half a chunked body": (half_chunked, "BadCompletion", "broke off"),
    "a wrong encoding": (http(b"no gzip", "200 OK", "Content-Encoding: gzip"), "BadCompletion", "broke off"),
    "no body": (wrong(b""), "BadCompletion", "is not JSON"),
    "half a JSON": (wrong(b'{"choices": ['), "BadCompletion", "is not JSON"),
    "deep JSON": (wrong(b"[" * 200_000), "BadCompletion", "is not JSON"),
    "no UTF-8": (wrong(b'{"choices": "\xff"}'), "BadCompletion", "is not JSON"),
    "a list": ([], "BadCompletion", "is not a completion"),
    "null": (None, "BadCompletion", "is no"),
    "empty choices": ({"choices": []}, "BadCompletion", "no choice"),
    "choices of null": ({"choices": [None]}, "BadCompletion", "no choice"),
    "a message of text": ({"choices": [{"message": "a"}]}, "BadCompletion", "no message"),
    "content of no text": (completion(7), "BadCompletion", "is not text: 7"),
    "calls of no list": (completion(None, tool_calls={"a": 1}), "BadCompletion", "are not a list"),
    "a call without function": (completion(None, tool_calls=[{"id": "a"}]), "BadCompletion", "no function"),
    "a call without name": (completion(None, tool_calls=[{"function": {}}]), "BadCompletion", "no function"),
    "an error": ({"error": {"message": "no room", "code": "x"}}, "ModelError", "no room"),
    "an error of text": ({"error": "CUDA"}, "ModelError", "CUDA"),
    "an error of vLLM": ({"object": "error", "message": "died", "code": 500}, "ModelError", "died"),
    "an error of 429": ({"error": {"message": "rate", "code": 429}}, "ModelBusy", "rate"),
    "an error in a choice": (
        {"choices": [{"error": {"message": "upstream", "code": 502}, "message": {"content": ""}}]},
        *("ModelError", "upstream"),
    ),
    "an abort": (completion("Act", finish_reason="abort"), "ModelError", "'abort'"),
}


ON_THE_WIRE = {
    *("429", "500 in HTML", "hangs up", "half a head", "no HTTP", "half a body", "half a chunked body"),
    *("a wrong encoding", "no body"),
}


@pytest.mark.parametrize(
    ("sent_by", "name"),
    [*(("engine", name) for name in FAULTS), *(("httpx", name) for name in FAULTS if name in ON_THE_WIRE)],
    indirect=["sent_by"],
)
def test_requests_are_retried_and_the_reason_is_logged(model, name):
    fault, kind, message = FAULTS[name]
    server, agent = model(fault, fault, completion("Action: a"))
    (reply,) = replies(agent)
    assert (reply.action, reply.step["retries"]) == ("Action: a", 2), kind
    requests = asked(server)
    assert requests == [requests[0]] * 3
    server.answer = in_turn(fault)
    with pytest.raises(errors.AgentFault, match=r"\(1 attempt\)") as raised:
        replies(ChatAgent("m", base_url=f"{server.url}/v1", retry_seconds=0))
    assert raised.value.kind == kind
    assert message in str(raised.value)
    assert server.url in str(raised.value)
    assert len(asked(server)) == 4


@by_the_engine
def test_it_gives_up_when_the_time_is_over(model, monkeypatch):
    inside.pause_model(monkeypatch, 0.1)
    server, agent = model((500, {}), retry_seconds=0.5)
    with pytest.raises(errors.ModelError, match=r"[2-5] attempts in"):
        replies(agent)
    assert 2 <= len(asked(server)) <= 5


def test_connections_that_the_server_closes_cost_nothing(model):
    """Though it did not announce it."""
    server, agent = model(then_hang_up(as_json(completion("Action: a"))))

    async def play():
        await agent.reset(Lines(), "o0", {})
        for _ in range(3):
            reply = await agent.act("o0", {})
            assert (reply.action, reply.step["retries"]) == ("Action: a", 0)
            await asyncio.sleep(0.05)
        await agent.close()

    asyncio.run(play())
    assert server.connections == 3


def test_no_server_listens(sent_by, unreachable_url):
    agent = ChatAgent("m", base_url=unreachable_url, retry_seconds=0.05, http_client=sent_by)
    with pytest.raises(errors.ModelUnreachable, match=f"{unreachable_url}: cannot connect"):
        replies(agent)


def test_a_server_that_comes_late(monkeypatch):
    """As one that is restarted."""
    late = socket.socket()
    late.bind(("127.0.0.1", 0))
    port = late.getsockname()[1]
    inside.pause_model(monkeypatch, 0.1)
    agent = ChatAgent("m", base_url=f"http://127.0.0.1:{port}", retry_seconds=10)

    async def answer(reader, writer):
        await reader.readuntil(b"}")
        writer.write(as_json(completion("Action: a")))
        writer.close()

    async def play():
        await agent.reset(Lines(), "o0", {})
        asking = asyncio.ensure_future(agent.act("o0", {}))
        await asyncio.sleep(0.2)
        async with await asyncio.start_server(answer, sock=late):
            reply = await asking
            await agent.close()
        return reply

    reply = asyncio.run(play())
    assert reply.action == "Action: a"
    assert reply.step["retries"] >= 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "answer",
    [never, dripping(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n"), dripping(b"HTTP/1.1 200 OK\r\n\r\n", b" ")],
)
def test_the_time_limit_is_a_deadline(model, answer):
    """Also where a byte comes now and then."""
    _, agent = model(answer, completion("Action: a"), timeout=0.4)
    (reply,) = replies(agent)
    assert reply.action == "Action: a"
    assert reply.step["retries"] >= 1
    _, agent = model(answer, timeout=0.2, retry_seconds=0)
    with pytest.raises(errors.ModelTimeout, match=r"no complete reply within 0\.2 s"):
        replies(agent)


def test_a_reply_without_end_is_not_read_to_its_end(model):
    def endless(connection):
        connection.send(b"HTTP/1.1 200 OK\r\n\r\n", *[b" " * 2**20] * 80)

    _, agent = model(endless, retry_seconds=0)
    with pytest.raises(errors.BadCompletion, match="more than 67108864 bytes"):
        replies(agent)


@by_the_engine
@pytest.mark.parametrize(
    ("header", "least"),
    [
        ("Retry-After: 0.3", 0.3),
        ("retry-after-ms: 300", 0.3),
        ("Retry-After: 0", 0.0),
        ("Retry-After: -5", 0.0),
        ("Retry-After: soon", 0.0),
        ("Retry-After: nan", 0.0),
        ("Retry-After: Wed, 21 Oct 2015 07:28:00 GMT", 0.0),
    ],
)
def test_the_server_sets_when_to_retry(model, header, least):
    _, agent = model(refused("429 Busy", {}, header), completion())
    began = time.monotonic()
    (reply,) = replies(agent)
    assert reply.step["retries"] == 1
    assert least <= time.monotonic() - began < 15


@by_the_engine
@pytest.mark.parametrize(
    "header",
    ["Retry-After: 3600", "Retry-After: inf", f"Retry-After: {email.utils.formatdate(time.time() + 3600)}"],
    ids=["seconds", "inf", "date"],
)
def test_a_server_that_sets_too_long_a_wait(model, header):
    server, agent = model(refused("429 Busy", {}, header), retry_seconds=60)
    with pytest.raises(errors.ModelBusy, match=r"requested a wait of (\d+|inf) s"):
        replies(agent)
    assert len(asked(server)) == 1


OVERFLOWS = {
    "OpenAI": (400, {"error": {"message": "too long", "code": "context_length_exceeded"}}),
    "OpenAI in words": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 8192 tokens. However, your messages …"
            }
        },
    ),
    "vLLM": (
        400,
        {
            "object": "error",
            "message": "This model's maximum context length is 4096 tokens. However, you requested 5000 "
            "tokens (4000 in the messages, 1000 in the completion). Please reduce …",
        },
    ),
    "vLLM 0.15": (
        400,
        {
            "error": {
                "message": "This model's maximum context length is 2048 tokens. However, your request has "
                "3000 input tokens. Please reduce the length of the input messages.",
                "type": "BadRequestError",
                "param": "input_tokens",
                "code": 400,
            }
        },
    ),
    "vLLM's prompt": (
        400,
        {
            "error": {
                "message": "The decoder prompt (length 300) is longer than the maximum model length of 256."
            }
        },
    ),
    "vLLM's room": (400, {"message": "max_tokens must be at least 1, got -186.", "code": 400}),
    "sglang's prompt": (
        400,
        {"message": "The input (61709 tokens) is longer than the model's context length (40960 tokens)."},
    ),
    "sglang": (
        400,
        {
            "error": {
                "message": "Requested token count exceeds the model's maximum context length of 64000 "
                "tokens. You requested a total of 71897 tokens: …"
            }
        },
    ),
    "llama.cpp": (
        400,
        {"error": {"message": "the request is too large", "type": "exceed_context_size_error", "n_ctx": 256}},
    ),
    "llama.cpp, before": (
        500,
        {"error": {"code": 500, "message": "the request exceeds the available context size. try …"}},
    ),
    "llama-cpp-python": (400, {"error": {"message": "Requested tokens (516) exceed context window of 512"}}),
    "FastAPI": (422, {"detail": "Input length 265330 exceeds the maximum allowed length 262144"}),
    "Gemini": (
        400,
        [
            {
                "error": {
                    "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."
                }
            }
        ],
    ),
    "a gateway": (413, {"error": {"message": "x", "metadata": {"raw": "prompt is too long: 9 tokens > 8"}}}),
    "status 200": {"error": {"code": 400, "type": "exceed_context_size_error", "message": "x"}},
}


@by_the_engine
@pytest.mark.parametrize("name", OVERFLOWS)
def test_a_context_that_overflows_ends_the_episode(model, name):
    server, agent = model(OVERFLOWS[name], max_tokens=100)
    (reply,) = replies(agent)
    assert (reply.action, reply.text, reply.ending) == (None, None, "context_overflow")
    assert len(asked(server)) == 1


@by_the_engine
@pytest.mark.parametrize(
    ("body", "told"),
    [
        (
            {"error": {"message": "Unsupported value: 'temperature' of 3"}},
            "Unsupported value: 'temperature' of 3",
        ),
        (
            {"detail": [{"loc": ["body", "stop"], "msg": "bad", "input": "maximum context length is 5"}]},
            "bad",
        ),
        ({"error": {"message": "tokens: context window"}}, "tokens: context window"),
        ("no", "no"),
        (None, "HTTP 400"),
    ],
)
@pytest.mark.parametrize("status", [400, 422])
def test_any_other_refusal_ends_the_run(model, status, body, told):
    """It is tried once more without the system message, which may be at fault."""
    server, agent = model((status, body))
    with pytest.raises(errors.BadOption, match=f"HTTP {status}") as raised:
        replies(agent)
    assert told in str(raised.value).replace("HTTP 422", "HTTP 400")
    assert len(asked(server)) <= 2


def test_a_limit_without_room_is_not_an_overflow(model):
    said = {"error": {"message": "This model's maximum context length is 2048 tokens. However, …"}}
    _, agent = model((400, said), max_tokens=2048)
    with pytest.raises(errors.BadOption, match="max_tokens=2048 leaves no room"):
        replies(agent)


def test_a_conversation_that_is_filtered_ends_the_episode(model):
    _, agent = model((400, {"error": {"message": "policy", "code": "content_filter"}}))
    (reply,) = replies(agent)
    assert (reply.action, reply.ending) == (None, "content_filter")


@pytest.mark.parametrize("status", [401, 403])
def test_a_key_that_is_refused_is_not_shown(model, status):
    _, agent = model((status, {"error": {"message": f"Incorrect API key provided: {KEY}"}}))
    with pytest.raises(errors.AccessDenied, match="OPENAI_API_KEY") as raised:
        replies(agent)
    assert KEY not in "".join(traceback.format_exception(raised.value))


def test_a_model_that_is_not_there(started):
    def answer(request):
        if request.method == "GET":
            return {"data": [{"id": "a"}, {"id": "b"}]}
        return 404, {"error": {"message": "The model `m` does not exist."}}

    server = started(FakeServer(answer))
    with pytest.raises(errors.BadOption, match=r"no model 'm'.*it serves 'a', 'b'"):
        replies(ChatAgent("m", base_url=f"{server.url}/v1"))
    assert server.requests[-1].path == "/v1/models"


def test_a_path_that_is_not_there(model):
    _, agent = model((404, {"detail": "Not Found"}))
    with pytest.raises(errors.BadOption, match=r"Not Found.* ends in /v1"):
        replies(agent)


@pytest.mark.parametrize(
    "answer", [(500, {"error": f"Bearer {KEY}"}), {"error": f"{KEY}"}, wrong(KEY.encode())]
)
def test_secrets_are_nowhere(model, answer, caplog, sent_by):
    caplog.set_level(logging.DEBUG)
    server, _ = model(answer)
    url = server.url.replace("//", "//me:password-of-mine@")
    agent = ChatAgent("m", base_url=url, retry_seconds=0, http_client=sent_by)
    with pytest.raises(errors.AgentFault) as raised:
        replies(agent)
    seen = [
        *(repr(agent), str(agent.describe()), caplog.text),
        *traceback.format_exception(raised.value),
        *(str(each) for record in caplog.records for each in (record.args, record.msg)),
    ]
    for secret in (
        KEY,
        "password-of-mine",
        server.requests[0].headers["authorization"].removeprefix("Basic "),
    ):
        assert not [text for text in seen if secret in text]
    assert ("HTTP Request: POST" if sent_by else "selector") in caplog.text  # so DEBUG is captured


def test_the_key_is_sent(model, monkeypatch):
    server, agent = model(completion())
    replies(agent)
    monkeypatch.setenv("OTHER", " other\n")
    replies(ChatAgent("m", base_url=server.url, api_key_variable="OTHER"))
    monkeypatch.delenv("OTHER")
    replies(ChatAgent("m", base_url=server.url, api_key_variable="OTHER"))
    sent = [request.headers["authorization"] for request in server.requests]
    assert sent == [f"Bearer {KEY}", "Bearer other", "Bearer EMPTY"]


def test_the_password_of_a_url_is_sent(model):
    server, _ = model(completion())
    replies(ChatAgent("m", base_url=server.url.replace("//", "//me:p%40ss@") + "/v1/"))
    (request,) = server.requests
    assert (request.path, request.headers["authorization"]) == ("/v1/chat/completions", "Basic bWU6cEBzcw==")


def test_openais_own_server_needs_a_key(monkeypatch):
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(errors.AccessDenied, match="OPENAI_API_KEY"):
        replies(ChatAgent("gpt"))


def test_a_key_that_no_header_takes(model, monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-\nnext line")
    with pytest.raises(errors.BadOption, match="OPENAI_API_KEY contains no key") as raised:
        replies(model(completion())[1])
    assert "next line" not in str(raised.value)


def test_no_proxy_leads_to_this_machine(model, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://proxy.test")
    monkeypatch.setenv("ALL_PROXY", "http://proxy.test")
    (reply,) = replies(model(completion("Action: a"))[1])
    assert reply.action == "Action: a"


@pytest.mark.parametrize("answer", [never, (500, {})])
def test_cancelled_it_ends_at_once(model, answer, monkeypatch):
    """While it waits for a reply, and between two attempts."""
    inside.pause_model(monkeypatch, 20)
    server, agent = model(answer)
    asked_once = threading.Event()
    server.answer = lambda request: asked_once.set() or answer

    async def cancel():
        await agent.reset(Lines(), "o0", {})
        asking = asyncio.ensure_future(agent.act("o0", {}))
        await asyncio.to_thread(asked_once.wait)
        await asyncio.sleep(0.05)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        server.answer = in_turn(completion("Action: a"))
        await agent.reset(Lines(), "o0", {})
        reply = await agent.act("o0", {})
        await agent.close()
        return reply

    began = time.monotonic()
    assert asyncio.run(cancel()).action == "Action: a"
    assert time.monotonic() - began < 15


def test_the_package_openai_is_not_needed(model, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    (reply,) = replies(model(completion("Action: a"))[1])
    assert reply.action == "Action: a"
