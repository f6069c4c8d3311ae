"""With AgentGym's parser: what is sent, what its client answers where nothing is sent, and the score."""

from __future__ import annotations

import json

import pytest

import agentgym_gym
from agentgym_gym import AgentGymEnv, errors
from any_server import AnyServer

TOOLS = ["Weather", "Movie", "Academia", "Sheet", "TODOList"]
CALLS = ["function_calling", "code_as_action"]

ONLY_ONE = "Error: Only one 'Action' is allowed per response. Please adjust your response."
NO_FENCES = (
    "Cannot parse action from response. Your action should be inside triple backticks (```). "
    "Please adjust accordingly."
)
NOT_EVALUATED = (
    "Observation: ERROR | Exception(Parameters in action input are not valid, please change your action "
    "input.)\nGive me one action."
)
FORMAT = "Thought:\nI think.\n\nAction:\n{}"


@pytest.fixture
def made(started):
    """Makes an environment with AgentGym's parser on a separate server."""
    envs = []

    def make(name, action_format="react", **options):
        environment = agentgym_gym.find(name)
        server = started(AnyServer(environment, pays=25 if name == "SciWorld" else 0.25))
        envs.append(
            AgentGymEnv(name, server=server.url, action_format=action_format, parser="agentgym", **options)
        )
        envs[-1].reset(options={"task_id": environment.split(None)[0]})
        return envs[-1], server

    yield make
    for env in envs:
        env.close()


def told(env, reply):
    """Return the observation, the score that AgentGym's client would report, and the parse error."""
    observation, reward, terminated, _, info = env.step(reply)
    assert not terminated
    assert info["action"] is None or "parse_error" not in info
    assert "parse_error" not in info or reward == 0.0
    return observation, info["agentgym_score"], info.get("parse_error")


def call(name, **arguments):
    return json.dumps({"thought": "t", "function_name": name, "arguments": arguments})


SENT_FOR = {
    "Maze": {
        "move up</s>": "move u",
        "Thought:\nx\n\nAction:\nmove up</s>": "move u",
        "Action: a\nAction: b Action: c": "a",
        "no label": "no label",
        "Action:": "",
        "": "",
        "</s>": "",
    },
    "Wordle": {"s h i r e</s>": "s h i r", "Action: a\nAction: b": "a", "no label": "no label"},
    "BabyAI": {
        "Action: pick up red ball 1.": "pick up red ball 1",
        "Action:\n\ngo to  red-ball 1</s>": "go to redball 1s",
        "no label": "",
        "Action:": "",
    },
}
"""What AgentGym's client sends for a reply in the format ``react``; the other environments have more rows."""


@pytest.mark.parametrize(
    ("name", "reply", "sent"), [(n, r, s) for n, rows in SENT_FOR.items() for r, s in rows.items()]
)
def test_the_reader_of_the_format_react(name, reply, sent):
    assert agentgym_gym.find(name).agentgym_readers["react"](reply) == sent


def test_the_reader_of_babyai_refuses_two_actions():
    with pytest.raises(errors.ManyActions):
        agentgym_gym.find("BabyAI").agentgym_readers["react"]("Action: drop\nAction: toggle")


@pytest.mark.parametrize("name", ["TextCraft", "BabyAI"])
def test_two_actions_are_answered_by_the_client(made, name):
    env, server = made(name)
    assert told(env, FORMAT.format("x")) == ("page 1", 0.25, None)
    assert told(env, "Action: x\nAction: x") == (ONLY_ONE, 0.0, "ManyActions")
    assert told(env, "Action: x\nAction: x") == (ONLY_ONE, 0.0, "ManyActions")
    assert told(env, "no label") == ("page 2", 0.25, None)
    assert server.sent == ["x", ""]


def test_a_reply_without_fences_is_answered_by_the_client_of_webarena(made):
    env, server = made("WebArena")
    assert told(env, "click [1]") == (NO_FENCES, 0.0, "NoAction")
    assert told(env, "```click [1]") == (NO_FENCES, 0.0, "NoAction")
    assert told(env, "I do ```this```.") == ("page 1", 0.0, None)
    assert server.sent == ["I do ```this```."]


@pytest.mark.parametrize("action_format", CALLS)
@pytest.mark.parametrize(
    ("name", "score", "first", "later"),
    [
        ("WebShop", 0.25, "page 0", "page 1"),
        ("SciWorld", 25.0, "task\npage 0", "page 1"),
        ("ALFWorld", 0.25, "page 0\nAVAILABLE ACTIONS: a", "page 1\nAVAILABLE ACTIONS: a"),
    ],
)
def test_a_call_that_cannot_be_read_repeats_the_page(made, name, action_format, score, first, later):
    env, server = made(name, action_format)
    for reply in ("prose", call("nope"), "nope()"):
        observation, reported, error = told(env, reply)
        assert (observation, reported) == (f"Invalid Action.\n\n{first}", 0.0)
        assert error in {"NoAction", "UnknownAction"}
    good = {
        "WebShop": (call("search", keywords="red"), "search('red')"),
        "SciWorld": (call("open", obj="door"), "open('door')"),
        "ALFWorld": (call("open", recep="drawer 1"), "open('drawer 1')"),
    }[name][CALLS.index(action_format)]
    assert told(env, good) == ("page 1", score, None)
    for _ in range(2):  # the page of the server, and not the last answer
        assert told(env, "prose")[:2] == (f"Invalid Action.\n\n{later}", 0.0)
    assert len(server.sent) == 1


@pytest.mark.parametrize("name", ["WebShop", "SciWorld", "ALFWorld"])
def test_a_text_in_code_is_sent_as_it_is(made, name):
    env, server = made(name, "code_as_action")
    assert told(env, "```python\n'go to desk 1'\n```")[0] == "page 1"
    assert server.sent == ["go to desk 1"]


def test_the_name_of_a_function_is_stripped_where_the_client_does_so(made):
    shop, _ = made("WebShop", "function_calling")
    assert told(shop, call(" search", keywords="red"))[2] == "UnknownAction"
    house, server = made("ALFWorld", "function_calling")
    assert told(house, call(" look\n"))[2] is None
    assert server.sent == ["look"]


@pytest.mark.parametrize("name", ["Maze", "Wordle", "SciWorld", "ALFWorld", "WebShop", "SearchQA", *TOOLS])
@pytest.mark.parametrize("reply", ["", "Thought:\nI think.", "only prose", "Action: a\nAction: b"])
def test_everything_else_is_sent_as_it_is(made, name, reply):
    env, server = made(name)
    assert told(env, reply)[0] == "page 1"
    assert len(server.sent) == 1


@pytest.mark.parametrize("name", TOOLS)
def test_a_tool_server_is_sent_the_reply_and_no_label_is_added(made, name):
    env, server = made(name)
    unlabelled = str(env.grammar.examples[0])
    for reply in (unlabelled, f"Action: {unlabelled}", f"I think.\n\nAction: {unlabelled}\n"):
        assert told(env, reply)[2] is None
        assert server.sent[-1] == reply
    env.close()
    default = AgentGymEnv(name, server=server.url)
    default.reset(options={"task_id": 0})
    *_, info = default.step(f"Action: {unlabelled}")
    assert (info["action"], server.sent[-1]) == (unlabelled, f"Action: {unlabelled}")
    default.close()


@pytest.mark.parametrize("name", TOOLS)
@pytest.mark.parametrize("value", ["true", "{", "1 + 1", "open('x')", "f'{x}'", "__import__('os')"])
def test_an_input_that_would_be_evaluated_is_answered_as_one_that_failed(made, name, value):
    env, server = made(name)
    assert told(env, "Action: finish with Action Input: 1") == ("page 1", 0.25, None)
    reply = f'Action: finish with Action Input: {{"answer": {value}}}'
    assert told(env, reply) == (NOT_EVALUATED, 0.25, "BadArguments")
    assert len(server.sent) == 1


LONG = "I think, and think again. " * 1_000  # more than the limit of an action


@pytest.mark.parametrize(
    ("name", "played"),
    [
        *((name, "Action: finish with Action Input: {}") for name in TOOLS),
        *((name, "Action: finish\n  with\nAction Input: 1") for name in TOOLS),
        ("SearchQA", "<search>a</search>\n<answer>b</answer> <answer>c</answer>"),
    ],
)
def test_reasoning_before_the_part_that_the_server_parses_may_be_longer_than_an_action(made, name, played):
    env, server = made(name)
    begun = "with Action Input: 1\n" if name != "SearchQA" else "</search> <answer "
    assert told(env, f"{begun}{LONG}\n{played}") == ("page 1", 0.25, None)
    assert server.sent == [played]


@pytest.mark.parametrize("name", ["SearchQA", *TOOLS])
def test_of_a_long_reply_without_an_action_the_end_is_sent(made, name):
    env, server = made(name)
    reply = f"Action: finish with Action Input: 1\n{LONG}\n{LONG} </search>"
    assert told(env, reply) == ("page 1", 0.25, None)
    assert server.sent == [reply[-16_384:]]


@pytest.mark.parametrize("name", TOOLS)
def test_a_long_line_of_an_action_is_refused_as_any_long_action(made, name):
    env, server = made(name)
    assert told(env, f"Action: finish with Action Input: '{LONG}'")[2] == "BadArguments"
    assert told(env, f"{LONG} Action: finish with Action Input: 1")[2] == "BadArguments"
    assert server.sent == []


@pytest.mark.parametrize(
    ("name", "reply"),
    [
        ("TextCraft", f"Action: get {'1' * 601} stick"),
        ("WebShop", "Action: search[<a>]"),
        ("SQLGym", "SELECT '\0'"),
        ("Maze", "Action: " + "x" * 16_385),
    ],
)
def test_a_refusal_of_this_library_keeps_the_score_and_gives_its_own_advice(made, name, reply):
    env, server = made(name, max_turns=None)
    told(env, "Action: x")
    observation, score, error = told(env, reply)
    assert observation.startswith("Your reply was not carried out: ")
    assert (score, error) == (0.25, "BadArguments")
    assert server.sent == ["x" if name != "SQLGym" else "Action: x"]


def test_the_default_parser_gives_advice_and_keeps_the_score(made):
    _, server = made("TextCraft")
    env = AgentGymEnv("TextCraft", server=server.url)
    env.reset(options={"task_id": 0})
    assert told(env, "Action: inventory")[1] == 0.25
    observation, score, error = told(env, "Action: inventory\nAction: get 1 stick")
    assert observation.startswith("Your reply was not carried out: ")
    assert (score, error) == (0.25, "ManyActions")
    env.close()
