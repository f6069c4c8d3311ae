"""What becomes of an evaluation with the model servers of docs/model_errors.md, on real sockets."""

from __future__ import annotations

import json
import re
import time
from collections import Counter

import pytest

import inside
from fake_model import asked, completion
from fake_server import FakeServer
from game_server import GameServer
from model_servers import BEHAVIOURS, CALL, USAGE, blank

ALL = [each for group in BEHAVIOURS.values() for each in group]
FIRST = {next(each.name for each in group) for group in BEHAVIOURS.values()}
SECONDS = 30.0  # for a command, on a busy machine


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    inside.pause_model(monkeypatch, 0.01)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret-of-mine")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def test_there_are_many_reports_and_each_behaviour_has_its_own_name():
    assert len({each.name for each in ALL}) == len(ALL)
    assert len([each for each in ALL if each.report]) >= 80


@pytest.mark.parametrize(
    "behaviour",
    [
        pytest.param(each, id=each.name, marks=[] if each.name in FIRST else [pytest.mark.slow])
        for each in ALL
    ],
)
def test_a_model_server_of_the_table(run, started, textcraft_url, tmp_path, behaviour):
    server = started(FakeServer(behaviour.server()))
    words = ["eval", "TextCraft", "--model", "m", "--base-url", f"{server.url}/v1", "--server", textcraft_url]
    words += ["--tasks", "0:4", "--max-turns", 3, "--concurrency", 1, "--retry-seconds", 0.2]
    began = time.monotonic()
    result = run(*words, *behaviour.options, "--out", tmp_path / "run")
    assert time.monotonic() - began < SECONDS
    assert behaviour.printed in " ".join(result.output.split()), result.output
    assert "Traceback" not in result.output
    if behaviour.cause == "settings":
        assert result.exit_code == 2
        assert len(asked(server)) <= 12
        return
    summary = json.loads((tmp_path / "run" / "summary.json").read_text("utf-8"))
    assert summary["scored"] == behaviour.scored, result.output
    assert sum(summary["parse_errors"].values()) == behaviour.parse_errors
    assert summary["agent_faults"].get("ConversationRejected", 0) <= 2
    if behaviour.scored == 4:
        assert result.exit_code == 0
    last = asked(server)[-1]
    assert {name: last.get(name) for name in behaviour.sent} == behaviour.sent
    recorded = summary["run"].get("model_server", {}).get("refused", [])
    assert recorded == ([behaviour.printed] if behaviour.cause == "none" and behaviour.printed else [])


def played(run, url, server, folder):
    """Play 400 episodes, and return the summary and the episodes by task."""
    words = ["eval", "TextCraft", "--model", "m", "--base-url", f"{server.url}/v1", "--server", url]
    words += ["--tools", "native", "--tasks", "0:400", "--max-turns", 3, "--concurrency", 8, "--out", folder]
    result = run(*words)
    assert result.exit_code == 0, result.output
    lines = (folder / "episodes.jsonl").read_text("utf-8").splitlines()
    return json.loads((folder / "summary.json").read_text("utf-8")), {
        episode["task_id"]: (episode["success"], episode["score"], episode["turns"], episode["parse_errors"])
        for episode in map(json.loads, lines)
    }


@pytest.mark.slow
def test_empty_replies_and_rejected_calls_cost_a_turn_and_nothing_else(run, started, tmp_path):
    """Of 20 replies one is empty and one is a call that the server rejects; compared with the same as text.

    The server also rejects empty replies in the history.
    """
    made = Counter()
    rejections = [
        (400, {"error": {"message": "Failed to call a function.", "code": "tool_use_failed"}}),
        (500, {"error": {"message": "Failed to parse input at pos 3: <tool_call>{", "code": 500}}),
    ]

    def model(*, rejects):
        def answer(request):
            messages = request.json["messages"]
            replies = [message for message in messages if message["role"] == "assistant"]
            if blank(replies):
                return 400, {"error": {"message": "messages must have non-empty content"}}
            task = int(re.search(r"\d+", messages[1]["content"]).group())
            number = (3 * task + len(replies)) % 20
            made[rejects, number] += 1
            if number == 7:
                return completion("", usage={"prompt_tokens": 9, "completion_tokens": 1})
            if number == 13:
                return rejections[task % 2] if rejects else completion("Hm.", usage=USAGE)
            return CALL

        return started(FakeServer(answer))

    results = []
    for rejects in (True, False):
        url = started(GameServer()).url
        results.append(played(run, url, model(rejects=rejects), tmp_path / str(rejects)))
    (summary, episodes), (without, plain) = results
    assert summary["scored"] == summary["episodes"] == len(episodes) == 400
    assert summary["agent_faults"] == summary["faults"] == {}
    assert summary["parse_errors"] == {"NoAction": made[True, 7] + made[True, 13]}
    assert episodes == plain
    assert 0 < summary["success_rate"] < 1
    for measure in (
        "success_rate",
        "success_interval",
        "mean_score",
        "mean_turns",
        "parse_errors",
        "endings",
    ):
        assert summary[measure] == without[measure], measure
