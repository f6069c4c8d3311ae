"""Failures by kind."""

from __future__ import annotations

import pytest

from agentgym_gym.evaluate import summarise
from report_runs import episode


def played(*turns, ending="terminated", **others):
    """Return an unsolved episode out of pairs of action and observation."""
    messages = [{"role": "user", "content": "start"}]
    for action, observation in turns:
        messages += [
            {"role": "assistant", "content": f"I {action}"},
            {"role": "user", "content": observation},
        ]
    steps = tuple({"action": action} for action, _ in turns)
    flags = {"terminated": ending == "terminated", "truncated": ending == "truncated"}
    fields = {"messages": tuple(messages), "steps": steps, "turns": len(turns), "ending": ending, **flags}
    return episode(0, score=0.0, **{**fields, **others})


def kinds_of(record):
    """Return the kinds of failures of an episode, in order."""
    failures = summarise([record]).failures
    assert set(failures.values()) <= {1}
    return list(failures)


@pytest.mark.parametrize(
    ("action", "ending", "expected"),
    [
        ("look", "truncated", "turn_limit"),
        ("look", "gave_up", "gave_up"),
        ("look", "context_overflow", "context_overflow"),
        ("look", "reply_cut", "reply_cut"),
        ("look", "bored", "other_ending"),
        ("look", "terminated", "ended_unsolved"),
        ("click[Buy Now]", "terminated", "wrong_purchase"),
        ("click[Buy Now]", "truncated", "turn_limit"),
        ('Action: finish with Action Input: {"answer": "4"}', "terminated", "wrong_answer"),
        ("<answer>Paris</answer>", "terminated", "wrong_answer"),
        ("finishing touches", "terminated", "ended_unsolved"),
    ],
)
def test_an_unsolved_episode_has_one_ending(action, ending, expected):
    assert kinds_of(played((action, "seen"), ending=ending)) == [expected]


def test_records_that_are_not_failures():
    fault = {"kind": "ServerError", "message": "500"}
    records = [episode(0), episode(1, success=None), episode(2, fault=fault), episode(3, agent_fault=fault)]
    assert summarise(records).failures == {}


@pytest.mark.parametrize(
    ("turns", "expected"),
    [
        ([("up", "wall")] * 3, ["repeated_action"]),
        ([("up", "wall")] * 2, ()),
        ([("up", "1"), ("up", "2"), ("up", "3")], ()),  # it gets on
        ([("up", "a"), ("down", "b")] * 3, ("loop",)),
        ([("up", "a"), ("down", "b")] * 2, ()),
        ([("x", "x"), *[(name, name) for name in "abcdef"] * 3], ("loop",)),
        ([(name, name) for name in "abcdefg"] * 3, ()),
        ([("up", "wall")] * 12, ("repeated_action",)),  # and no loop of two equal actions
        ([(None, "no action")] * 6, ()),
    ],
)
def test_repeated_actions_and_loops(turns, expected):
    assert kinds_of(played(*turns)) == ["ended_unsolved", *expected]


def test_files_without_actions_repeat_by_their_replies():
    assert kinds_of(played(*[("up", "wall")] * 3, steps=())) == ["ended_unsolved", "repeated_action"]


def test_the_summary_counts_episodes_by_kind():
    records = [
        played(("up", "wall"), ending="truncated", parse_errors={"NoAction": 2}),
        played(*[("up", "wall")] * 3, sample=1),
        episode(1),
    ]
    expected = {"turn_limit": 1, "ended_unsolved": 1, "parse_error": 1, "repeated_action": 1}
    assert summarise(records).to_json()["failures"] == expected
