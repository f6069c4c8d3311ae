"""Episodes as the bridge writes them, without verl."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from types import SimpleNamespace

import pytest

from agentgym_gym import ToolCall
from agentgym_gym.evaluate import EpisodeRecord
from agentgym_gym.formats import Format, ParseResult
from verl_bridge import written
from verl_bridge.episodes import Episode
from verl_bridge.horizon import Moment
from verl_bridge.metrics import by_environment
from verl_bridge.tasks import Task
from verl_bridge.transcript import Transcript, opening_of, task_id_of
from verl_bridge.written import EpisodeFolder

COUNT = "counting_env:bridge/Count-v0"


def lines(folder):
    return [json.loads(line) for file in folder.glob("episodes-*") for line in file.read_text().splitlines()]


def add(folder, record):
    return folder.add(lambda: record, lambda: {"env_id": record["env_id"]})


def episode(number=0):
    return {"env_id": "bridge/Count-v0", "task_id": number}


async def transcribed(task, *replies, on_end=lambda numbers: None, **about):
    transcript = Transcript()
    played = await Episode.begin(task)
    try:
        transcript.observe(played.observation)
        for reply in replies:
            transcript.reply(reply, prompt_tokens=7, tokens=2, seconds=0.5)
            transcript.answer(await played.step(reply), 0.25)
    finally:
        await played.end()
    on_end(played.record())
    known = {"agent": "tiny", "task_id": 4, "fault": played.fault, "cut": False, "limited": False}
    known |= {"seconds": (1.0, 2.0), "moment": Moment(3, validation=False)}
    return EpisodeRecord.from_json(transcript.record(played, **{**known, **about}))


def test_a_conversation_is_a_record_of_the_evaluation():
    record = asyncio.run(transcribed(Task(COUNT, {"goal": 2}), "1", "?", "2"))
    assert (record.env_id, record.agent, record.task_id) == ("bridge/Count-v0", "tiny", 4)
    assert (record.score, record.return_, record.success, record.turns) == (2.0, 2.0, True, 3)
    assert (record.ending, record.terminated, record.truncated) == ("terminated", True, False)
    assert (record.step, record.validation) == (3, False)
    assert record.replies == ("1", "?", "2")
    usual = {"agent_seconds": 0.5, "env_seconds": 0.25, "prompt_tokens": 7, "completion_tokens": 2}
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
    task = Task("agentgym_gym:agentgym/TextCraft-v0", env, {"task_id": 0})
    counted = []

    async def work():
        record = await transcribed(task, f"{look}\n{get}\n{look}", f"{get}", on_end=counted.append)
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
        ({"limited": True}, "truncated", True),
        ({"cut": True}, "context_overflow", False),
        ({}, "aborted", False),
        ({"fault": {"kind": "PromptTooLong", "message": "long"}}, "fault", True),
    ],
)
def test_how_an_episode_ends_that_the_environment_did_not_end(about, ending, truncated):
    record = asyncio.run(transcribed(Task(COUNT), "1", **about))
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
    assert task_id_of(Task(COUNT, {}, options, seed), row) == task


def test_what_stands_before_the_first_observation():
    system = {"role": "system", "content": "Count."}
    assert opening_of([system]) == "Count."
    assert opening_of([{**system, "role": "user"}, {"role": "assistant", "content": "OK."}]) == (
        "user: Count.\n\nassistant: OK."
    )
    assert opening_of([]) is None


def test_a_disk_that_does_not_answer_holds_up_no_episode(tmp_path, monkeypatch, caplog):
    answers, real = threading.Event(), os.write
    monkeypatch.setattr(written, "PATIENCE", 0.01)
    monkeypatch.setattr(written, "MOST_WAITING", 2)

    def slow(file, data):
        assert answers.wait(60)
        return real(file, data)

    folder = EpisodeFolder(tmp_path)

    async def work():
        with monkeypatch.context() as patch:
            patch.setattr(written.os, "write", slow)
            for number in range(3):
                await add(folder, episode(number))
            assert not lines(tmp_path)
            answers.set()
            patch.setattr(written, "PATIENCE", 60)
            patch.setattr(written, "MOST_WAITING", 9)
            await add(folder, episode(3))  # behind those that wait

    asyncio.run(work())
    assert [line["task_id"] for line in lines(tmp_path)] == [0, 1, 3]
    (warning,) = caplog.messages
    assert "2 episodes wait to be written" in warning


def test_what_json_cannot_say_is_left_out_and_half_a_surrogate_pair_is_not(tmp_path, caplog):
    folder = EpisodeFolder(tmp_path)

    async def work():
        for goal in (float("nan"), object(), "\ud83d"):
            await add(folder, {**episode(), "goal": goal})

    asyncio.run(work())
    (file,) = tmp_path.glob("episodes-*")
    assert [json.loads(line)["goal"] for line in file.read_bytes().splitlines()] == ["\ud83d"]
    assert len(caplog.messages) == 1


def test_what_all_episodes_share_is_written_once(tmp_path):
    for agent in ("first", "second"):
        folder = EpisodeFolder(tmp_path)
        facts = {"env_id": "bridge/Count-v0", "agent": agent}
        asyncio.run(folder.add(episode, lambda facts=facts: facts))
    (file,) = tmp_path.glob("run-*.json")
    assert json.loads(file.read_bytes())["run"]["agent"] == "first"


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
    written.session.cache_clear()
    try:
        assert written.session() == said
    finally:
        written.session.cache_clear()
