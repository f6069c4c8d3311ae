"""What holds of the wire of every environment: a reply that breaks the protocol is a fault, never a score."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentgym_gym import environments, errors
from agentgym_gym.calls import Reply
from any_server import AnyServer
from fake_server import Request

NOT_GIVEN = object()
WRONG = {
    "text": (None, 1, True, [], {}, NOT_GIVEN),
    "number": (None, "1", True, [], {}, float("inf"), float("nan"), NOT_GIVEN),
    "flag": (None, 1, 0.0, "true", [], NOT_GIVEN),
    "texts": (None, "x", 1, [1], NOT_GIVEN),
    "id": (None, "0", True, 1.0, [], {}, NOT_GIVEN),
    "page": (None, 1, True, [], {}),
    "page and null": (None, 1, "x", [], {}, [1, None]),
}
"""Values that a field of a kind cannot have."""

TURN = {"observation": "text", "reward": "number", "done": "flag"}
STATE = {"state": "text", "reward": "number", "done": "flag"}
TOOLS = dict.fromkeys(("Weather", "Movie", "Academia", "Sheet", "TODOList"), TURN)

STEP = {
    "TextCraft": TURN,
    "BabyAI": TURN | {"score": "number"},
    "Maze": TURN,
    "Wordle": TURN,
    "SciWorld": TURN | {"score": "number"},
    "ALFWorld": TURN | {"available_actions": "texts"},
    "WebArena": {"observation": "text", "reward": "number", "terminated": "flag"},
    "MiniWoB": TURN,
    "WebShop": STATE,
    "SQLGym": STATE,
    "SearchQA": TURN,
    **TOOLS,
}
RESET = {
    "TextCraft": {"observation": "text"},
    "BabyAI": {"observation": "text"},
    "Maze": {"observation": "text"},
    "Wordle": {"observation": "text"},
    "SciWorld": {"observation": "text", "task_description": "text", "score": "number", "done": "flag"},
    "ALFWorld": {"observation": "text", "available_actions": "texts"},
    "WebArena": {"object": "text"},
    "MiniWoB": {"observation": "text", "goal": "text"},
    "WebShop": "page and null",
    "SQLGym": "page and null",
    "SearchQA": "page",
    **dict.fromkeys(TOOLS, "page"),
}
BARE_ID = {"WebShop", "SQLGym", "SearchQA", *TOOLS}
CREATE = {
    name: "id" if name in BARE_ID else {"env_idx" if name == "WebArena" else "id": "id"} for name in STEP
}
FORMS = {"create": CREATE, "reset": RESET, "step": STEP}
"""The fields that each reply must have, with their kinds; or the kind of the whole reply."""

each_environment = pytest.mark.parametrize("environment", environments(), ids=lambda e: e.name)
each_stage = pytest.mark.parametrize("stage", FORMS)


@pytest.fixture
def server(environment, started):
    return started(AnyServer(environment, pays=0))


def flow_of(environment, stage):
    wire = environment.wire
    flows = {
        "create": lambda: wire.create(0),
        "reset": lambda: wire.reset(0, 0),
        "step": lambda: wire.step(0, "x"),
    }
    return flows[stage]()


def answer_of(server, call):
    answer = server.answer(Request(call.method, call.path, "", {}, call.content or b"", b""))
    if isinstance(answer, bytes):
        return answer.partition(b"\r\n\r\n")[2]
    if server.environment.name == "MiniWoB":
        answer["goal"] = "goal"
    return json.dumps(answer).encode()


def send(environment, stage, content, server, status=200):
    """Answer the first call of a flow by some content, and further ones well; return its result."""
    flow = flow_of(environment, stage)
    call = next(flow)
    try:
        call = flow.send(Reply(call, status, content))
        while True:
            call = flow.send(Reply(call, 200, answer_of(server, call)))
    except StopIteration as stop:
        return stop.value


def wrong_replies(good: Any, form: Any):
    if isinstance(form, str):
        yield from (value for value in WRONG[form] if value is not NOT_GIVEN)
        return
    yield from ([], "x", None, 1)
    for field, kind in form.items():
        assert field in good
        for value in WRONG[kind]:
            changed = {**good, field: value}
            if value is NOT_GIVEN:
                del changed[field]
            yield changed


@each_environment
@each_stage
def test_a_reply_that_breaks_the_protocol_is_a_fault(environment, stage, server):
    good = answer_of(server, next(flow_of(environment, stage)))
    send(environment, stage, good, server)
    number = 0
    for wrong in wrong_replies(json.loads(good), FORMS[stage][environment.name]):
        number += 1
        content = json.dumps(wrong).replace("Infinity", "1e400").encode()
        with pytest.raises(errors.BadReply):
            send(environment, stage, content, server)
    assert number >= 5


@each_environment
@each_stage
@pytest.mark.parametrize("text", ["", "0", "The task with environment 0 has finished."])
def test_any_error_is_a_fault(environment, stage, server, text):
    content = json.dumps({"error": text}).encode()
    with pytest.raises(errors.EnvironmentFailed):
        send(environment, stage, content, server)


@each_environment
@each_stage
@pytest.mark.parametrize(
    ("status", "content"), [(500, b"Internal Server Error"), (404, b"{}"), (200, b""), (200, b"{")]
)
def test_an_invalid_reply_is_a_fault(environment, stage, server, status, content):
    with pytest.raises((errors.ServerError, errors.BadReply)):
        send(environment, stage, content, server, status)
