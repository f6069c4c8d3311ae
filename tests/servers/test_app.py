"""What is common to all local servers: their options, and what of a request is read."""

from __future__ import annotations

import asyncio
import re
import time

import httpx
import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import ServerOptions, server_kind, servers
from in_process import in_process, posted
from needs import with_needs

QUICK = {"textcraft", "maze", "alfworld", "sheet", "todolist"}
each_server = pytest.mark.parametrize("name", with_needs(servers()))
each_that_is_made = pytest.mark.parametrize(
    "name",
    [
        each if each.values[0] in QUICK else pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow])
        for each in with_needs(servers())
    ],
)
JSON = {"content-type": "application/json"}
LMRL = {"maze", "wordle"}  # whose routes begin with their names


def route(name: str, what: str) -> str:
    return f"/{name}/{what}" if name in LMRL else f"/{what}"


def listed(name, app):
    (reply,) = in_process(app, ("GET", route(name, "list_envs") if name == "maze" else "/list_envs", {}))
    return reply.json()


def refused(reply: httpx.Response) -> str:
    """Return why a request failed, from either form of the errors of AgentGym's servers."""
    if reply.status_code == 500:
        assert reply.headers["content-type"] == "text/plain; charset=utf-8"
        status, _, reason = reply.text.partition(": ")
        assert status == "Internal Server Error"
        return reason
    assert (reply.status_code, list(reply.json())) == (200, ["error"])
    return reply.json()["error"]


# --- options ---


@pytest.mark.parametrize(
    ("wrong", "must_be"),
    [
        ({"max_envs": 0}, "1 or more"),
        ({"max_body_bytes": -5}, "1 or more"),
        ({"keep_seconds": 0}, "above 0"),
        ({"keep_seconds": float("nan")}, "above 0"),
        ({"seed": -1}, "0 or more"),
    ],
    ids=str,
)
def test_a_number_out_of_range_is_refused(wrong, must_be):
    ((name, value),) = wrong.items()
    told = rf"^{name}={value} should be {must_be}$"
    with pytest.raises(BadOption, match=told):
        ServerOptions(**wrong)
    with pytest.raises(BadOption, match=told):
        server_kind("movie").app(**wrong)


@each_server
def test_a_server_takes_the_options_that_it_lists_and_no_other(name, tmp_path):
    kind = server_kind(name)
    for option, value in (("seed", 0), ("data", tmp_path), ("twin", True), ("speed", 1)):
        if option not in kind.takes:
            with pytest.raises(BadOption, match=f"{kind.title} server takes no {option}"):
                kind.app(**{option: value})


# --- how many environments there are, and for how long ---


@each_that_is_made
def test_a_full_server_refuses_another_environment_and_reads_no_more_than_it_may(name):
    app = server_kind(name).app(max_envs=2, max_body_bytes=50)
    one, other, full = posted(app, *[(route(name, "create"), {"id": 0})] * 3)
    assert (one.status_code, other.status_code) == (200, 200)
    assert re.search(r"has 2 environments.*in the last 3600 s.*--max-envs", refused(full))
    assert len(listed(name, app)) == 2
    step = ("POST", route(name, "step"))
    fits, larger = in_process(app, (*step, {"content": b" " * 50}), (*step, {"content": b" " * 51}))
    assert fits.status_code in {400, 422}  # 400 as on AgentGym's server of WebArena
    assert (larger.status_code, larger.headers["connection"]) == (413, "close")
    assert "larger than 50 bytes" in larger.json()["detail"]


@each_that_is_made
def test_unused_environments_make_place(name):
    app = server_kind(name).app(max_envs=1, keep_seconds=1e-9)
    made = [reply.json() for reply in posted(app, *[(route(name, "create"), {"id": 0})] * 3)]
    ids = [next(iter(each.values())) if len(each) == 1 else each["id"] for each in map(as_fields, made)]
    assert len(set(ids)) == 3
    assert listed(name, app) == ids[2:]


def as_fields(made):
    return made if isinstance(made, dict) else {"id": made}


def test_ids_count_up_and_are_not_used_again():
    app = server_kind("textcraft").app(max_envs=2)
    create, close = ("/create", {}), ("/close", {"id": 0})
    replies = posted(app, create, create, close, close, create, ("/step", {"id": 0, "action": "inventory"}))
    one, other, *closed, third, gone = [reply.json() for reply in replies]
    assert ([each["id"] for each in (one, other, third)], closed) == ([0, 1, 2], [True, False])
    assert gone == {"error": "The id 0 is not valid."}
    assert listed("textcraft", app) == [1, 2]


@pytest.mark.parametrize("name", ["sqlgym", "webshop"])
def test_where_ids_are_to_be_new_they_begin_anywhere(name):
    ids = [
        reply.json() for _ in range(2) for reply in posted(server_kind(name).app(), *[("/create", {})] * 2)
    ]
    assert len(set(ids)) == 4
    assert (ids[1] - ids[0], ids[3] - ids[2]) == (1, 1)


def test_unused_environments_are_forgotten_when_another_is_made(monkeypatch):
    now, clock = [0.0], time.monotonic
    monkeypatch.setattr(time, "monotonic", lambda: clock() + now[0])
    app = server_kind("textcraft").app(keep_seconds=6_000)
    posted(app, *[("/create", {})] * 4)
    now[0] = 5_000.0
    posted(app, ("/step", {"id": 1, "action": "inventory"}))
    now[0] = 6_000.0
    assert listed("textcraft", app) == [0, 1, 2, 3]
    posted(app, ("/create", {}))
    assert listed("textcraft", app) == [1, 4]
    now[0] = 11_000.0
    posted(app, ("/create", {}))
    assert listed("textcraft", app) == [4, 5]


def test_an_environment_that_cannot_be_made_takes_no_place():
    app = server_kind("sheet").app(max_envs=1)
    *failed, made = posted(app, *[("/create", {"id": 999})] * 3, ("/create", {"id": 0}))
    assert [reply.status_code for reply in failed] == [500] * 3
    assert listed("sheet", app) == [made.json()]


# --- what is read ---


@pytest.mark.parametrize("size", [2**20, 2**20 + 1, 5 * 2**20])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_request_may_have_a_mebibyte(local_url, size, streamed):
    body = b'{"id": 99999, "action": "%s"}' % (b"x" * (size - 27))
    assert len(body) == size
    pieces = (body[start : start + 65536] for start in range(0, size, 65536))
    with httpx.Client(base_url=local_url("textcraft")) as client:
        reply = client.post("/step", content=pieces if streamed else body, headers=JSON)
        assert reply.status_code == (200 if size <= 2**20 else 413)
        assert client.get("/").status_code == 200


STEP = {"type": "http", "method": "POST", "path": "/step", "headers": [], "query_string": b""}


def test_a_body_without_end_is_not_read_on():
    received, sent = [], []

    async def receive():
        received.append(1)
        return {"type": "http.request", "body": b"x" * 10, "more_body": True}

    async def send(message):
        sent.append(message)

    asyncio.run(server_kind("textcraft").app(max_body_bytes=95)(STEP, receive, send))
    assert len(received) == 10
    assert sent[0]["status"] == 413


def test_a_client_that_hangs_up_is_let_go():
    sent = []

    async def receive():
        return {"type": "http.disconnect"}

    async def send(message):
        sent.append(message)

    asyncio.run(server_kind("textcraft").app()(STEP, receive, send))
    assert not sent


def test_a_step_is_not_delayed_by_the_socket(local_url):
    # Nagle's algorithm, where it is left on, makes each take 40 ms.
    taken = []
    with httpx.Client(base_url=local_url("textcraft")) as client:
        for _ in range(25):
            began = time.perf_counter()
            client.post("/step", json={"id": 99999, "action": "inventory"})
            taken.append(time.perf_counter() - began)
    assert min(taken) < 0.02  # not the median, for the machine may be busy
