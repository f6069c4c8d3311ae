"""What a model server rejects: a conversation, a field, the system role or the model's own call."""

from __future__ import annotations

import asyncio
import logging
import pickle

import pytest

import inside
from agentgym_gym import AsyncAgentGymEnv, errors
from agentgym_gym.evaluate import ChatAgent, ReplayAgent, RunFolder, evaluate_async, read_run, rescore
from fake_model import Lines, asked, call, completion, replies
from fake_server import FakeServer, http

BAD = (400, {"error": {"message": "this conversation is bad"}})
FAILED = {"code": "tool_use_failed", "failed_generation": '{"name": "inventory"}'}
GROQ = (400, {"error": {"message": "no", **FAILED}})
PAGE = http(b"<!DOCTYPE html><title>Sign in</title>")


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    inside.pause_model(monkeypatch, 0.002)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-mine")


@pytest.fixture
def serving(started):
    """Makes a server that answers by a function, and an agent of it."""

    def make(answer, **options):
        server = started(FakeServer(answer))
        return server, ChatAgent("m", base_url=f"{server.url}/v1", **options)

    return make


def outcomes(agent, conversations, turns=2):
    """Return how each conversation ended: None, or the name of the error."""

    async def play():
        ended = []
        for number in range(conversations):
            try:
                await agent.reset(Lines(), "", {})
                for turn in range(turns):
                    await agent.act(f"o{turn}" if turn else f"task {number}", {})
                ended.append(None)
            except (errors.AgentFault, errors.SetupError) as error:
                ended.append(error.kind)
        await agent.close()
        return ended

    return asyncio.run(play())


def rejecting(*numbers):
    """Return what answers requests, and rejects the second turn of the conversations with these numbers."""

    def answer(request):
        messages = request.json["messages"]
        of_these = messages[1]["content"] in {f"task {number}" for number in numbers}
        return BAD if of_these and len(messages) > 2 else completion()

    return answer


@pytest.mark.parametrize(
    ("rejected", "ended"),
    [
        ({1}, [None, "ConversationRejected", None, None]),
        ({0, 1}, ["ConversationRejected", "ConversationRejected", None, None]),
        ({0, 1, 3}, ["ConversationRejected", "ConversationRejected", None, "ConversationRejected"]),
        ({1, 2, 3}, [None, "ConversationRejected", "ConversationRejected", "BadOption"]),
    ],
)
def test_three_rejected_conversations_in_a_row_are_the_settings(serving, rejected, ended):
    _, agent = serving(rejecting(*rejected))
    assert outcomes(agent, 4) == ended


def test_a_rejection_before_the_first_completion_is_the_settings(serving):
    _, agent = serving(lambda request: BAD)
    assert outcomes(agent, 2) == ["BadOption", "BadOption"]


@pytest.mark.parametrize(
    "message",
    [
        "Failed to parse tool schema: unknown type 'decimal'",
        "Invalid 'tools[0].function.name': string does not match pattern",
        "Failed to validate function parameters",
        "messages[2]: could not parse tool call",
    ],
)
def test_an_error_about_the_tools_of_the_run_is_not_the_model_s(serving, message):
    _, agent = serving(lambda request: (400, {"error": {"message": message}}))
    with pytest.raises(errors.BadOption, match="rejects the request"):
        replies(agent)


def test_a_key_that_is_rejected_midway_ends_the_run(serving):
    answers = [completion(), (401, {"error": {"message": "expired"}})]
    _, agent = serving(lambda request: answers.pop(0))
    assert outcomes(agent, 1) == ["AccessDenied"]


def test_a_page_after_completions_is_a_fault_that_is_retried(serving):
    answers = [completion(), PAGE, PAGE, PAGE, completion("Action: b")]
    _, agent = serving(lambda request: answers.pop(0))
    _, second = replies(agent, 2)
    assert (second.action, second.step["retries"]) == ("Action: b", 3)


def test_a_page_after_a_fault_of_another_kind_is_not_the_second(serving):
    answers = [PAGE, (503, {}), completion("Action: a")]
    _, agent = serving(lambda request: answers.pop(0))
    assert replies(agent)[0].action == "Action: a"


def test_an_agent_without_retries_names_another_api_at_its_second_episode(serving):
    server, agent = serving(lambda request: PAGE, retry_seconds=0)
    assert outcomes(agent, 2) == ["BadCompletion", "BadOption"]
    assert len(asked(server)) == 2


def test_a_refused_field_is_left_out_by_all_clones_and_logged_once(serving, caplog):
    def answer(request):
        refused = {"temperature", "seed"} & request.json.keys()
        message = f"{min(refused)} is not supported" if refused else ""
        return (400, {"error": {"message": message}}) if refused else completion()

    caplog.set_level(logging.WARNING)
    server, agent = serving(answer, sampling={"temperature": 0.0, "top_p": 0.5}, seed=3)
    replies(agent, 2)
    replies(agent.clone(), 2)
    replies(pickle.loads(pickle.dumps(agent)), 2)  # noqa: S301 - our own
    assert len(asked(server)) == 2 + 6
    assert {tuple(sorted(sent.keys() - {"model", "messages"})) for sent in asked(server)[2:]} == {("top_p",)}
    logged = [each.agentgym["field"] for each in caplog.records if hasattr(each, "agentgym")]
    assert logged == ["seed", "temperature"]
    assert agent.served()["refused"] == ["seed is not sent", "temperature=0.0 is not sent"]


def test_the_system_prompt_is_part_of_the_first_user_message_on_request(serving):
    server, agent = serving(lambda request: completion(), system_role="user")
    replies(agent, 2)
    assert [[message["role"] for message in sent["messages"]] for sent in asked(server)] == [
        ["user"],
        ["user", "assistant", "user"],
    ]
    assert asked(server)[1]["messages"][0]["content"] == "Play.\n\no0"
    assert agent.describe()["system_role"] == "user"
    assert "refused" not in agent.served()


def test_messages_without_text_are_never_sent(serving):
    server, agent = serving(lambda request: completion(" \n", usage={"completion_tokens": 2}))

    async def play():
        await agent.reset(Lines(), "o0", {})
        for observation in ("o0", "", "o2"):
            await agent.act(observation, {})
        await agent.close()

    asyncio.run(play())
    assert [message["content"] for message in asked(server)[-1]["messages"]] == [
        *("Play.", "o0", "(empty)", "(empty)", "(empty)", "o2")
    ]


def test_a_rejected_call_is_a_turn_that_is_replayed_and_rescored_alike(serving, textcraft_url, tmp_path):
    """Though the text in the error could be read as an action."""

    def answer(request):
        replied = sum(message["role"] == "assistant" for message in request.json["messages"])
        return GROQ if replied == 1 else completion(None, call("inventory", {}))

    server, agent = serving(answer, tools="native")

    def env():
        return AsyncAgentGymEnv("TextCraft", server=textcraft_url, action_format="tool_calls", max_turns=3)

    def play(folder, make_agent):
        facts = {"env_id": "agentgym/TextCraft-v0", "agent": "m", "options": {"action_format": "tool_calls"}}
        with RunFolder(folder, facts) as run:
            asyncio.run(evaluate_async(env, make_agent, range(2), on_episode=run.add))
        return read_run(folder)

    run = play(tmp_path / "run", agent.clone)
    for record in run.records:
        assert record.parse_errors == {"NoAction": 1}
        assert record.replies[1] == '{"name": "inventory"}'
        assert record.steps[1]["server_error"] == "HTTP 400: no"
    assert {"role": "assistant", "content": '{"name": "inventory"}'} in asked(server)[-1]["messages"]
    assert rescore(run).records == run.records
    again = play(tmp_path / "again", lambda: ReplayAgent(tmp_path / "run"))
    assert [record.parse_errors for record in again.records] == [{"NoAction": 1}] * 2
