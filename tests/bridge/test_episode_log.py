"""Episodes of a training as records, without verl."""

from __future__ import annotations

import asyncio
import json
import sys
from types import SimpleNamespace

import pytest

from agentgym_gym import ToolCall
from agentgym_gym.formats import Format, ParseResult
from agentgym_gym.rollout import EpisodeRecord
from verl_bridge import _episode_log as episode_log
from verl_bridge._episode_log import opening_of, record_of, task_id_of
from verl_bridge._metrics import by_environment
from verl_bridge.horizon import Moment
from verl_bridge.numbers import numbers_of
from verl_bridge.tasks import EnvTask

COUNT = "counting_env:bridge/Count-v0"


async def recorded(task, *replies, on_end=lambda numbers: None, max_turns=None, **about):
    async with task.episode(max_turns=max_turns) as played:
        for reply in replies:
            played.add_reply(reply, {"agent_seconds": 0.5, "prompt_tokens": 7, "completion_tokens": 2})
            await played.step(reply)
    on_end(numbers_of(played))
    known = {"agent": "tiny", "task_id": 4, "fault": played.fault, "cut": False}
    known |= {"agent_seconds": 1.0, "moment": Moment(3, validation=False)}
    return EpisodeRecord.from_json(record_of(played, **{**known, **about}).to_json())


def test_a_conversation_is_a_record_of_the_evaluation():
    record = asyncio.run(recorded(EnvTask(COUNT, {"goal": 2}), "1", "?", "2"))
    assert (record.env_id, record.agent, record.task_id) == ("bridge/Count-v0", "tiny", 4)
    assert (record.score, record.return_, record.success, record.turns) == (2.0, 2.0, True, 3)
    assert (record.ending, record.terminated, record.truncated) == ("terminated", True, False)
    assert (record.step, record.validation) == (3, False)
    assert record.replies == ("1", "?", "2")
    usual = {"agent_seconds": 0.5, "prompt_tokens": 7, "completion_tokens": 2}
    for step in record.steps:
        assert step.pop("env_seconds") > 0
    assert record.steps == (usual,) * 3


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


def test_calls_that_are_ignored_are_in_the_record(textcraft_url):
    """What evaluation plays of a reply with several calls is what training plays."""
    look, get = ToolCall("inventory", {}), ToolCall("get", {"count": 1, "item": "oak logs"})
    env = {"server": textcraft_url, "action_format": Calls(), "max_turns": 2}
    task = EnvTask("agentgym_gym:agentgym/TextCraft-v0", env, {"task_id": 0})
    counted = []

    async def work():
        record = await recorded(task, f"{look}\n{get}\n{look}", f"{get}", on_end=counted.append)
        assert record.parse_errors == {}
        first, second = record.steps
        assert (first["action"], first["ignored_actions"]) == ("inventory", ["get 1 oak logs", "inventory"])
        assert (second["action"], "ignored_actions" in second) == ("get 1 oak logs", False)

    asyncio.run(work())
    assert counted[0]["ignored_actions"] == 2
    assert by_environment([{**counted[0], "env_id": "a"}])["env/a/ignored_actions"] == 2


@pytest.mark.parametrize(
    ("about", "ending", "truncated"),
    [
        ({"max_turns": 1}, "truncated", True),
        ({"cut": True}, "context_overflow", False),
        ({}, "aborted", False),
        ({"fault": {"kind": "PromptTooLong", "message": "long"}}, "fault", True),
    ],
)
def test_how_an_episode_ends_that_the_environment_did_not_end(about, ending, truncated):
    record = asyncio.run(recorded(EnvTask(COUNT), "1", **about))
    assert (record.ending, record.truncated, record.terminated) == (ending, truncated, False)
    assert record.scored == (ending != "fault")


@pytest.mark.parametrize(
    ("options", "seed", "row", "task"),
    [
        ({"task_id": 3}, 5, {"index": 9}, 3),
        ({}, 5, {"index": 9}, 5),
        ({"task_id": "x"}, None, {"extra_info": {"index": 8}, "index": 9}, 8),
        ({}, None, {"index": 9}, 9),
        ({}, None, {}, 0),
    ],
)
def test_which_task_it_is(options, seed, row, task):
    assert task_id_of(EnvTask(COUNT, {}, options, seed), row) == task


def test_what_stands_before_the_first_observation():
    system = {"role": "system", "content": "Count."}
    assert opening_of([system]) == "Count."
    assert opening_of([{**system, "role": "user"}, {"role": "assistant", "content": "OK."}]) == (
        "user: Count.\n\nassistant: OK."
    )
    assert opening_of([]) is None
    assert opening_of([{**system, "content": ""}]) is None
    assert opening_of([{**system, "content": ""}, {"role": "user", "content": "Go."}]) == "user: Go."


def nodes(*heads):
    return [
        {"NodeID": "0" * 56, "Resources": {"CPU": 2.0}},
        {"NodeID": "f" * 56},
        *({"NodeID": head, "Resources": {"node:__internal_head__": 1.0}} for head in heads),
    ]


@pytest.mark.parametrize(
    ("found", "said"),
    [(nodes("ab" * 28), "abababababababab-02000000"), (nodes(), None), (KeyError("no answer"), None)],
)
def test_a_session_is_a_job_of_a_cluster(monkeypatch, found, said):
    def asked():
        if isinstance(found, Exception):
            raise found
        return found

    job = SimpleNamespace(get_job_id=lambda: "02000000")
    ray = SimpleNamespace(is_initialized=lambda: True, nodes=asked, get_runtime_context=lambda: job)
    monkeypatch.setitem(sys.modules, "ray", ray)
    episode_log.session.cache_clear()
    try:
        assert episode_log.session() == said
    finally:
        episode_log.session.cache_clear()
