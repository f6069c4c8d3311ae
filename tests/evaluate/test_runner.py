"""Playing tasks on a real server."""

import itertools
import json
from urllib.parse import urlsplit

import gymnasium
import pytest

import command_line
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.envs.textcraft import Inventory
from agentgym_gym.errors import BadOption, WrongServer
from agentgym_gym.evaluate import (
    EpisodeRecord,
    RandomAgent,
    ReplayAgent,
    RunFolder,
    evaluate,
    load_oracle,
    summarise,
)
from agentgym_gym.local_servers import LocalServer
from agentgym_gym.testing import ScriptedAgent
from game_server import GameServer


class Then:
    """Plays as another agent does, and does something before a given turn of a given episode."""

    name = "then"

    def __init__(self, agent, episode, turn, do):
        self.agent, self.moment, self.do = agent, (episode, turn), do
        self.episode = -1

    def reset(self, env, observation, info):
        self.episode, self.turn = self.episode + 1, 0
        self.agent.reset(env, observation, info)

    def act(self, observation, info):
        if (self.episode, self.turn) == self.moment:
            self.do()
        self.turn += 1
        return self.agent.act(observation, info)


def oracle(env):
    return load_oracle(env.environment)


def play(env, agent, task_id):
    """Play one task."""
    (record,) = evaluate(env, agent, [task_id])
    return record


class Plain(gymnasium.Env):
    """Another library's environment, which promises no more than gymnasium."""

    observation_space = action_space = gymnasium.spaces.Text(5)

    def __init__(self, rewards=(0.5, 0.25), info=None, said="Go."):
        self.rewards, self.info, self.said = rewards, info or {}, said

    def reset(self, *, seed=None, options=None):
        self.left = list(self.rewards)
        return self.said, {}

    def step(self, action):
        reward = self.left.pop(0)
        if isinstance(reward, Exception):
            raise reward
        return self.said, reward, not self.left, False, self.info


def test_any_text_environment_is_played():
    records = evaluate(Plain(), RandomAgent(), range(2))
    assert [(r.task_id, r.score, r.success, r.turns, r.fault) for r in records] == [
        (0, 0.75, None, 2, None),
        (1, 0.75, None, 2, None),
    ]
    assert records[0].env_id.endswith(":Plain")
    assert records[0].replies != records[1].replies
    assert records[0].to_json() == EpisodeRecord.from_json(records[0].to_json()).to_json()
    summary = summarise(records)
    assert (summary.mean_score, summary.success_rate, summary.success_interval) == (0.75, None, None)


@pytest.mark.parametrize(
    ("info", "success"), [({"success": 1}, True), ({"success": False}, False), ({}, None)]
)
def test_success_is_read_from_the_info(info, success):
    assert play(Plain(info=info), RandomAgent(), 0).success is success


@pytest.mark.parametrize(
    ("rewards", "info", "kind"),
    [
        ((0.5, RuntimeError("no")), {}, "RuntimeError"),
        ((float("nan"),), {}, "ValueError"),
        ((0.5,), {"fault": {"kind": "Lost", "message": "x", "more": 1}}, "Lost"),
    ],
)
def test_an_error_in_anothers_environment_is_a_fault(rewards, info, kind):
    record = play(Plain(rewards, info), RandomAgent(), 0)
    assert (record.fault["kind"], record.score, record.truncated) == (kind, None, True)
    assert EpisodeRecord.from_json(json.loads(json.dumps(record.to_json()))).fault == record.fault


def test_an_environment_without_text_ends_the_run_and_names_the_adapter():
    with pytest.raises(BadOption, match=r"of type int.*TextAdapter"):
        play(Plain(said=3), RandomAgent(), 0)


def test_a_typed_action_needs_an_environment_with_actions():
    with pytest.raises(BadOption, match="a typed action"):
        play(Plain(), ScriptedAgent(Inventory()), 0)


@pytest.mark.parametrize("space", [None, gymnasium.spaces.Discrete(3), "space"])
def test_the_random_agent_names_what_it_needs(space):
    env = Plain()
    env.action_space = space
    with pytest.raises(BadOption, match=r"'random' .* has no text"):
        play(env, RandomAgent(), 0)


def test_the_random_agent_needs_no_task_id():
    first, same, other, agent = Plain(), Plain(), Plain(said="Another."), RandomAgent(3)
    drawn = []
    for env in (first, same, other):
        agent.reset(env, env.said, {})
        drawn.append([agent.act("", {}) for _ in range(5)])
    assert drawn[0] == drawn[1] != drawn[2]


def test_a_record_contains_the_episode(env):
    record = play(env, oracle(env), 3)
    assert (record.env_id, record.agent, record.task_id) == ("agentgym/TextCraft-v0", "oracle", 3)
    assert record.goal in record.messages[0]["content"]
    assert (record.score, record.success, record.return_) == (1.0, True, 1.0)
    assert (record.terminated, record.truncated, record.fault) == (True, False, None)
    assert record.turns == len(record.rewards) == len(record.replies)
    assert [m["role"] for m in record.messages] == ["user", *["assistant", "user"] * record.turns]
    assert all(env.system_prompt not in m["content"] for m in record.messages)
    assert record.seconds > 0


def test_counters_are_recorded_for_each_episode_and_for_all(env):
    records = evaluate(env, oracle(env), [3, 4])
    counters = summarise(records).counters
    assert (
        counters["requests"] == sum(record.counters["requests"] for record in records) == env.stats.requests
    )
    assert [record.counters["connections"] for record in records] == [1, 0]
    assert records[1].counters["requests"] == records[1].turns + 1  # and a reset
    assert counters["seconds"] == pytest.approx(env.stats.seconds)


def test_the_record_equals_the_episode(env):
    record = play(env, ScriptedAgent(Inventory(), "Action: inventory"), 0)
    assert record.replies == (env.action_space.action_format.render(Inventory()), "Action: inventory")
    assert record.messages[2] == record.messages[4]


def test_unreadable_replies_are_counted_by_kind(env):
    record = play(env, ScriptedAgent("hm", "Action: get some", "Action: inventory", "\ud800"), 0)
    assert record.parse_errors == {"NoAction": 2, "BadArguments": 1}
    assert record.replies[-1] == "?"


def test_who_gives_up_has_failed(env):
    record = play(env, ScriptedAgent("Action: inventory"), 0)
    assert (record.score, record.success, record.turns) == (0.0, False, 1)
    assert (record.terminated, record.truncated) == (False, False)


def test_each_episode_is_reported_as_it_ends(env):
    told = []
    records = evaluate(env, oracle(env), [4, 2], on_episode=told.append)
    assert records == told
    assert [record.task_id for record in told] == [4, 2]


def test_a_server_that_ends_between_episodes_gives_faults_and_not_zeros(started):
    server = started(GameServer())
    env = AgentGymEnv("TextCraft", server=server.url)
    ended = itertools.count(1)
    records = evaluate(
        env, RandomAgent(), range(4), on_episode=lambda _: server.stop() if next(ended) == 2 else None
    )
    assert [record.fault and record.fault["kind"] for record in records] == [
        None,
        None,
        *["ServerUnreachable"] * 2,
    ]
    assert [record.score for record in records] == [1.0, 1.0, None, None]
    assert records[3].messages == ()
    summary = summarise(records)
    assert (summary.success_rate, summary.mean_score, summary.faults) == (1.0, 1.0, {"ServerUnreachable": 2})
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("on_fault", ["truncate", "raise"])
def test_a_server_killed_within_an_episode(server, on_fault):
    env = AgentGymEnv("TextCraft", server=server.url, on_fault=on_fault)
    agent = Then(oracle(env), episode=1, turn=1, do=server.stop)
    (fine, faulted) = evaluate(env, agent, range(2))
    assert fine.score == 1.0
    assert faulted.fault["kind"] in {"ServerUnreachable", "ConnectionLost"}
    assert (faulted.score, faulted.success, faulted.return_) == (None, None, 0.0)
    assert (faulted.terminated, faulted.truncated) == (False, True)
    assert len(faulted.replies) == 2
    again = LocalServer("textcraft", port=urlsplit(server.url).port)
    try:
        again.start()
        assert play(env, oracle(env), 1).score == 1.0
        env.close()
    finally:
        again.stop()


def test_a_mistake_in_the_set_up_ends_the_run(env, textcraft_url):
    with pytest.raises(BadOption, match="task_id=999 should be a task of"):
        evaluate(env, oracle(env), [999])
    elsewhere = AgentGymEnv("TextCraft", server=f"{textcraft_url}/elsewhere")
    with pytest.raises(WrongServer):
        evaluate(elsewhere, oracle(env), [0])


def test_random_plays_a_task_alike_after_any_others(env):
    def replies(seed, tasks):
        return {r.task_id: r.replies for r in evaluate(env, RandomAgent(seed), tasks)}

    first, again = replies(1, [5, 6]), replies(1, [6, 5])
    assert first == again
    assert first[5] != first[6]
    assert first[5] != replies(2, [5])[5]
    assert all(len(said) == env.environment.max_turns for said in first.values())


def test_replay_of_a_run_gives_the_same_scores(env, tmp_path):
    with RunFolder(tmp_path, {}) as folder:
        evaluate(env, oracle(env), range(40, 50), on_episode=folder.add)
        evaluate(env, ScriptedAgent("Action: inventory"), [50], on_episode=folder.add)
    again = evaluate(env, ReplayAgent(tmp_path / "episodes.jsonl"), range(40, 51))
    assert [(r.score, r.rewards, r.messages) for r in again] == [
        (r.score, r.rewards, r.messages) for r in folder.records
    ]


def test_replay_goes_by_the_goal(env, tmp_path, record):
    _, info = env.reset(options={"task_id": 1})
    with RunFolder(tmp_path, {}) as folder:
        folder.add(record(99, goal=info["goal"]))
        folder.add(record(1, goal="something else"))
        folder.add(record(2, fault="ServerFull"))
    agent = ReplayAgent(tmp_path / "episodes.jsonl")
    assert play(env, agent, 1).replies == ("get 1 stick",)
    with pytest.raises(BadOption, match=r"no complete episode .* \(task 2\)"):
        play(env, agent, 2)


def test_replay_selects_by_task_without_a_goal(env, tmp_path, record):
    with RunFolder(tmp_path, {}) as folder:
        folder.add(record(7, goal=None))
    agent = ReplayAgent(tmp_path / "episodes.jsonl")
    agent.reset(env, "", {"task_id": 7})
    assert [agent.act("", {}), agent.act("", {})] == ["get 1 stick", None]
    with pytest.raises(BadOption, match="task 8"):
        agent.reset(env, "", {"task_id": 8})


@pytest.mark.parametrize("spec", ["", "orakel", "replay", "replay:", "oracle:x"])
def test_agents_that_there_are_not(textcraft_url, tmp_path, spec):
    words = ["eval", "TextCraft", "--server", textcraft_url, "--out", tmp_path / "run", "--agent", spec]
    refused = command_line.run(*words)
    assert refused.exit_code == 2
    assert f"--agent={spec!r} should be one of" in refused.stderr
    with pytest.raises(BadOption, match="seed=-1"):
        RandomAgent(-1)
