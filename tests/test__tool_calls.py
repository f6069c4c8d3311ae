"""Any action of any environment can be given as a function call; of several calls one is the action."""

from __future__ import annotations

import json

import numpy as np
import pytest

import agentgym_gym
from agentgym_gym import ReplySpace, ToolCall, errors
from agentgym_gym._tool_calls import called_action, normalize_action, reply_text
from agentgym_gym.envs.searchqa import SEARCHQA
from agentgym_gym.envs.textcraft import TEXTCRAFT, Get, Inventory
from agentgym_gym.formats import get_format

GET = ToolCall("get", '{"count": 2, "item": "oak logs"}')
LOOK = ToolCall("inventory")
FLY = ToolCall("fly", {"to": "moon"})
BAD = ToolCall("get", '{"count": 2')

each_environment = pytest.mark.parametrize(
    "environment", agentgym_gym.environments(), ids=lambda each: each.name
)


def some_actions(environment):
    rng = np.random.default_rng(0)
    grammar = environment.grammar
    return [*grammar.examples, *(grammar.sample(rng) for _ in range(20))]


@each_environment
def test_any_action_survives_as_a_call(environment):
    grammar = environment.grammar
    space = ReplySpace(get_format("tool_calls"), grammar)
    for action in some_actions(environment):
        for arguments in (action.to_json(), json.dumps(action.to_json())):
            call = {"name": action.name(), "arguments": arguments}
            assert normalize_action(call, grammar) == (ToolCall(action.name(), arguments),)
            reading = called_action(normalize_action(call, grammar), grammar)
            assert (reading.action, reading.mark, reading.ignored) == (action, "call", ())
            assert space.contains({"id": "1", "type": "function", "function": call})


@each_environment
def test_arguments_that_are_encoded_twice_or_thrice_are_decoded(environment):
    for action in some_actions(environment):
        arguments = json.dumps(action.to_json())
        for _ in range(2):
            arguments = json.dumps(arguments)
            assert called_action([ToolCall(action.name(), arguments)], environment.grammar).action == action


@pytest.mark.parametrize(
    "arguments",
    ['"who wrote Faust"', '"\\"who wrote Faust\\""', '"7"', "7", '"[1]"', '"{"', '""', json.dumps("{}")],
)
def test_encoded_arguments_that_are_no_object_of_the_function_are_a_mistake(arguments):
    """Also where the function takes one text argument: the text is not taken for its value."""
    name = SEARCHQA.grammar.examples[0].name()
    with pytest.raises(errors.BadArguments):
        called_action([ToolCall(name, arguments)], SEARCHQA.grammar)


def test_a_text_argument_may_look_like_json():
    action = type(SEARCHQA.grammar.examples[0])
    (name,) = action.schema()["properties"]
    for text in ('{"query": "a"}', '"quoted"', "[1]"):
        call = ToolCall(action.name(), json.dumps({name: text}))
        assert called_action([call], SEARCHQA.grammar).action.to_json() == {name: text}


@pytest.mark.parametrize(
    ("calls", "action", "ignored"),
    [
        ([GET, LOOK], Get(2, "oak logs"), ["inventory"]),
        ([LOOK, GET], Inventory(), ["get 2 oak logs"]),
        ([GET, GET, GET], Get(2, "oak logs"), ["get 2 oak logs"] * 2),
        ([FLY, GET], Get(2, "oak logs"), [str(FLY)]),
        ([GET, FLY], Get(2, "oak logs"), [str(FLY)]),
        (
            [BAD, FLY, LOOK, GET, BAD],
            Inventory(),
            [str(BAD), '{"name": "fly", "arguments": {"to": "moon"}}', "get 2 oak logs", str(BAD)],
        ),
    ],
)
def test_the_first_call_that_the_grammar_reads_is_played_and_all_others_are_listed(calls, action, ignored):
    reading = called_action(calls, TEXTCRAFT.grammar)
    assert (reading.action, reading.mark, list(reading.ignored)) == (action, "call", ignored)
    played = calls[reading.played]
    assert called_action([played], TEXTCRAFT.grammar).action == action
    assert reply_text(tuple(calls))[reading.start : reading.end] == str(played)


def test_an_ignored_call_is_cut_to_200_characters():
    long = ToolCall("fly", {"to": "x" * 900})
    odd = ToolCall("fly", '{"to": "\ud800"}')
    reading = called_action([GET, long, odd], TEXTCRAFT.grammar)
    assert reading.ignored == (str(long)[:200], str(odd).replace("\ud800", "?"))
    assert len(reading.ignored[0]) == 200
    assert called_action([long, odd, GET], TEXTCRAFT.grammar).played == 2


@pytest.mark.parametrize(
    ("calls", "kind"),
    [([FLY, BAD], errors.UnknownAction), ([BAD, FLY], errors.BadArguments), ([], errors.NoAction)],
)
def test_where_no_call_is_read_the_error_is_that_of_the_first(calls, kind):
    with pytest.raises(kind):
        called_action(calls, TEXTCRAFT.grammar)
