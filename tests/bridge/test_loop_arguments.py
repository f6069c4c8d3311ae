"""The rules for the arguments of the agent loop, which its constructor and `verl check` share."""

from __future__ import annotations

import inspect
import math
import sys
import types

import pytest

from checked import checked, write_settings
from loop_without_verl import agent_loop, loop_class, replies

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
    "drop_reasoning": True,
    "turn_rewards": False,
    "tool_calls": True,
    "fault_budget": 0,
    "env_timeout": None,
    "episodes_dir": "episodes",
}


@pytest.fixture
def errors(tmp_path):
    """Returns the errors that `check` finds in arguments."""

    def found(arguments):
        findings = checked(write_settings(tmp_path, arguments), "loop")
        return [finding.text for finding in findings if finding.status == "problem"]

    return found


def make(**arguments):
    return agent_loop(replies("1"), **arguments)


@pytest.mark.parametrize("arguments", [GOOD, {"horizon": {"turns": [10, 20], "every": 5}}, {}])
def test_valid_arguments(errors, tmp_path, arguments):
    make(folder=tmp_path, **arguments)
    assert errors(arguments) == []


def test_each_argument_has_a_rule(errors):
    (error,) = errors({"colour": "red"})
    parameters = inspect.signature(loop_class()).parameters.values()
    names = sorted(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    assert error.endswith(f"has no argument colour; it has {', '.join(names)}")
    assert {*GOOD, "horizon"} == set(names)


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
        *(
            ("fault_budget", value, "should be a number of seconds from 0")
            for value in ("ten minutes", -1, True, math.nan, math.inf)
        ),
        ("env_timeout", 0, "should be a number of seconds above 0"),
        ("episodes_dir", "", "should be text"),
    ],
)
def test_an_invalid_argument(errors, name, value, remedy):
    (error,) = errors({**GOOD, "max_turns": None, name: value})
    assert remedy in error
    assert name in error
    with pytest.raises(ValueError, match=name):
        make(**{name: value})


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"max_turns": 5, "horizon": {"turns": 5}}, "give one of them"),
        ({"drop_reasoning": True, "turn_rewards": True}, "exclude each other"),
    ],
)
def test_arguments_that_exclude_each_other(errors, arguments, words):
    (error,) = errors(arguments)
    assert words in error
    with pytest.raises(ValueError, match=words):
        make(**arguments)


def test_an_unknown_name_has_a_near_one(errors):
    (error,) = errors({"max_token_per_turn": 5})
    assert "no argument max_token_per_turn; did you mean max_tokens_per_turn?" in error


@pytest.mark.parametrize(
    ("estimator", "turn_rewards", "option"),
    [("gae", True, "turn_rewards: true"), ("gym_gigpo", False, "adv_estimator=gym_gigpo")],
)
def test_credit_by_turn_needs_the_trainer_module(monkeypatch, estimator, turn_rewards, option):
    monkeypatch.delitem(sys.modules, "verl_bridge.trainer", raising=False)
    make(estimator="gae", turn_rewards=False)
    with pytest.raises(ValueError, match=f"{option} needs"):
        make(estimator=estimator, turn_rewards=turn_rewards)
    monkeypatch.setitem(sys.modules, "verl_bridge.trainer", types.ModuleType("verl_bridge.trainer"))
    make(estimator=estimator, turn_rewards=turn_rewards)
