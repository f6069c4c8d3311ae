"""Cheap policies: which ones an environment has, what they play, and what a validation says of them."""

from __future__ import annotations

import asyncio
import json
from functools import partial

import pytest

from agentgym_gym.aio import AsyncAgentGymEnv
from agentgym_gym.evaluate import read_records, validate
from agentgym_gym.local_servers import LocalServer
from command_line import run as agentgym
from doors_env import Doors


def validated(*arguments, **named):
    return asyncio.run(validate(*arguments, policies=True, **named))


def test_a_policy_may_win_one_task_in_a_hundred():
    found = validated(Doors, None, range(1, 101))
    shares = {name: (result.won, result.played) for name, result in found.policies.items()}
    assert shares["first admissible"] == (2, 100)
    assert shares["null"] == shares["repeat last"] == shares["random valid"] == (0, 100)
    assert [*found.cheaply_won] == ["first admissible"]
    assert not found.passed
    assert validated(Doors, None, range(8, 108)).passed  # one of a hundred


def test_a_known_reason_is_no_failure():
    reason = "some doors are open"
    found = validated(Doors, None, range(1, 101), cheap_wins={"first admissible": reason})
    assert found.passed
    result = found.to_json()["policies"]["first admissible"]
    assert (result["share"], result["most"], result["reason"]) == (0.02, 0.01, reason)
    assert result["interval"] == pytest.approx((0.0055, 0.0700), abs=1e-4)


def test_each_policy_is_a_run_of_its_folder(tmp_path):
    found = validated(Doors, None, range(3), folder=tmp_path)
    assert [*found.policies] == ["null", "first admissible", "repeat last", "random valid"]
    runs = {path.name for path in tmp_path.iterdir()}
    assert runs == {"null", "policy_1_first_admissible", "policy_2_repeat_last", "policy_3_random_valid"}


@pytest.fixture(scope="module")
def weather():
    server = LocalServer("weather")
    yield server.start()
    server.stop()


def test_answers_are_played_where_an_action_ends_the_episode(weather, tmp_path):
    """The replies of each policy, as the server gets them."""
    make = partial(AsyncAgentGymEnv, "Weather", server=weather)
    found = validated(make, None, [0, 1], folder=tmp_path)
    assert {"answer 'Yes'", "answer 0", "answer 0 to 99", "answer goal", "answer page"} <= {*found.policies}
    replies = {}
    for file in tmp_path.glob("policy_*_answer*/episodes.jsonl"):
        records, _ = read_records(file)
        assert {record.turns for record in records} == {1}
        replies[records[0].agent] = records[0].replies[0]
        goal = records[0].goal
    assert replies["answer 'Yes'"].endswith('{"answer": "Yes"}')
    assert replies["answer 0"].endswith('{"answer": 0}')
    assert "97 98 99" in replies["answer 0 to 99"]
    assert goal[:30] in replies["answer goal"]


def test_the_command_prints_a_table_and_fails_above_the_bar():
    ended = agentgym("validate", "doors_env:Doors-v0", "--tasks", "1:101", "--policies")
    assert ended.exit_code == 1
    assert "first admissible wins 2.0% of the tasks, above 1%." in ended.stdout
    ended = agentgym("validate", "doors_env:Doors-v0", "--tasks", "8:108", "--policies", "--json")
    assert ended.exit_code == 0
    assert json.loads(ended.stdout)["policies"]["first admissible"]["won"] == 1
