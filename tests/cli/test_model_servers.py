"""What becomes of an evaluation with the model servers of docs/model_errors.md: each answers on a real socket."""

from __future__ import annotations

import json
import time

import pytest

import inside
from fake_model import asked
from fake_server import FakeServer
from model_servers import BEHAVIOURS

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
