"""What the servers of AgentGym show of an environment is what was last seen of it."""

from __future__ import annotations

import json

import pytest

from agentgym_gym import catalogue, errors
from agentgym_gym.calls import Reply
from agentgym_gym.wire import Outcome, Seen, Start

NAMES = {
    "TextCraft": "textcraft",
    "BabyAI": "babyai",
    "SciWorld": "sciworld",
    "ALFWorld": "alfworld",
    "Maze": "maze",
    "SearchQA": "searchqa",
    "Weather": "weather",
    "Movie": "movie",
    "Academia": "academia",
    "Sheet": "sheet",
    "TODOList": "todo",
}


def answered(flow, record):
    """Return what a flow of one call makes of a recorded reply, given twice where it is HTTP 500."""
    call = next(flow)
    content = json.dumps(record["response_json"]).encode() if record.get("response_json") is not None else b""
    reply = Reply(call, record["status"], content)
    try:
        again = flow.send(reply)
        assert (record["status"], again) == (500, call)
        flow.send(reply)
    except StopIteration as stop:
        return stop.value
    except errors.Fault:
        return None
    pytest.fail("it asks for more")


def id_of(record):
    asked = record["query"] or record["json_body"] or {}
    return asked.get("id") if "env_idx" not in asked else asked["env_idx"]


def looks_of(environment, records):
    """Yield what was last seen of an environment, and what its wire makes of the next look at it."""
    wire, seen = environment.wire, {}
    for record in records:
        path, env_id, body = record.get("path", ""), None, record.get("json_body")
        if "query" not in record or not isinstance(record["query"] or body or {}, dict):
            continue
        env_id = id_of(record)
        if not isinstance(env_id, int):
            continue
        task = (body or {}).get("data_idx", (body or {}).get("game", (body or {}).get("id")))
        if path.endswith("/reset"):
            start = answered(wire.reset(env_id, 0), record)
            if isinstance(start, Start):
                seen[env_id] = Seen(task, start)
        elif path.endswith("/step") and env_id in seen:
            outcome = answered(wire.step(env_id, ""), record)
            if isinstance(outcome, Outcome):
                seen[env_id].outcome = outcome
        elif path.endswith("/close"):
            seen.pop(env_id, None)
        elif path == next(wire.recognise(env_id, Seen(0, Start("")))).path:
            yield (
                seen.get(env_id),
                answered(wire.recognise(env_id, seen.get(env_id) or Seen(0, Start(""))), record),
            )


@pytest.mark.parametrize("name", NAMES)
def test_an_environment_is_known_by_what_it_shows(name, recordings):
    environment = catalogue.find(name)
    looks = list(looks_of(environment, recordings(f"{NAMES[name]}.jsonl")))
    known = [is_known for seen, is_known in looks if seen is not None]
    assert known.count(True) == len(known) >= 1, known
    assert None in [is_known for seen, is_known in looks if seen is None]
