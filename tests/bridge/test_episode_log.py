"""Episodes of a training as records, which the agent loop writes; without verl."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace

import pytest

import inside_bridge
from agentgym_gym import ToolCall
from agentgym_gym.evaluate import read_training
from agentgym_gym.formats import Format, ParseResult
from agentgym_gym.rollout import close_all, writer_at
from loop_without_verl import loop_class, play, record_of, row_of
from verl_bridge.horizon import Moment, now

COUNT = "counting_env:bridge/Count-v0"


@pytest.fixture
def written(tmp_path):
    """Plays a row, and returns its record in the folder of the episodes, with the facts of the run."""

    def record(row, *texts, moment=None, **arguments):
        async def work():
            now.set(moment)
            return await play(row, *texts, episodes_dir=str(tmp_path), **arguments)

        writer_at.cache_clear()
        output = asyncio.run(work())
        (run,) = read_training(tmp_path)
        (episode,) = run.records
        return episode, run.facts, record_of(output)

    yield record
    writer_at.cache_clear()
    close_all()


def test_a_conversation_is_a_record_of_the_evaluation(written):
    row = row_of(COUNT, {"goal": 2}, {"task_id": 4})
    record, facts, _ = written(row, "1", "?", "2", moment=Moment(3, validation=False))
    assert (record.env_id, record.agent, record.task_id) == ("bridge/Count-v0", "characters", 4)
    assert (facts["env_id"], facts["phase"]) == ("bridge/Count-v0", "training")
    assert (record.score, record.return_, record.success, record.turns) == (2.0, 2.0, True, 3)
    assert (record.ending, record.terminated, record.truncated) == ("terminated", True, False)
    assert (record.step, record.validation) == (3, False)
    assert record.replies == ("1", "?", "2")
    for step in record.steps:
        assert step["env_seconds"] > 0
        assert step["agent_seconds"] > 0
        assert step["completion_tokens"] == 2  # with the mark of its end
    tokens = [step["prompt_tokens"] for step in record.steps]
    assert tokens == sorted({*tokens})


class Calls(Format):
    """A format of calls: one in each line."""

    name = "calls"
    _rule = "Write a call in JSON."

    def _wrap(self, action, thought):
        return str(ToolCall(action.name(), action.to_json()))

    def parse(self, reply, grammar):
        return self.read(reply, grammar).action

    def read(self, reply, grammar):
        """Play the first; the others are ignored."""
        first, *others = [json.loads(line) for line in reply.split("\n")]
        action = grammar.from_call(first["name"], first["arguments"])
        ignored = tuple(str(grammar.from_call(each["name"], each["arguments"])) for each in others)
        return ParseResult(action, "call", ignored=ignored)


def test_calls_that_are_ignored_are_in_the_record(written, textcraft_url):
    """What evaluation plays of a reply with several calls is what training plays."""
    look, get = ToolCall("inventory", {}), ToolCall("get", {"count": 1, "item": "oak logs"})
    env = {"server": textcraft_url, "action_format": Calls(), "max_turns": 2}
    row = row_of("agentgym_gym:agentgym/TextCraft-v0", env, {"task_id": 0})
    record, _, numbers = written(row, f"{look}\n{get}\n{look}", f"{get}")
    assert record.parse_errors == {}
    first, second = record.steps
    assert (first["action"], first["ignored_actions"]) == ("inventory", ["get 1 oak logs", "inventory"])
    assert (second["action"], "ignored_actions" in second) == ("get 1 oak logs", False)
    assert numbers["ignored_actions"] == 2


@pytest.mark.parametrize(
    ("arguments", "ending", "truncated"),
    [
        ({"max_turns": 1}, "truncated", True),
        ({"response_length": 10}, "context_overflow", False),
        ({"prompt_length": 10}, "fault", True),
    ],
)
def test_how_an_episode_ends_that_the_environment_did_not_end(written, arguments, ending, truncated):
    record, _, _ = written(row_of(COUNT), "1", **arguments)
    assert (record.ending, record.truncated, record.terminated) == (ending, truncated, False)
    assert record.scored == (ending != "fault")


def test_few_warnings_of_cut_episodes(monkeypatch, caplog):
    inside_bridge.forget_cut_episodes(monkeypatch, loop_class().run, every=10)
    for number in range(25):
        cut = number % 3 == 0
        asyncio.run(play(row_of(COUNT, {"goal": 3 if cut else 1}), "1", response_length=10))
    close_all()
    warnings = [message for message in caplog.messages if "were cut off" in message]
    expected = ["1 of the last 1 ", "4 of the last 10 ", "4 of the last 10 "]
    assert [message[: len(each)] for message, each in zip(warnings, expected, strict=True)] == expected


@pytest.mark.parametrize(
    ("options", "seed", "more", "task"),
    [
        ({"task_id": 3}, 5, {"index": 9}, 3),
        ({}, 5, {"extra_info": 8, "index": 9}, 5),
        ({"task_id": "x"}, None, {"extra_info": 8, "index": 9}, 8),
        ({}, None, {"index": 9}, 9),
        ({}, None, {}, 0),
    ],
)
def test_which_task_it_is(written, options, seed, more, task):
    row = row_of(COUNT, {}, options, seed=seed)
    if "extra_info" in more:
        row["extra_info"]["index"] = more["extra_info"]
    assert written({**more, **row}, "1", max_turns=1)[0].task_id == task


SYSTEM = {"role": "system", "content": "Count."}
BLANK = {**SYSTEM, "content": ""}


@pytest.mark.parametrize(
    ("messages", "opening"),
    [
        ([SYSTEM], "Count."),
        (
            [{**SYSTEM, "role": "user"}, {"role": "assistant", "content": "OK."}],
            "user: Count.\n\nassistant: OK.",
        ),
        ([], None),
        ([BLANK], None),
        ([BLANK, {"role": "user", "content": "Go."}], "user: Go."),
    ],
)
def test_the_opening_of_an_episode(written, messages, opening):
    _, facts, _ = written({**row_of(COUNT), "raw_prompt": messages}, "1", max_turns=1)
    assert facts["system_prompt"] == opening


def nodes(*heads):
    return [
        {"NodeID": "0" * 56, "Resources": {"CPU": 2.0}},
        {"NodeID": "f" * 56},
        *({"NodeID": head, "Resources": {"node:__internal_head__": 1.0}} for head in heads),
    ]


@pytest.mark.parametrize(
    ("found", "session"),
    [(nodes("ab" * 28), "abababababababab-02000000"), (nodes(), None), (KeyError("no answer"), None)],
)
def test_a_session_is_a_job_of_a_cluster(written, monkeypatch, found, session):
    def list_nodes():
        if isinstance(found, Exception):
            raise found
        return found

    job = SimpleNamespace(get_job_id=lambda: "02000000")
    ray = SimpleNamespace(is_initialized=lambda: True, nodes=list_nodes, get_runtime_context=lambda: job)
    monkeypatch.setitem(sys.modules, "ray", ray)
    inside_bridge.forget_session()
    try:
        assert written(row_of(COUNT), "1", max_turns=1)[0].session == session
    finally:
        inside_bridge.forget_session()
