"""Every wire against recordings of AgentGym's own servers: the same bytes out, the right reading back.

An exchange that our wire would send is played: the wire must ask for exactly what was recorded, and read the
reply as the outcome or the fault that it is. All others must be of a kind that is named here, so that nothing
in a recording goes unexplained.
"""

from __future__ import annotations

import json
from collections import Counter

import pytest

import agentgym_gym
from agentgym_gym import errors
from agentgym_gym.wire import Outcome, Reply, Start

FILES = {"TextCraft": ["textcraft.jsonl", "textcraft_all544.jsonl.gz"]}


def flow_of(wire, row):
    """Return the flow of ours that sends what was recorded, or why there is none."""
    body, path = row["json_body"], row["path"]
    flow = None
    if row["method"] == "GET":
        reason = "a page that we do not ask for"
        flow = wire.identify() if path == "/" else None
    elif "raw_body" in row or not isinstance(body, dict):
        reason = "a body that is not a JSON object"
    elif path == "/create":
        reason = "a create with options that the server ignores"
        flow = wire.create(0) if body == {} else None
    else:
        reason = "a body with a field missing or of the wrong type"
        types = {key: type(value) for key, value in body.items()}
        if path == "/reset" and types == {"id": int, "data_idx": int}:
            flow = wire.reset(body["id"], body["data_idx"])
        elif path == "/step" and types == {"id": int, "action": str}:
            flow = wire.step(body["id"], body["action"])
        elif path == "/close" and types == {"id": int}:
            flow = wire.close(body["id"])
    return flow, reason


def content_of(row):
    return (
        row["response_text"].encode() if "response_text" in row else json.dumps(row["response_json"]).encode()
    )


def play(flow, row):
    call = next(flow)
    assert (call.method, call.path) == (row["method"], row["path"])
    assert (None if call.content is None else json.loads(call.content)) == row["json_body"]
    try:
        flow.send(Reply(call, row["status"], content_of(row)))
    except StopIteration as stop:
        return stop.value
    except errors.Fault as fault:
        return fault
    raise AssertionError("one call is all there is")


def check(row, result):
    said = row.get("response_json")
    if row["status"] != 200:
        assert isinstance(result, errors.ServerError)
    elif isinstance(said, dict) and "error" in said:
        assert isinstance(result, errors.EnvironmentFailed)
    elif row["path"] == "/create":
        assert result == said["id"]
    elif row["path"] == "/reset":
        assert isinstance(result, Start)
        assert result.observation == said["observation"]
        assert f"Goal: craft {result.goal}." in result.observation
    elif row["path"] == "/step":
        assert result == Outcome(said["observation"], said["reward"], said["done"])
    else:
        assert result is None


@pytest.mark.parametrize("environment", agentgym_gym.environments(), ids=lambda e: e.name)
def test_recordings(environment, recordings, capsys):
    played, passed_over = 0, Counter()
    for row in [row for name in FILES[environment.name] for row in recordings(name)]:
        flow, reason = flow_of(environment.wire, row)
        if flow is None:
            passed_over[reason] += 1
            continue
        check(row, play(flow, row))
        played += 1
    with capsys.disabled():
        print(f"\n{environment.name}: {played} exchanges played, {dict(passed_over)} not ours")  # noqa: T201
    assert played > 5000
