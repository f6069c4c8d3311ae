"""Function calls as actions: which of them ``step`` accepts, and its errors for the others."""

from __future__ import annotations

import asyncio
import json
from types import MappingProxyType

import gymnasium
import numpy as np
import pytest
from pydantic import BaseModel

import agentgym_gym
from agentgym_gym import FORMATS, AgentGymEnv, AgentGymVectorEnv, AsyncAgentGymEnv, ToolCall, errors
from agentgym_gym.actions import MAX_ACTION_CHARS
from agentgym_gym.envs.maze import MAZE
from agentgym_gym.envs.searchqa import SEARCHQA
from agentgym_gym.envs.textcraft import TEXTCRAFT, Get
from agentgym_gym.formats import Format, ParseResult, get_format

ARGUMENTS = {"count": 2, "item": "oak logs"}
OPENAI = {"id": "c1", "type": "function", "function": {"name": "get", "arguments": json.dumps(ARGUMENTS)}}


class Function(BaseModel):
    """As API clients have it."""

    name: str
    arguments: str


class Called(BaseModel):
    """As API clients have it."""

    id: str
    function: Function
    type: str = "function"


class Said(BaseModel):
    """As API clients have it."""

    role: str
    content: str | None = None
    tool_calls: list[Called] | None = None


CALLED = Called(id="c1", function=Function(name="get", arguments=json.dumps(ARGUMENTS)))

SHAPES = {
    "typed": ToolCall("get", ARGUMENTS),
    "typed, of text": ToolCall("get", json.dumps(ARGUMENTS)),
    "a read-only mapping": ToolCall("get", MappingProxyType(ARGUMENTS)),
    "dict": {"name": "get", "arguments": ARGUMENTS},
    "dict, of text": {"name": "get", "arguments": json.dumps(ARGUMENTS)},
    "another spelling": {"name": "GET", "arguments": ARGUMENTS},
    "in a namespace": {"name": "functions.get", "arguments": ARGUMENTS},
    "dict, of text with blanks": {"name": "get", "arguments": " " + json.dumps(ARGUMENTS) + "\n"},
    "call": OPENAI,
    "call of an object": {**OPENAI, "function": {"name": "get", "arguments": ARGUMENTS}},
    "list": [OPENAI],
    "tuple": (ToolCall("get", ARGUMENTS),),
    "message": {"role": "assistant", "content": None, "tool_calls": [OPENAI]},
    "message that talks, too": {"role": "assistant", "content": "Action: inventory", "tool_calls": [OPENAI]},
    "message of the older API": {"role": "assistant", "content": None, "function_call": OPENAI["function"]},
    "object": CALLED,
    "list of objects": [CALLED],
    "message of an object": Said(role="assistant", tool_calls=[CALLED]),
}

each_environment = pytest.mark.parametrize(
    "environment", agentgym_gym.environments(), ids=lambda each: each.name
)
each_shape = pytest.mark.parametrize("call", SHAPES.values(), ids=SHAPES)


def some_actions(environment):
    rng = np.random.default_rng(0)
    return [*environment.grammar.examples, *(environment.grammar.sample(rng) for _ in range(20))]


@pytest.fixture(scope="module")
def envs(textcraft_url):
    """A played and an awaited environment, and two at once."""
    sync = AgentGymEnv("TextCraft", server=textcraft_url, max_turns=None, render_mode="ansi")
    vector = AgentGymVectorEnv(2, "TextCraft", server=textcraft_url, max_turns=None)
    yield sync, vector
    sync.close()
    vector.close()


@pytest.fixture
def env(envs):
    envs[0].reset(options={"task_id": 0})
    return envs[0]


@each_shape
def test_a_call_is_played(envs, env, call):
    _, vector = envs
    observation, *_, info = env.step(call)
    assert info["action"] == "get 2 oak logs"
    assert "parse_error" not in info
    assert env.action_space.contains(call)
    vector.reset(options={"task_id": 0})
    actions = np.empty(2, dtype=object)
    actions[:] = [call, "Action: get 2 oak logs"]
    observations, *_ = vector.step(actions)
    assert observations == (observation, observation)
    assert vector.action_space.contains((call, "Action: inventory"))


def test_a_call_is_played_where_it_is_awaited(textcraft_url):
    async def play():
        async with AsyncAgentGymEnv("TextCraft", server=textcraft_url, max_turns=None) as env:
            await env.reset(options={"task_id": 0})
            return [(await env.step(call))[4]["action"] for call in SHAPES.values()]

    assert asyncio.run(play()) == ["get 2 oak logs"] * len(SHAPES)


MISTAKES = {
    "an unknown function": (ToolCall("fly", {}), "UnknownAction"),
    "an unknown argument": (ToolCall("get", {**ARGUMENTS, "from": "chest"}), "BadArguments"),
    "a missing argument": ({"name": "get", "arguments": {"count": 2}}, "BadArguments"),
    "no argument at all": ({"name": "get", "arguments": None}, "BadArguments"),
    "a wrong type": ({"name": "get", "arguments": {"count": "two", "item": "oak logs"}}, "BadArguments"),
    "out of range": ({"name": "get", "arguments": {"count": 0, "item": "oak logs"}}, "BadArguments"),
    "no object": ({"name": "get", "arguments": [2, "oak logs"]}, "BadArguments"),
    "text of no object": ({"name": "get", "arguments": "[2]"}, "BadArguments"),
    "text that is cut off": ({"name": "get", "arguments": '{"count": 2, "item": "oak'}, "BadArguments"),
    "a key twice": ({"name": "get", "arguments": '{"count":1,"count":2,"item":"stick"}'}, "BadArguments"),
    "no number": ({"name": "get", "arguments": {"count": float("nan"), "item": "stick"}}, "BadArguments"),
    "deep": ({"name": "get", "arguments": "[" * 9_000 + "]" * 1}, "BadArguments"),
    "endless digits": (ToolCall("get", '{"count": ' + "9" * 9_000 + ', "item": "stick"}'), "BadArguments"),
    "too long": (ToolCall("get", {"count": 1, "item": "x" * MAX_ACTION_CHARS}), "BadArguments"),
    "half a character": (ToolCall("get", '{"count": 1, "item": "\\ud800"}'), "BadArguments"),
    "several, of which none is read": ([ToolCall("fly"), ToolCall("get", "{")], "UnknownAction"),
    "several, the first with bad arguments": ([ToolCall("get", "{"), ToolCall("fly")], "BadArguments"),
    "none": ([], "NoAction"),
}


@pytest.mark.parametrize(("call", "kind"), MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_call_costs_a_turn_and_is_answered_in_the_words_of_a_call(env, call, kind):
    observation, reward, terminated, truncated, info = env.step(call)
    assert (info["parse_error"], info["action"], info["turn"]) == (kind, None, 1)
    assert (reward, terminated, truncated) == (0.0, False, False)
    assert "ignored_actions" not in info
    assert "\n" + str(ToolCall("get", {"count": 1, "item": "oak logs"})) in observation
    assert "call" in observation
    assert "Action:" not in observation
    observation.encode()
    env.render().encode()
    assert env.action_space.contains(call)


LOOK = ToolCall("inventory")
FLY = ToolCall("fly", {"to": "moon"})
BAD = ToolCall("get", '{"count": 2')
LONG = ToolCall("fly", {"to": "x" * 900})
ODD = ToolCall("fly", '{"to": "\ud800"}')

SEVERAL = {
    "two": ([ToolCall("get", ARGUMENTS), LOOK], 0, ["inventory"]),
    "the same twice": ({"role": "assistant", "tool_calls": [OPENAI, OPENAI]}, 0, ["get 2 oak logs"]),
    "one that is not read first": (
        [{"name": "fly", "arguments": {}}, OPENAI, ToolCall("get", "{")],
        1,
        [str(ToolCall("fly")), str(ToolCall("get", "{"))],
    ),
    "one that is not read last": ([OPENAI, FLY], 0, ['{"name": "fly", "arguments": {"to": "moon"}}']),
    "many": ([BAD, FLY, OPENAI, LOOK, BAD], 2, [str(BAD), str(FLY), "inventory", str(BAD)]),
    "a long one": ([LONG, OPENAI], 1, [str(LONG)[:200]]),
    "half a character": ([OPENAI, ODD], 0, [str(ODD).replace("\ud800", "?")]),
}


@pytest.mark.parametrize(("calls", "played", "ignored"), SEVERAL.values(), ids=SEVERAL)
def test_of_several_calls_the_first_is_played_and_the_others_are_listed(envs, env, calls, played, ignored):
    _, vector = envs
    observation, *_, info = env.step(calls)
    assert (info["action"], info["turn"], info["ignored_actions"]) == ("get 2 oak logs", 1, ignored)
    assert info["played_call"] == played
    assert "parse_error" not in info
    alone, *_, info = env.step("Action: inventory")
    assert "ignored_actions" not in info
    assert "played_call" not in info
    assert env.read(calls) == "get 2 oak logs"
    _, info = env.reset(options={"task_id": 0})
    assert "ignored_actions" not in info
    assert env.step(ToolCall("get", ARGUMENTS))[0] == observation  # the environment's own words
    assert env.step("Action: inventory")[0] == alone
    vector.reset(options={"task_id": 0})
    actions = np.empty(2, dtype=object)
    actions[:] = [calls, "Action: inventory"]
    observations, *_, infos = vector.step(actions)
    assert observations[0] == observation
    assert list(infos["_ignored_actions"]) == [True, False]
    assert infos["ignored_actions"][0] == ignored


def test_of_several_calls_one_is_played_where_it_is_awaited(textcraft_url):
    async def play():
        async with AsyncAgentGymEnv("TextCraft", server=textcraft_url, max_turns=None) as env:
            await env.reset(options={"task_id": 0})
            return [(await env.step(calls))[4] for calls, *_ in SEVERAL.values()]

    played = [(info["action"], info["ignored_actions"]) for info in asyncio.run(play())]
    assert played == [("get 2 oak logs", ignored) for *_, ignored in SEVERAL.values()]


def test_ignored_calls_of_the_turn_of_a_fault_are_listed(counted):
    server = counted()
    env = AgentGymEnv("TextCraft", server=server.url)
    env.reset(options={"task_id": 0})
    server.vanish_at = "/step"
    *_, truncated, info = env.step([OPENAI, ToolCall("inventory")])
    assert truncated
    assert (info["action"], info["ignored_actions"]) == ("get 2 oak logs", ["inventory"])
    assert info["fault"]
    env.close()


def test_an_unknown_function_is_never_forwarded(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, on_unknown="forward")
    env.reset(options={"task_id": 0})
    assert env.step({"name": "fly", "arguments": {"to": "moon"}})[4]["parse_error"] == "UnknownAction"
    env.close()


def test_a_message_without_a_call_is_its_text(env):
    assert env.step({"role": "assistant", "content": "Action: inventory"})[4]["action"] == "inventory"
    assert env.step(Said(role="assistant", content="Action: inventory"))[4]["action"] == "inventory"
    parts = [{"type": "text", "text": "Action: inven"}, {"type": "text", "text": "tory"}]
    assert env.step({"role": "assistant", "content": parts})[4]["action"] == "inventory"
    assert (
        env.step({"role": "assistant", "content": None, "tool_calls": None})[4]["parse_error"] == "NoAction"
    )


GARBAGE = {
    "no name": {"arguments": ARGUMENTS},
    "a name that is no text": {"name": 3, "arguments": ARGUMENTS},
    "arguments under another key": {"name": "get", "parameters": ARGUMENTS},
    "arguments that are no JSON": {"name": "get", "arguments": {"count": object()}},
    "arguments of bytes": ToolCall("get", b"{}"),
    "arguments in a circle": None,  # made below
    "another mapping": {"count": 2},
    "an empty mapping": {},
    "a list of text": ["inventory"],
    "a list of anything": [3],
    "calls that are no list": {"role": "assistant", "tool_calls": 3},
    "a message of a user": {"role": "user", "content": "Action: inventory"},
    "content that is no text": {"role": "assistant", "content": 3},
    "a class": Said,
}
_circle: dict[str, object] = {}
_circle["count"] = _circle
GARBAGE["arguments in a circle"] = {"name": "get", "arguments": _circle}


@pytest.mark.parametrize("call", GARBAGE.values(), ids=GARBAGE)
def test_garbage_is_the_programs_mistake_and_costs_no_turn(env, call):
    with pytest.raises(errors.BadOption, match=r"step takes|should be|has a name"):
        env.step(call)
    assert not env.action_space.contains(call)
    assert env.step("Action: inventory")[4]["turn"] == 1


@pytest.mark.parametrize("actions", [{"a": 1, "b": 2}, ToolCall("inventory"), None, 3, "ab", [OPENAI]])
def test_a_vector_takes_one_action_for_each(envs, actions):
    envs[1].reset(options={"task_id": 0})
    with pytest.raises(errors.BadOption, match="a sequence of 2 actions"):
        envs[1].step(actions)


def test_the_transcript_shows_the_call(env):
    env.step(OPENAI)
    env.step([ToolCall("inventory"), ToolCall("fly", '{"to": "\ud800"}')])
    assert '[agent]\n{"name": "get", "arguments": "{\\"count\\": 2' in env.render()
    assert '[agent]\n{"name": "inventory", "arguments": {}}\n{"name": "fly", ' in env.render()


def test_gymnasium_lets_calls_pass(textcraft_url, recwarn):
    env = gymnasium.make("agentgym/TextCraft-v0", server=textcraft_url, action_format="tool_calls")
    env.reset(options={"task_id": 0})
    assert env.step(OPENAI)[4]["action"] == "get 2 oak logs"
    assert env.step(env.action_space.sample())[4].get("parse_error") is None
    env.close()
    assert not recwarn.list


@each_environment
def test_any_action_survives_as_a_call(environment):
    env = AgentGymEnv(environment.name)
    for action in some_actions(environment):
        for arguments in (action.to_json(), json.dumps(action.to_json())):
            call = {"name": action.name(), "arguments": arguments}
            assert env.read(call) == str(action)
            assert env.action_space.contains({"id": "1", "type": "function", "function": call})
        for _ in range(2):
            arguments = json.dumps(arguments)
            assert env.read(ToolCall(action.name(), arguments)) == str(action)


SEARCH = type(SEARCHQA.grammar.examples[0])  # which has one argument, a text


@pytest.mark.parametrize(
    "arguments",
    ['"who wrote Faust"', '"\\"who wrote Faust\\""', '"7"', "7", '"[1]"', '"{"', '""', json.dumps("{}")],
)
def test_encoded_text_is_not_taken_for_the_only_argument(arguments):
    with pytest.raises(errors.BadArguments):
        AgentGymEnv("SearchQA").read(ToolCall(SEARCH.name(), arguments))


@pytest.mark.parametrize("text", ['{"query": "a"}', '"quoted"', "[1]"])
def test_a_text_argument_may_look_like_json(text):
    (name,) = SEARCH.schema()["properties"]
    assert AgentGymEnv("SearchQA").read(ToolCall(SEARCH.name(), {name: text})) == str(SEARCH(text))


# ------------------------------------------------------------------------------------- the format tool_calls


@each_environment
def test_the_prompt_teaches_no_format(environment):
    env = AgentGymEnv(environment.name, action_format="tool_calls")
    assert env.system_prompt == f"{environment.rules}\n\nCall exactly one function in each turn."
    assert env.grammar is environment.grammar
    assert env.tools == environment.grammar.tools()
    env.close()


@pytest.mark.parametrize(
    "reply",
    [
        '<tool_call>\n{"name": "get", "arguments": {"count": 2, "item": "oak logs"}}\n</tool_call>',
        'Logs.\n\n<tool_call>\n{"name": "get", "arguments": {"count": 2, "item": "oak logs"}}\n</tool_call>',
        '<think>Logs.</think>{"name": "get", "arguments": {"count": 2, "item": "oak logs"}}<|im_end|>',
    ],
)
def test_calls_that_models_write_as_text_are_read(reply):
    assert get_format("tool_calls").parse(reply, TEXTCRAFT.grammar) == Get(2, "oak logs")


def test_text_without_a_call_is_not_an_action_and_is_answered_with_the_calls(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format="tool_calls")
    env.reset(options={"task_id": 0})
    observation, *_, info = env.step("I will get two oak logs.")
    assert info["parse_error"] == "NoAction"
    assert '{"name": "get", "arguments": {"count": 1, "item": "oak logs"}}' in observation
    env.close()


@each_environment
def test_rendered_tool_calls_are_parsed(environment):
    native, grammar = get_format("tool_calls"), environment.grammar
    for action in some_actions(environment):
        for thought in ("", "I think so.", "First this:\n- that."):
            assert native.parse(native.render(action, thought), grammar) == action
    assert native.parse(native.example(grammar), grammar) == grammar.examples[0]


class Shouted(Format):
    """A format of a user's own: the action in capitals."""

    name = "shouted"
    _rule = "Shout one action."

    def _wrap(self, action, thought):
        return str(action).upper()

    def read(self, reply, grammar):
        return ParseResult(grammar.parse(reply.lower()), "capitals", 0, len(reply))


class Lines(Shouted):
    """A format that plays the first line of several."""

    def read(self, reply, grammar):
        first, *others = reply.split("\n")
        return super().read(first, grammar)._replace(ignored=tuple(others))


def test_calls_that_a_format_ignores_in_a_text_are_listed(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format=Lines())
    env.reset(options={"task_id": 0})
    info = env.step("INVENTORY\nGET 2 OAK LOGS\nFLY")[4]
    assert (info["action"], info["ignored_actions"]) == ("inventory", ["GET 2 OAK LOGS", "FLY"])
    assert "ignored_actions" not in env.step("INVENTORY")[4]
    assert env.read("INVENTORY\nFLY") == "inventory"
    env.close()


def test_a_format_of_ones_own_is_an_option(textcraft_url):
    env = AgentGymEnv("TextCraft", server=textcraft_url, action_format=Shouted())
    assert "Shout one action." in env.system_prompt
    env.reset(options={"task_id": 0})
    assert env.step("GET 2 OAK LOGS")[4]["action"] == "get 2 oak logs"
    env.close()
    with pytest.raises(errors.BadOption, match="tool_calls"):
        AgentGymEnv("Maze", action_format="shouted")
    with pytest.raises(errors.BadOption, match="reads Maze in the formats"):
        AgentGymEnv("Maze", action_format=Shouted(), parser="agentgym")
    assert MAZE.name == "Maze"
    assert "tool_calls" not in FORMATS
