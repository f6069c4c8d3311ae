"""The rules for the arguments of the agent loop, which its constructor and `verl check` share."""

from __future__ import annotations

import inspect
import re
import sys
import types

import pytest

from check_mistakes import MISTAKES, MORE_MISTAKES
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
    "invalid_action_penalty": 0,
    "format_penalty": 0.0,
    "tool_calls": True,
    "rows": "episode",
    "history": "all",
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


@pytest.mark.parametrize(
    ("history", "problem"),
    [
        ("few", "should be one of 'all'"),
        ("turns:1,summary:no_such_module:f", "has a function that cannot be imported: ModuleNotFoundError"),
    ],
)
def test_an_invalid_history_is_a_problem_before_the_training(errors, history, problem):
    (error,) = errors({"rows": "turn", "history": history})
    assert f"history='{history}' {problem}" in error
    assert errors({"rows": "turn", "history": "turns:1,summary:counting_env:summarize"}) == []


def test_each_argument_has_a_rule(errors):
    (error,) = errors({"colour": "red"})
    parameters = inspect.signature(loop_class()).parameters.values()
    names = sorted(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)
    assert error.endswith(f"has no argument colour; it has {', '.join(names)}")
    assert {*GOOD, "horizon"} == set(names)


@pytest.mark.parametrize(
    "mistake",
    [each for each in (*MISTAKES, *MORE_MISTAKES) if each.arguments],
    ids=lambda mistake: mistake.text,
)
def test_an_invalid_argument(mistake):
    """`tests/cli/test_verl_check.py` has `check` find each of them."""
    with pytest.raises(ValueError, match=re.escape(mistake.finding)):
        make(**mistake.arguments)


@pytest.mark.parametrize(
    ("estimator", "arguments", "option"),
    [
        ("gae", {"turn_rewards": True}, "turn_rewards: true"),
        ("grpo", {"invalid_action_penalty": 0.1}, "invalid_action_penalty: 0.1"),
        ("grpo", {"format_penalty": 1}, "format_penalty: 1"),
        ("gym_gigpo", {}, "adv_estimator=gym_gigpo"),
        ("gym_turn_gae", {}, "adv_estimator=gym_turn_gae"),
    ],
)
def test_credit_by_turn_needs_the_trainer_module(monkeypatch, estimator, arguments, option):
    monkeypatch.delitem(sys.modules, "verl_bridge.trainer", raising=False)
    make(estimator="gae", turn_rewards=False, invalid_action_penalty=0.0)
    with pytest.raises(ValueError, match=f"{option} needs"):
        make(estimator=estimator, **arguments)
    monkeypatch.setitem(sys.modules, "verl_bridge.trainer", types.ModuleType("verl_bridge.trainer"))
    make(estimator=estimator, **arguments)
