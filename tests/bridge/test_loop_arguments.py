"""The rules for the arguments of the agent loop, which its constructor and `verl check` share."""

from __future__ import annotations

import sys
import types

import pytest

from verl_bridge._loop_arguments import (
    RULES,
    check_arguments,
    loop_errors,
    require_trainer,
    unknown_arguments,
)

GOOD = {
    "env_id": "a:b/C-v0",
    "env_kwargs": {"server": "http://a"},
    "reset_options": '{"task_id": 3}',
    "isolate": "process",
    "success_at": 1,
    "max_turns": 20,
    "max_tokens_per_turn": 1,
    "max_observation_tokens": None,
    "hide_reasoning": True,
    "drop_reasoning": False,
    "turn_rewards": True,
    "tool_calls": True,
    "fault_budget": 0,
    "env_timeout": None,
    "episodes_dir": "episodes",
}


def test_valid_arguments():
    check_arguments(GOOD)
    check_arguments({"horizon": {"turns": [10, 20], "every": 5}})
    assert {*GOOD, "horizon"} == set(RULES)


@pytest.mark.parametrize(
    ("name", "value", "remedy"),
    [
        ("env_id", 3, "should be text"),
        ("env_kwargs", [1], "should be a mapping"),
        ("reset_options", "{", "is not JSON"),
        ("isolate", "jail", "should be one of loop, thread, process"),
        ("success_at", "high", "should be a number"),
        ("max_turns", 0, "should be an integer from 1, or null"),
        ("max_turns", "20", "write max_turns: 20"),
        ("max_turns", True, "should be an integer"),
        ("max_tokens_per_turn", 0, "write max_tokens_per_turn: null for no limit"),
        ("max_observation_tokens", 12.5, "should be an integer"),
        ("horizon", {"turns": 5.5}, "turns should be a number, or a list of numbers"),
        ("horizon", {"turns": [10, 20]}, "require every"),
        ("hide_reasoning", "no", "should be true or false"),
        ("drop_reasoning", 1, "should be true or false"),
        ("turn_rewards", "yes", "should be true or false"),
        ("fault_budget", "ten minutes", "should be a number of seconds from 0"),
        ("env_timeout", 0, "should be a number of seconds above 0"),
        ("episodes_dir", "", "should be text"),
    ],
)
def test_an_invalid_argument(name, value, remedy):
    (message,) = loop_errors({**GOOD, "max_turns": None, name: value})
    assert remedy in message
    assert name in message
    with pytest.raises(ValueError, match=name):
        check_arguments({name: value})


def test_two_turn_limits():
    (message,) = loop_errors({"max_turns": 5, "horizon": {"turns": 5}})
    assert "give one of them" in message


def test_unknown_names():
    near, far = unknown_arguments(["max_token_per_turn", "colour", "max_turns"], RULES)
    assert near == "GymAgentLoop has no argument max_token_per_turn; did you mean max_tokens_per_turn?"
    assert "no argument colour; it has drop_reasoning, " in far


@pytest.mark.parametrize(
    ("estimator", "turn_rewards", "option"),
    [("gae", True, "turn_rewards: true"), ("gym_gigpo", False, "algorithm.adv_estimator=gym_gigpo")],
)
def test_credit_by_turn_needs_the_trainer_module(monkeypatch, estimator, turn_rewards, option):
    monkeypatch.delitem(sys.modules, "verl_bridge.trainer", raising=False)
    require_trainer("gae", turn_rewards=False)
    with pytest.raises(ValueError, match=f"{option} needs verl_bridge.trainer, which verl has not"):
        require_trainer(estimator, turn_rewards=turn_rewards)
    monkeypatch.setitem(sys.modules, "verl_bridge.trainer", types.ModuleType("verl_bridge.trainer"))
    require_trainer(estimator, turn_rewards=turn_rewards)


def test_turn_rewards_need_the_tokens_of_each_turn():
    (message,) = loop_errors({**GOOD, "drop_reasoning": True})
    assert "turn_rewards and drop_reasoning exclude each other" in message
