"""A model that calls several functions at once: one call is played, and the record lists the others."""

from __future__ import annotations

import asyncio
import json

import pytest

import inside
from agentgym_gym import AsyncAgentGymEnv, errors
from agentgym_gym.evaluate import ChatAgent, RunFolder, evaluate_async, read_run, rescore
from fake_model import TOOLS, Lines, asked, call, completion, refused, replies
from fake_server import FakeServer, in_turn

FIELD = "parallel_tool_calls"
GET = {"count": 1, "item": "oak logs"}
THREE = completion(None, call("fly", {}, "a"), call("get", GET, "b"), call("inventory", {}, "c"))
NAMED = {"error": {"message": f"Unsupported parameter: '{FIELD}' is not supported with this model."}}
UNNAMED = {"error": {"message": "extra fields not permitted"}}


@pytest.fixture
def model(started):
    """Makes a server that answers in turn or by a function, and an agent of it that calls tools."""

    def make(*answers, **options):
        one_function = len(answers) == 1 and callable(answers[0])
        server = started(FakeServer(answers[0] if one_function else in_turn(*answers)))
        return server, ChatAgent("m", base_url=f"{server.url}/v1", tools="native", **options)

    return make


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    inside.pause_model(monkeypatch, 0.002)


def refusing(status, body, answer=THREE):
    """Return what a server answers that refuses the field."""
    return lambda request: refused(status, body) if FIELD in request.json else answer


def sent(server):
    """Return the values of the field in the requests; None where it was not sent."""
    return [request.get(FIELD) for request in asked(server)]


def warnings(caplog):
    logged = [record.agentgym for record in caplog.records if hasattr(record, "agentgym")]
    return [each for each in logged if each["event"] == "request field refused"]


def run_of(url, agent, folder, tasks=range(1), **options):
    """Play by native calls, and return the run as it is read from its folder."""

    async def play():
        def env():
            return AsyncAgentGymEnv("TextCraft", server=url, action_format="tool_calls", max_turns=2)

        facts = {"env_id": "agentgym/TextCraft-v0", "agent": "m", "options": {"action_format": "tool_calls"}}
        with RunFolder(folder, facts) as run:
            await evaluate_async(env, agent.clone, tasks, on_episode=run.add, **options)

    asyncio.run(play())
    return read_run(folder)


def test_of_three_calls_one_is_played_and_the_record_lists_the_others(model, textcraft_url, tmp_path):
    server, agent = model(THREE)
    run = run_of(textcraft_url, agent, tmp_path)
    (record,) = run.records
    assert record.parse_errors == {}
    for step in record.steps:
        assert step["action"] == "get 1 oak logs"
        assert step["ignored_actions"] == ['{"name": "fly", "arguments": "{}"}', "inventory"]
        assert step["played_call"] == 1
        assert [made["id"] for made in step["tool_calls"]] == ["a", "b", "c"]
    assert sent(server) == [False, False]
    *_, made, first, second, third = asked(server)[1]["messages"]
    assert [each["id"] for each in made["tool_calls"]] == ["a", "b", "c"]
    assert [each["tool_call_id"] for each in (first, second, third)] == ["a", "b", "c"]
    assert second["content"] == record.messages[2]["content"]
    assert first["content"] == third["content"]
    assert "ignored" in first["content"]
    observations = [each["content"] for each in record.messages if each["role"] == "user"]
    assert not any("ignored" in text or "inventory" in text for text in observations[1:])
    assert rescore(run).records == run.records
    lines = (tmp_path / "episodes.jsonl").read_text().splitlines()
    assert "ignored_actions" in json.loads(lines[0])["steps"][0]


@pytest.mark.parametrize(
    ("status", "body"), [("400 Bad", NAMED), ("422 Bad", NAMED), ("400 Bad", UNNAMED), ("400 Bad", None)]
)
def test_a_server_that_refuses_the_field_is_sent_it_no_more(
    model, textcraft_url, tmp_path, caplog, status, body
):
    server, agent = model(refusing(status, body))
    run = run_of(textcraft_url, agent, tmp_path, range(3), concurrency=1)
    assert sent(server) == [False, *[None] * 6]
    for record in run.records:
        assert [step["retries"] for step in record.steps] == [0, 0]  # it is no fault of the server
        assert record.steps[0]["ignored_actions"][1] == "inventory"
    (warning,) = warnings(caplog)
    assert warning == {
        "event": "request field refused",
        "server": f"{server.url}/v1",
        "field": FIELD,
        "status": int(status[:3]),
    }


def test_it_is_logged_once_though_many_are_refused_at_a_time(model, textcraft_url, tmp_path, caplog):
    server, agent = model(refusing("400 Bad", NAMED))
    run_of(textcraft_url, agent, tmp_path, range(8), concurrency=8)
    assert sent(server).count(False) <= 8
    assert sent(server).count(None) == 16
    assert len(warnings(caplog)) == 1


def test_a_mistake_that_is_not_in_the_field_is_shown_as_before(model, caplog):
    server, agent = model(
        refusing("400 Bad", UNNAMED, refused("400 Bad", {"error": {"message": "bad top_p"}}))
    )
    with pytest.raises(errors.BadOption, match="HTTP 400: bad top_p"):
        replies(agent, env=Lines(tools=TOOLS))
    assert set(sent(server)) == {False, None}
    assert not warnings(caplog)


@pytest.mark.parametrize(("status", "body"), [("422 Bad", UNNAMED), ("404 Bad", NAMED), ("403 Bad", NAMED)])
def test_other_rejections_do_not_remove_the_field(model, status, body):
    server, agent = model(refusing(status, body))
    with pytest.raises(errors.SetupError):
        replies(agent, env=Lines(tools=TOOLS))
    assert sent(server) == [False]


def test_a_server_that_has_accepted_the_field_once_is_not_suspected(model, caplog):
    server, agent = model(THREE, refused("400 Bad", UNNAMED))
    with pytest.raises(errors.ConversationRejected, match="not permitted"):
        replies(agent, 2, env=Lines(tools=TOOLS))
    assert set(sent(server)) == {False}
    assert not warnings(caplog)


def test_a_conversation_that_does_not_fit_does_not_rule_out_the_field(model):
    overflow = {"error": {"message": "This model's maximum context length is 9 tokens", "code": FIELD}}
    server, agent = model(refused("400 Bad", overflow), THREE)
    (reply,) = replies(agent, env=Lines(tools=TOOLS))
    assert (reply.ending, sent(server)) == ("context_overflow", [False])
    replies(agent, env=Lines(tools=TOOLS))
    assert sent(server) == [False, False]


def test_a_fault_between_is_tried_again_with_the_field(model):
    """As long as it is not known that the server refuses it."""
    server, agent = model(
        refused("400 Bad", UNNAMED), refused("503 Busy"), refused("400 Bad", UNNAMED), THREE
    )
    replies(agent, 2, env=Lines(tools=TOOLS))
    assert sent(server) == [False, None, False, None, None]


def test_the_field_is_sent_only_with_tools_and_a_value_of_ones_own_is_kept(model, started):
    server, agent = model(THREE, sampling={FIELD: True})
    replies(agent, env=Lines(tools=TOOLS))
    assert sent(server) == [True]
    text = started(FakeServer(in_turn(completion())))
    replies(ChatAgent("m", base_url=f"{text.url}/v1"))
    assert FIELD not in asked(text)[0]


def test_a_copy_in_another_process_remembers_what_was_refused(model):
    import pickle

    server, agent = model(refusing("400 Bad", NAMED))
    replies(agent, env=Lines(tools=TOOLS))
    copied = pickle.loads(pickle.dumps(agent))  # noqa: S301 - our own
    replies(copied, env=Lines(tools=TOOLS))
    assert sent(server) == [False, None, None]
