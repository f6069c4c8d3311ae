"""A model behind OpenAI's chat protocol plays: what it is sent, and what becomes of what it replies."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import threading
import time

import httpx
import numpy as np
import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors
from agentgym_gym.evaluate import ChatAgent
from fake_model import TOOLS, Lines, asked, call, completion, replies
from fake_server import FakeServer, never


async def play(env, agent, task_id):
    """Play one task; return the rewards and the infos."""
    observation, info = await env.reset(options={"task_id": task_id})
    await agent.reset(env, observation, info)
    rewards, infos = [], [info]
    while True:
        reply = await agent.act(observation, infos[-1])
        if reply.action is None:
            return rewards, infos
        observation, reward, terminated, truncated, info = await env.step(reply.action)
        rewards.append(reward)
        infos.append(info)
        if terminated or truncated:
            return rewards, infos


def play_textcraft(url, agent, **options):
    async def whole():
        async with AsyncAgentGymEnv("TextCraft", server=url, **options) as env:
            try:
                return (*await play(env, agent, 0), env.system_prompt)
            finally:
                await agent.close()

    return asyncio.run(whole())


def test_it_plays_textcraft_in_text(model, textcraft_url):
    written = ["Thought: hm\n\nAction: inventory", "nothing", "Action: get 1 oak logs"]
    server, agent = model(*[completion(text) for text in written])
    rewards, infos, system_prompt = play_textcraft(textcraft_url, agent, max_turns=3)
    assert rewards == [0.0, 0.0, 0.0]
    assert [info["action"] for info in infos[1:]] == ["inventory", None, "get 1 oak logs"]
    assert infos[2]["parse_error"] == "NoAction"
    last = asked(server)[-1]
    assert set(last) == {"model", "messages"}
    assert [message["role"] for message in last["messages"]] == ["system", *["user", "assistant"] * 2, "user"]
    assert last["messages"][0]["content"] == system_prompt
    assert last["messages"][2]["content"] == written[0]
    assert "Inventory: " in last["messages"][3]["content"]


def test_it_plays_textcraft_by_native_tool_calls(model, textcraft_url):
    server, agent = model(
        completion("I look.", call("inventory", {}, "a")),
        completion(None, call("get", "{", "b")),
        completion(
            None,
            call("fly", {}, "c"),
            call("inventory", {}, "d"),
            call("get", {"count": 1, "item": "oak logs"}, "f"),
        ),
        completion("No call."),
        completion(None, call("get", {"count": 1, "item": "oak logs"}, "e")),
        tools="native",
    )
    _, infos, _ = play_textcraft(textcraft_url, agent, max_turns=5, action_format="tool_calls")
    played = [(info["action"], info.get("parse_error")) for info in infos[1:]]
    assert played == [
        ("inventory", None),
        (None, "BadArguments"),
        ("inventory", None),
        (None, "NoAction"),
        ("get 1 oak logs", None),
    ]
    requests = asked(server)
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format="tool_calls")
    assert requests[0]["tools"] == env.tools
    env.close()
    sent = requests[-1]["messages"]
    assert [message["role"] for message in sent[2:]] == [
        *("assistant", "tool"),
        *("assistant", "tool"),
        *("assistant", "tool", "tool", "tool"),
        *("assistant", "user"),
    ]
    assert sent[2] == {"role": "assistant", "content": "I look.", "tool_calls": [call("inventory", {}, "a")]}
    answered = {message["tool_call_id"]: message["content"] for message in sent if message["role"] == "tool"}
    assert list(answered) == ["a", "b", "c", "d", "f"]
    assert "Inventory: " in answered["a"]
    assert answered["d"] == answered["a"]  # the first call that can be read is played
    assert answered["c"] == answered["f"] == "Not carried out: one call per turn; this one was ignored."
    assert infos[3]["ignored_actions"] == [
        '{"name": "fly", "arguments": "{}"}',
        "get 1 oak logs",
    ]
    for message in sent:  # servers read the arguments again, and refuse what is no object
        for made in message.get("tool_calls", ()):
            assert isinstance(json.loads(made["function"]["arguments"]), dict)
    assert json.loads(sent[4]["tool_calls"][0]["function"]["arguments"]) == {"arguments": "{"}


def test_calls_are_recorded_with_the_text_around_them(model):
    _, agent = model(completion("I look.", call("get", '{"a": 1}', "x")), tools="native")
    (reply,) = replies(agent, env=Lines(tools=TOOLS))
    assert reply.text == 'I look.\n{"name": "get", "arguments": "{\\"a\\": 1}"}'
    assert reply.action["content"] == "I look."
    assert reply.action["tool_calls"] == [call("get", '{"a": 1}', "x")]
    assert reply.step["tool_calls"] == [{"name": "get", "arguments": '{"a": 1}', "id": "x"}]
    assert reply.step["finish_reason"] == "tool_calls"


@pytest.mark.parametrize("given", [(None, None), ("", ""), ("same", "same")])
def test_calls_without_ids_get_ids(model, given):
    made = [call("get", {}, identifier) for identifier in given]
    server, agent = model(completion(None, *made), tools="native")
    replies(agent, 2, env=Lines(tools=TOOLS))
    sent = asked(server)[1]["messages"]
    ids = [made["id"] for made in sent[2]["tool_calls"]]
    assert len(set(ids)) == 2
    assert [message["tool_call_id"] for message in sent[3:]] == ids


@pytest.mark.parametrize(
    "message",
    [
        {"function_call": {"name": "get", "arguments": "{}"}},
        {"tool_calls": [{"function": {"name": "get", "arguments": {}}}]},
        {"tool_calls": [{"function": {"name": "get", "arguments": None}, "id": 7}]},
        {"tool_calls": [{"function": {"name": "get"}, "id": None}]},
    ],
)
def test_calls_in_the_shapes_of_other_servers(model, message):
    _, agent = model(completion(None, **message), tools="native")
    (reply,) = replies(agent, env=Lines(tools=TOOLS))
    assert [made["function"] for made in reply.action["tool_calls"]] == [{"name": "get", "arguments": "{}"}]


def test_names_of_functions_are_sent_back_as_servers_take_them(model):
    server, agent = model(completion(None, call("get it, please! " * 9, {})), tools="native")
    first, _ = replies(agent, 2, env=Lines(tools=TOOLS))
    assert first.action["tool_calls"][0]["function"]["name"] == "get it, please! " * 9
    name = asked(server)[1]["messages"][2]["tool_calls"][0]["function"]["name"]
    assert name == ("get_it__please__" * 9)[:64]


def test_unrequested_calls_are_text(model):
    server, agent = model(completion("So:", call("get", {"a": 1})))
    first, _ = replies(agent, 2)
    assert first.action == 'So:\n{"name": "get", "arguments": "{\\"a\\": 1}"}'
    assert asked(server)[1]["messages"][2] == {"role": "assistant", "content": first.action}


def test_native_tools_need_an_environment_with_tools(model):
    _, agent = model(completion(), tools="native")
    with pytest.raises(errors.BadOption, match="tools='native' needs tools"):
        replies(agent)


@pytest.mark.parametrize(
    ("said", "meant", "thought"),
    [
        ({"content": ""}, "", None),
        ({"content": None}, "", None),
        ({"content": "a\ud800b"}, "a?b", None),
        ({"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}, "ab", None),
        (
            {"content": [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"text": "a"}]},
            "a",
            "hm",
        ),
        ({"content": None, "refusal": "I cannot."}, "I cannot.", None),
        ({"content": "a", "reasoning_content": "hm"}, "a", "hm"),
        ({"content": "a", "reasoning": "hm"}, "a", "hm"),
        ({"content": "a", "reasoning_content": None, "reasoning": ""}, "a", None),
        ({"content": "<think>hm</think>a"}, "<think>hm</think>a", None),
    ],
)
def test_how_a_message_is_read(model, said, meant, thought):
    _, agent = model(completion(**said))
    (reply,) = replies(agent)
    assert (reply.action, reply.step.get("reasoning")) == (meant, thought)


REASONING = {"content": "<think>first\n</think>\n\nAction: a", "reasoning_content": "then"}


def test_reasoning_is_not_sent_back(model):
    server, agent = model(completion(**REASONING))
    replies(agent, 2)
    assert asked(server)[1]["messages"][2] == {"role": "assistant", "content": "Action: a"}


def test_reasoning_is_sent_back_on_request(model):
    server, agent = model(completion(**REASONING), keep_reasoning=True)
    replies(agent, 2)
    assert asked(server)[1]["messages"][2] == {"role": "assistant", **REASONING}


@pytest.mark.parametrize(
    ("answer", "options", "ending", "text"),
    [
        (completion("Action: ge", finish_reason="length"), {}, "reply_cut", "Action: ge"),
        (completion("", finish_reason="length", reasoning="so"), {}, "reply_cut", ""),
        (completion("", finish_reason="length", usage={"completion_tokens": 9}), {}, "reply_cut", ""),
        (completion("", finish_reason="length"), {}, "context_overflow", None),
        (
            completion("", finish_reason="length", usage={"completion_tokens": 0}),
            {},
            "context_overflow",
            None,
        ),
        (completion("I m", finish_reason="content_filter"), {}, "content_filter", "I m"),
        (
            completion(None, call("get", '{"a'), finish_reason="length"),
            {"on_cut_reply": "play", "tools": "native"},
            "reply_cut",
            '{"name": "get", "arguments": "{\\"a"}',
        ),
    ],
)
def test_endings(model, answer, options, ending, text):
    _, agent = model(answer, **options)
    (reply,) = replies(agent, env=Lines(tools=TOOLS))
    assert (reply.action, reply.ending, reply.text) == (None, ending, text)


def test_a_cut_reply_is_played_on_request(model):
    _, agent = model(completion("Action: ge", finish_reason="length"), on_cut_reply="play")
    (reply,) = replies(agent)
    assert reply.action == "Action: ge"
    assert reply.step["finish_reason"] == "length"


def test_token_counts_of_the_server_are_recorded(model):
    usage = {
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "completion_tokens_details": {"reasoning_tokens": 5},
        "prompt_tokens_details": {"cached_tokens": 0},
    }
    strange = {"prompt_tokens": "11", "completion_tokens": -1, "prompt_tokens_details": [], "x": True}
    _, agent = model(completion(usage=usage), completion(usage=strange), completion(usage={}))
    first, second, _ = replies(agent, 3)
    assert first.step == {
        "retries": 0,
        "finish_reason": "stop",
        "prompt_tokens": 11,
        "completion_tokens": 7,
        "reasoning_tokens": 5,
        "cached_tokens": 0,
    }
    assert second.step == {"retries": 0, "finish_reason": "stop"}


def test_each_request_has_its_own_seed(model):
    server, agent = model(completion(), seed=5)
    replies(agent, 2, task_id=3, sample=1)
    replies(agent, 1, task_id=3, sample=1)
    replies(agent, 1, task_id=-1)
    words = [[5, 3, 1, 0], [5, 3, 1, 1], [5, 3, 1, 0], [5, 2**64 - 1, 0, 0]]
    expected = [int(np.random.SeedSequence(each).generate_state(1)[0]) % 2**31 for each in words]
    assert [request["seed"] for request in asked(server)] == expected


def test_sampling_parameters_are_sent_as_they_are(model):
    server, agent = model(
        completion(),
        sampling={"temperature": 0.5, "top_p": 0.9, "reasoning_effort": "low", "extra_body": {"top_k": 3}},
        max_tokens=9,
        stop=["\n", "end"],
    )
    replies(agent)
    (request,) = asked(server)
    del request["messages"]
    assert request == {
        "model": "m",
        "temperature": 0.5,
        "top_p": 0.9,
        "reasoning_effort": "low",
        "top_k": 3,
        "max_tokens": 9,
        "stop": ["\n", "end"],
    }


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"tools": "some"}, "tools='some' should be one of"),
        ({"on_cut_reply": "ask"}, "on_cut_reply='ask'"),
        ({"seed": -1}, "seed=-1"),
        ({"seed": True}, "seed=True"),
        ({"max_tokens": 0}, "max_tokens=0"),
        ({"stop": ["a", ""]}, "stop="),
        ({"stop": [1]}, "stop="),
        ({"timeout": 0}, "timeout=0"),
        ({"timeout": float("nan")}, "timeout=nan"),
        ({"retry_seconds": -1}, "retry_seconds=-1"),
        ({"history": "some"}, "history='some'"),
        ({"headers": {"Host": "a"}}, "headers"),
        ({"http_client": "no_such:client"}, "http_client"),
        ({"max_tokens_total": 0}, "max_tokens_total=0 should"),
        ({"max_cost": -1.0}, "max_cost=-1.0 should"),
        ({"max_cost": 1.0}, "max_cost=1.0 requires a price"),
        ({"requests_per_minute": 0}, "requests_per_minute=0 should"),
        ({"requests_per_minute": float("nan")}, "requests_per_minute=nan should"),
        ({"sampling": {"messages": []}}, "sampling cannot set 'messages'"),
        ({"sampling": {"extra_headers": {}}}, "sampling cannot set 'extra_headers'"),
        ({"sampling": {"extra_body": {"stream": True}}}, "sampling cannot set 'stream'"),
        ({"sampling": {"stop": "x"}, "stop": "y"}, "sampling sets 'stop', which is also"),
        ({"sampling": {"top_p": {1}}}, "should be JSON: Object of type set"),
        ({"sampling": {"top_p": float("nan")}}, "should be JSON: Out of range"),
        ({"base_url": "127.0.0.1:8000"}, "base_url='127.0.0.1:8000' is"),
        ({"base_url": "http://h:x/v1"}, "is not a URL"),
        ({"system_role": "developer"}, "system_role='developer' should be one of system, user"),
        ({"base_url": "http://h/v1?key=secret#top"}, r"base_url='http://h/v1\?key=\*\*\*' should not have"),
    ],
)
def test_invalid_arguments_of_an_agent(options, message):
    with pytest.raises(errors.BadOption, match=message) as raised:
        ChatAgent("m", **{"base_url": "http://h/v1", **options})
    assert "secret" not in str(raised.value)


def test_a_model_has_a_name():
    with pytest.raises(errors.BadOption, match="name of a model"):
        ChatAgent("")


def test_the_agent_returns_what_shapes_its_replies(model):
    server, agent = model(completion(), seed=2, history="turns:3", sampling={"temperature": 0.0})
    facts = agent.describe()
    assert json.loads(json.dumps(facts)) == facts
    assert (facts["model"], facts["base_url"], facts["tools"]) == ("m", f"{server.url}/v1", "none")
    assert (facts["seed"], facts["sampling"]) == (2, {"temperature": 0.0})
    assert facts["history"] == {"turns": 3, "tokens": None}
    assert agent.clone().describe() == facts


def test_openais_own_server_takes_the_newer_name_of_the_limit(monkeypatch):
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    sent = []

    def answer(request):
        sent.append(request)
        return httpx.Response(200, json=completion())

    transport = httpx.MockTransport(answer)
    replies(ChatAgent("gpt", max_tokens=7, http_client=lambda: httpx.AsyncClient(transport=transport)))
    body = json.loads(sent[0].content)
    assert sent[0].url.host == "api.openai.com"
    assert (body.get("max_completion_tokens"), body.get("max_tokens")) == (7, None)


def test_the_server_s_metadata_is_kept(model):
    one = {**completion(), "model": "m-2", "system_fingerprint": "fp1"}
    _, agent = model(
        one, {**one, "system_fingerprint": None, "model": 7}, {**one, "system_fingerprint": "fp0"}
    )
    replies(agent.clone(), 3)
    assert agent.served() == {"model": ["m-2"], "system_fingerprint": ["fp0", "fp1"]}


def test_an_agent_is_reset_before_it_acts(model):
    _, agent = model(completion())
    with pytest.raises(errors.BadOption, match="before reset"):
        asyncio.run(agent.act("o", {}))


def _pickled(agent):
    return pickle.loads(pickle.dumps(agent))  # noqa: S301 - our own


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, _pickled])
def test_agents_can_be_copied(model, copied):
    server, agent = model(completion("Action: a"), seed=1)

    async def both():
        await agent.reset(Lines(), "o0", {"task_id": 0})
        await agent.act("o0", {})
        other = copied(agent)
        await other.reset(Lines(), "o0", {"task_id": 0})
        await other.act("o0", {})
        await agent.close()
        await other.close()

    asyncio.run(both())
    first, second = asked(server)
    assert first == second
    assert server.connections == 2


def test_none_waits_for_a_reply_to_another():
    """Though few are sent at a time: many wait for a server that answers none of them."""
    with FakeServer(lambda request: never) as server:
        agents = [ChatAgent("m", base_url=server.url, timeout=120, retry_seconds=0) for _ in range(64)]

        async def all_of_them():
            for agent in agents:
                await agent.reset(Lines(), "o0", {})
            asking = [asyncio.ensure_future(agent.act("o0", {})) for agent in agents]
            until = time.monotonic() + 40  # before the server gives any of them up
            while len(server.requests) < 64 and time.monotonic() < until:  # noqa: ASYNC110 - of another thread
                await asyncio.sleep(0.01)
            for each in asking:
                each.cancel()
            await asyncio.gather(*asking, return_exceptions=True)
            await asyncio.gather(*(agent.close() for agent in agents))

        asyncio.run(all_of_them())
        assert len(server.requests) == 64


def test_several_play_at_once():
    """Each with its own connection, and without a wait for another."""
    together = threading.Barrier(32)

    def answer(request):
        together.wait(60)
        return completion()

    with FakeServer(answer) as server:
        agents = [ChatAgent("m", base_url=server.url)]
        agents += [agents[0].clone() for _ in range(31)]

        async def one(number, agent):
            await agent.reset(Lines(), f"first {number}", {"task_id": number})
            for turn in range(2):
                await agent.act(f"first {number}" if not turn else f"second {number}", {})
            await agent.close()

        async def all_of_them():
            await asyncio.gather(*(one(number, agent) for number, agent in enumerate(agents)))

        asyncio.run(all_of_them())
        assert server.connections == 32
        last = [request["messages"] for request in asked(server) if len(request["messages"]) == 4]
    assert sorted((sent[1]["content"], sent[3]["content"]) for sent in last) == sorted(
        (f"first {number}", f"second {number}") for number in range(32)
    )
