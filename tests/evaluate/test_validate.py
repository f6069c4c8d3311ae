"""Known solutions, and an agent that does nothing, on real servers."""

from __future__ import annotations

import asyncio
from functools import partial

import gymnasium
import pytest

from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.catalogue import find
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.evaluate import (
    NullAgent,
    ReplayAgent,
    RunFolder,
    evaluate,
    load_oracle,
    read_run,
    validate,
)
from agentgym_gym.testing import ScriptedAgent
from fake_server import FakeServer, http


class Paying(gymnasium.Env):
    """Another library's environment: odd seeds are won by anything, and seed 4 breaks."""

    observation_space = action_space = gymnasium.spaces.Text(5)

    def reset(self, *, seed=None, options=None):
        self.seed = seed
        return "Go.", {}

    def step(self, action):
        if self.seed == 4:
            raise RuntimeError("it broke")
        if self.seed == 8:
            fault = {"kind": "JudgeFailed", "message": "no reference", "transient": False}
            return "", 0.0, False, True, {"fault": fault}
        won = bool(action) or self.seed % 2 == 1
        return "Over.", float(won), True, False, {} if self.seed == 6 else {"success": won}


class Gullible(FakeServer):
    """A TextCraft server that pays for an action without words."""

    def __init__(self):
        self.actions = []
        super().__init__(self._answer)

    def _answer(self, request):
        if request.path == "/":
            return "This is environment TextCraft."
        if request.path == "/create":
            return {"id": 0}
        if request.path == "/reset":
            return {"id": 0, "observation": "Goal: craft stick.", "reward": 0, "done": False}
        if request.path == "/step":
            self.actions.append(request.json["action"])
            won = not self.actions[-1]
            return {"observation": "Said.", "reward": int(won), "done": won}
        return http(b"true")


def validated(*arguments, **named):
    return asyncio.run(validate(*arguments, **named))


@pytest.fixture
def textcraft(textcraft_url):
    """What makes the environment."""
    return partial(AsyncAgentGymEnv, "TextCraft", server=textcraft_url)


oracle = partial(load_oracle, find("TextCraft"))


def ids(records):
    return [record.task_id for record in records]


def test_tasks_known_to_be_impossible_are_counted_apart(textcraft):
    lost = 473
    assert not validated(textcraft, oracle, [2, lost]).passed
    found = validated(textcraft, oracle, [2, lost], unwinnable=[lost, 476])
    assert found.passed
    assert (ids(found.gold), ids(found.impossible), found.not_won) == ([2, lost], [lost], ())
    assert found.to_json()["impossible"] == [lost]


def test_a_task_listed_as_impossible_must_not_be_won(textcraft):
    found = validated(textcraft, oracle, [1, 2], unwinnable=[2])
    assert not found.passed
    assert (ids(found.won_unwinnable), found.impossible, found.not_won) == ([2], (), ())
    assert [each["task_id"] for each in found.to_json()["won_unwinnable"]] == [2]


def test_every_task_that_the_oracle_wins_passes(textcraft):
    found = validated(textcraft, oracle, range(3))
    assert found.passed
    assert (ids(found.gold), ids(found.null)) == ([0, 1, 2], [0, 1, 2])
    assert (found.not_won, found.won_by_null, found.faulted, dict(found.no_solution)) == ((), (), (), {})
    assert {record.success for record in found.gold} == {True}
    assert {record.success for record in found.null} == {False}
    assert found.to_json()["null"] == {
        "played": 3,
        "won": 0,
        "not_won": 3,
        "undecided": 0,
        "not_judged": 0,
        "faulted": 0,
    }


def test_a_task_that_cannot_be_won_in_its_turns_is_named(textcraft_url):
    short = partial(AgentGymEnv, "TextCraft", server=textcraft_url, max_turns=2)
    found = validated(short, oracle, range(6))
    by_hand = [record.task_id for record in found.gold if record.score == 0.0]
    assert 0 < len(by_hand) < 6
    assert ids(found.not_won) == by_hand
    assert not found.passed
    told = found.to_json()["not_won"][0]
    assert (told["agent"], told["turns"], told["ending"]) == ("oracle", 2, "truncated")


def test_tasks_won_by_doing_nothing_are_named_and_faults_are_separate():
    found = validated(Paying, partial(ScriptedAgent, "yes"), [0, 1, 2, 3, 4, 6])
    assert ids(found.won_by_null) == [1, 3]
    assert found.not_won == ()
    assert [(each.agent, each.task_id) for each in found.faulted] == [("scripted", 4), ("null", 4)]
    assert ids(found.undecided) == [6, 6]
    assert not found.passed
    assert found.to_json()["faulted"][0]["fault"] == {"kind": "RuntimeError", "message": "it broke"}
    assert validated(Paying, partial(ScriptedAgent, "yes"), [0, 2, 6]).passed
    assert not validated(Paying, partial(ScriptedAgent, "yes"), [4]).passed
    assert not validated(Paying, partial(ScriptedAgent, ""), [0]).passed


def test_a_task_that_cannot_be_judged_is_neither_lost_nor_an_ordinary_fault():
    found = validated(Paying, partial(ScriptedAgent, "yes"), [0, 4, 8])
    assert (ids(found.not_judged), ids(found.faulted), ids(found.not_won)) == ([8, 8], [4, 4], [])
    stated = found.to_json()
    assert [each["fault"]["message"] for each in stated["not_judged"]] == ["no reference"] * 2
    assert (stated["gold"]["not_judged"], stated["gold"]["faulted"]) == (1, 1)
    assert not validated(Paying, partial(ScriptedAgent, "yes"), [8]).passed


def test_an_action_without_words_reaches_a_server_that_takes_any(started):
    server = started(Gullible())
    agent = NullAgent()
    with AgentGymEnv("TextCraft", server=server.url) as env:
        observation, info = env.reset(options={"task_id": 0})
        agent.reset(env, observation, info)
        assert env.step(agent.act(observation, info))[-1]["success"]
    assert server.actions == [""]


def test_the_null_agent_gives_up_where_turns_have_no_limit(textcraft_url):
    with AgentGymEnv("TextCraft", server=textcraft_url, max_turns=None) as endless:
        (record,) = evaluate(endless, NullAgent(), [0])
    assert (record.turns, record.ending, record.score) == (100, "gave_up", 0.0)


def test_tasks_without_a_known_solution_are_reported_and_played_by_no_other_agent(tmp_path, env, textcraft):
    with RunFolder(tmp_path / "kept", {}) as kept:
        evaluate(env, load_oracle(env.environment), [1, 2], on_episode=kept.add)
    found = validated(textcraft, partial(ReplayAgent, tmp_path / "kept"), range(4))
    assert ids(found.gold) == [1, 2]
    assert ids(found.null) == [0, 1, 2, 3]
    assert list(found.no_solution) == [0, 3]
    assert found.passed
    nobody = validated(textcraft, None, range(2))
    assert (nobody.gold_agent, nobody.gold, list(nobody.no_solution)) == (None, (), [0, 1])
    assert ids(nobody.null) == [0, 1]
    assert nobody.passed


def test_stored_results_are_not_played_again(tmp_path, textcraft):
    played = []
    validated(textcraft, oracle, range(2), folder=tmp_path, on_episode=played.append)
    assert len(played) == 4
    found = validated(textcraft, oracle, range(3), folder=tmp_path, resume=True, on_episode=played.append)
    assert sorted((each.agent, each.task_id) for each in played[4:]) == [("null", 2), ("oracle", 2)]
    assert (ids(found.gold), ids(found.null)) == ([0, 1, 2], [0, 1, 2])
    assert read_run(tmp_path / "gold").facts["agent"] == "oracle"
    assert [each.success for each in read_run(tmp_path / "null").records] == [False] * 3
    fewer = validated(textcraft, oracle, [1], folder=tmp_path, resume=True)
    assert (ids(fewer.gold), ids(fewer.null)) == ([1], [1])


def test_a_resumed_validation_retries_faulted_episodes(tmp_path):
    go = partial(validated, Paying, partial(ScriptedAgent, "yes"), [0, 4], folder=tmp_path)
    assert ids(go().faulted) == [4, 4]
    again = []
    assert ids(go(resume=True, on_episode=again.append).faulted) == [4, 4]
    assert ids(again) == [4, 4]


def test_the_agents_share_the_capacity_of_the_server(counted, monkeypatch):
    server = counted()
    monkeypatch.setattr(type(find("TextCraft").wire), "capacity", 3)
    make_env = partial(AsyncAgentGymEnv, "TextCraft", server=server.url)
    found = validated(make_env, partial(ScriptedAgent, "Action: inventory"), range(7), concurrency=8)
    assert (server.most, found.faulted) == (3, ())
    assert (ids(found.gold), ids(found.null)) == ([*range(7)], [*range(7)])
