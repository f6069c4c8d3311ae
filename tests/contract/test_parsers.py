"""AgentGym's own client as recorded, compared with both parsers: the one like it and the better one."""

from __future__ import annotations

import importlib.util
import json
import re
from pathlib import Path

import pytest

import agentgym_gym
import needs
from agentgym_gym import FORMATS, AgentGymEnv, errors
from agentgym_gym.actions import Verbatim
from agentgym_gym.formats import AgentGymFormat
from any_server import AnyServer

ROOT = Path(__file__).resolve().parents[2]
needs.skip_without("recordings")

with (needs.RECORDINGS / "client_parse.jsonl").open(encoding="utf-8") as lines:
    ROWS = [json.loads(line) for line in lines]

_spec = importlib.util.spec_from_file_location("generate", ROOT / "docs" / "generate.py")
ways = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(ways)

# The actions that were tried, with the words that are sent for each; in the order in which they were tried.
TRIED = {
    "TextCraft": {
        "craft 4 oak planks using 1 oak log": "craft 4 oak planks using 1 oak log",
        "get 9 emerald": "get 9 emerald",
        "get 1 minecraft:emerald_block": "get 1 emerald block",
        "inventory": "inventory",
    },
    "BabyAI": {
        "go to red ball 1": "go to red ball 1",
        "pick up grey key 2": "pickup grey key 2",
        "toggle and go through blue closed door 1": "toggle and go through blue closed door 1",
    },
    "Maze": {"move up": "move up"},
    "Wordle": {"s h i r e": "s h i r e"},
    "SciWorld": {
        "open door to kitchen": "open door to kitchen",
        "move metal pot to sink": "move metal pot to sink",
    },
    "ALFWorld": {"take mug 1 from desk 1": "take mug 1 from desk 1", "go to desk 1": "go to desk 1"},
    "WebShop": {
        "search[red shirt size large]": "search[red shirt size large]",
        "click[B0B7QY8VXW]": "click[B0B7QY8VXW]",
        "click[size: x-large [tall]]": "click[size: x-large [tall]]",
    },
    "SQLGym": {
        "```sql\nSELECT 1;\n```": "SELECT 1;",
        "SELECT * FROM t WHERE a = 'x'": "SELECT * FROM t WHERE a = 'x'",
    },
    "SearchQA": {
        "<think>x</think><search>who</search>": "<search>who</search>",
        "<answer>Paris</answer>": "<answer>Paris</answer>",
    },
    "WebArena": {
        "```click [164]```": "click [164]",
        "```type [164] [restaurants near CMU] [1]```": "type [164] [restaurants near CMU] [1]",
        "```stop [N/A]```": "stop [N/A]",
    },
    "Weather": {
        "get_user_current_date with Action Input: {}": "get_user_current_date with Action Input: {}",
        'finish with Action Input: {"answer": 105}': 'finish with Action Input: {"answer": 105}',
    },
    "TODOList": {"get_projects with Action Input: {}": "get_projects with Action Input: {}"},
}

# Of the formats in which an action is a call: what is read where AgentGym's client refuses, and the reverse.
CALLS = {
    "not json": errors.NoAction,
    "text": errors.NoAction,
    "nope": errors.UnknownAction,
    '"arguments": {}': errors.BadArguments,
}


def expected_of_text(row):
    """Return the words that should be sent, or the kind of error, for a reply in the format ``react``."""
    tried = TRIED[row["env"]]
    following = dict(zip(tried, [*list(tried)[1:], next(iter(tried))], strict=True))
    for way, rule in ways.WAYS.items():
        for text, words in tried.items():
            if row["text"] != way.format(action=text, ACTION=text.upper(), next=following[text]):
                continue
            mark = agentgym_gym.find(row["env"]).grammar.style.mark
            if "{next}" in way and following[text] == text:
                return words  # the same action, twice
            marked = way in ways.MARKED and mark is not None and mark.search(text)
            return words if rule is None or marked else rule
    raise AssertionError(f"no rule is for {row['text']!r}")


def expected_of_call(row):
    if row["text"].count("\n") == 4 and row["format"] == "code_as_action":
        return errors.ManyActions
    for sign, rule in CALLS.items():
        if sign in row["text"] and not ("nope" in row["text"] and sign != "nope"):
            return rule
    return next(
        r["sent"][0] for r in ROWS if (r["env"], r["format"]) == (row["env"], row["format"]) and r["sent"]
    )


SHOUTED = re.compile(r"Action:\n[^a-z]+$")

each_way_of_writing = pytest.mark.parametrize(
    ("name", "action_format"),
    sorted({(row["env"], row["format"]) for row in ROWS}),
)


def rows_of(name, action_format):
    return [row for row in ROWS if (row["env"], row["format"]) == (name, action_format)]


def test_all_that_was_recorded_is_here():
    assert len(ROWS) == 707
    assert {row["env"] for row in ROWS} == set(TRIED)


@each_way_of_writing
def test_the_default_parser(name, action_format):
    grammar, written = agentgym_gym.find(name).grammar, FORMATS[action_format]
    expected_of = expected_of_text if action_format == "react" else expected_of_call
    for row in rows_of(name, action_format):
        expected = expected_of(row)
        try:
            read = str(written.parse(row["text"], grammar))
        except errors.ActionError as error:
            read = type(error)
        else:
            if SHOUTED.search(row["text"]):  # for example, it may search for words in capitals
                read, expected = read.upper(), expected.upper()
        assert read == expected, row["text"]


@each_way_of_writing
def test_the_parser_like_agentgyms(name, action_format):
    """What it would send is what AgentGym's client sent, with the letter that this client loses."""
    environment = agentgym_gym.find(name)
    like = AgentGymFormat(FORMATS[action_format], environment.agentgym_readers[action_format])
    for row in rows_of(name, action_format):
        try:
            read = like.parse(row["text"], environment.grammar)
        except errors.ActionError:
            sent = []
        else:
            assert type(read) is Verbatim
            sent = [read.text]
        assert sent == row["sent"], row["text"]


@each_way_of_writing
def test_requests_and_observations_with_agentgyms_parser(name, action_format, started):
    """The whole environment sends what AgentGym's client sent, and shows what it showed, word for word."""
    environment = agentgym_gym.find(name)
    server = started(AnyServer(environment, pays=1, observation="OBS"))
    env = AgentGymEnv(name, server=server.url, action_format=action_format, parser="agentgym")
    for row in rows_of(name, action_format):
        first, _ = env.reset(options={"task_id": environment.split(None)[0]})
        observation, *_, info = env.step(row["text"])
        # SciWorld was recorded after a step: before one, its client shows the task, too.
        assert observation.replace(first, "OBS" if name == "SciWorld" else first) == row["reply"]
        assert server.sent == row["sent"]
        assert info["agentgym_score"] == (bool(row["sent"]) and name != "WebArena")
    env.close()
