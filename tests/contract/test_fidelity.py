"""AgentGym's own client compared with what an agent is shown and paid here for the same exchanges.

Each recorded line holds what a call of AgentGym's client returned and its exchanges. Our wire is
given the same replies. Where the two may differ is named in DIFFERENCES; nothing else may.
"""

from __future__ import annotations

import ast
import json
from collections import Counter

import pytest

import agentgym_gym
from agentgym_gym import errors
from agentgym_gym.calls import Reply
from agentgym_gym.wire import Outcome, Score, Start

CLIENTS = {
    "TextCraftEnvClient": "TextCraft",
    "BabyAIEnvClient": "BabyAI",
    "SciworldEnvClient": "SciWorld",
    "MazeEnvClient": "Maze",
    "WordleEnvClient": "Wordle",
    "TodoEnvClient": "TODOList",
    "SqlGymEnvClient": "SQLGym",
    "SearchQAEnvClient": "SearchQA",
    "WebshopEnvClient": "WebShop",
    "AlfWorldEnvClient": "ALFWorld",
    "WebarenaEnvClient": "WebArena",
}

DIFFERENCES = {
    "it crashes": "an exception of its own where the server answered an error: here it is a fault",
    "it answers by itself": "a reply it cannot read, answered in its own words: here in ours",
    "it is not an episode": "creating, closing, observing before a reset: an agent sees nothing of it",
    "it puts its rules in front": "Maze's rules, before the first observation: here they are in the prompt",
    "it is shortened": "the recording itself holds only the beginning",
}


@pytest.fixture(scope="module")
def lines(recordings):
    """The recorded lines, each with the environment it belongs to and the line that follows."""
    rows = recordings("client_compare.jsonl") + recordings("client_compare2.jsonl")
    found, name = [], ""
    for row, following in zip(rows, [*rows[1:], None], strict=True):
        name = CLIENTS.get(row["tag"].partition(" ")[0], name)
        found.append((agentgym_gym.find(name), row, following))
    return found


def play(flow, exchanges):
    """Play a flow by the replies to the exchanges; return what it returned or the fault it raised."""
    try:
        call = next(flow)
        for method, path, body, status, answer in exchanges:
            asked = {k: str(v) for k, v in call.query.items()}
            assert (call.method, call.path) == (method, path.partition("?")[0])
            assert all(f"{key}={value}" in path for key, value in asked.items())
            # The order of the fields is another in this client than in the other recordings.
            assert (None if call.body is None else dict(call.body)) == body
            content = answer if status != 200 and isinstance(answer, str) else json.dumps(answer)
            call = flow.send(Reply(call, status, content.encode()))
    except StopIteration as stop:
        return stop.value
    except errors.Fault as fault:
        return fault
    raise AssertionError(f"{call} was not asked by AgentGym's client")


def step_output(text):
    """Return the fields of ``StepOutput(state=…, reward=…, done=…)``, read from its text."""
    call = ast.parse(text, mode="eval").body
    return {keyword.arg: ast.literal_eval(keyword.value) for keyword in call.keywords}


def env_id_of(body):
    return body["env_idx"] if "env_idx" in body else body["id"]


def compare_reset(environment, row, following):
    [first, *_] = row["wire"]
    body = dict(first[2])
    env_id = body.pop("env_idx", None) if "env_idx" in body else body.pop("id")
    [task_id] = [
        body[key] for key in ("data_idx", "game", "idx", "item_id", "session_id", "id", "seed") if key in body
    ][:1]
    exchanges = row["wire"]
    if following and following["tag"] == "observe":
        exchanges = [*exchanges, *following["wire"]]
    start = play(environment.wire.reset(env_id, task_id), exchanges)
    if row["client"].startswith("RAISES"):
        assert isinstance(start, errors.Fault)
        return None, "it crashes"
    assert isinstance(start, Start)
    if environment.name == "Maze":
        return start, "it puts its rules in front"
    if following and following["tag"] == "observe":
        assert start.observation == following["client"]
        return start, None
    if row["client"].endswith("…"):
        return start, "it is shortened"
    shown = row["client"]
    if shown[0] in "{[":
        shown = ast.literal_eval(shown)
        shown = shown["observation"] if isinstance(shown, dict) else shown[0]
    assert start.observation.endswith(shown)
    return start, None


def compare_step(environment, start, row):
    if row["client"].startswith("RAISES"):
        if row["wire"]:
            assert isinstance(play(environment.wire.step(*asked(row)), row["wire"]), errors.Fault)
        return "it crashes"
    if not row["wire"]:
        return "it answers by itself"
    env_id, action = asked(row)
    outcome = play(environment.wire.step(env_id, action), row["wire"])
    assert isinstance(outcome, Outcome)
    score_now = environment.wire.judge(start, 0.0, action, outcome)
    assert isinstance(score_now, Score)
    theirs = step_output(row["client"])
    assert outcome.observation == theirs["state"]
    assert score_now.agentgym_score == theirs["reward"]
    assert score_now.done == theirs["done"] or (environment.name == "BabyAI" and score_now.success)
    return None


def asked(row):
    body = row["wire"][0][2]
    return env_id_of(body), body["action"]


def test_observations_and_rewards_equal_agentgyms_client(lines, report_at_end):
    same, different = Counter(), Counter()
    starts = {}
    for environment, row, following in lines:
        path = row["wire"][0][1] if row["wire"] else ""
        if path.endswith("/reset"):
            start, why = compare_reset(environment, row, following)
            starts[environment.name] = start or starts.get(environment.name, Start(""))
        elif path.endswith("/step") or (not row["wire"] and "StepOutput" in row["client"]):
            why = compare_step(environment, starts[environment.name], row)
        else:
            why = "it is not an episode"
        if why is None:
            same[environment.name] += 1
        else:
            assert why in DIFFERENCES
            different[why] += 1
    report_at_end(f"AgentGym's client: {same.total()} calls alike {dict(same)}; others: {dict(different)}")
    assert set(same) | {"Maze"} == set(CLIENTS.values())
