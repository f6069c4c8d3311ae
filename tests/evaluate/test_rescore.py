"""Kept runs read again, without playing."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

import command_line
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate import (
    DIVERGED,
    RandomAgent,
    ReplayAgent,
    RunFolder,
    RunResult,
    evaluate,
    load_oracle,
    read_run,
    rescore,
    summarise,
)
from report_runs import episode, write_run

ENV_ID = "agentgym/TextCraft-v0"
OPTIONS = {"split": None, "action_format": "react", "parser": "default", "on_unknown": None, "max_turns": 20}

# Replies that the two parsers read alike, and others.
REPLIES = (
    "Thought: I look.\n\nAction:\ninventory",
    "Action: get 1 oak_log",
    "Action: get 1 oak log.",
    "Action: inventory\nAction: inventory",
    "<action>inventory</action>",
    "Action: *inventory*",
    "I give no action.",
    "Action: dance",
)


class Shuffled:
    """Replies with what is drawn of a list, and then gives up."""

    name = "shuffled"
    blocking = False

    def reset(self, env, observation, info):
        drawn = np.random.default_rng(info["task_id"])
        self.left = [str(each) for each in drawn.choice(REPLIES[: 1 + info["task_id"] % len(REPLIES)], 3)]

    def act(self, observation, info):
        return self.left.pop() if self.left else None


def kept(folder, env, agent, tasks, options=OPTIONS):
    with RunFolder(folder, {"env_id": ENV_ID, "agent": agent.name, "options": options}) as run:
        evaluate(env, agent, tasks, on_episode=run.add)
    return read_run(folder)


def run_of(*records, options=OPTIONS):
    facts = {"env_id": ENV_ID, "options": options} if options else {}
    return RunResult(None, facts, records)


@pytest.fixture
def oracle_run(tmp_path, env):
    return kept(tmp_path / "oracle", env, load_oracle(env.environment), range(4))


def test_equally_parsed_episodes_keep_their_score(oracle_run):
    again = rescore(oracle_run)
    assert again.records == oracle_run.records
    assert (again.different, again.diverged, again.not_as_played) == (0, 0, 0)
    assert again.replies == sum(record.turns for record in oracle_run.records) > 4
    assert again.success_bounds == (1.0, 1.0)
    assert rescore(oracle_run, parser="agentgym").records == oracle_run.records


def test_the_new_actions_are_what_the_other_parser_would_play(tmp_path, env, textcraft_url):
    """The replies are played again with the other parser, on a real server, to see that it is so."""
    run = kept(tmp_path / "a", env, Shuffled(), range(24))
    again = rescore(run, parser="agentgym")
    assert 0 < again.diverged < len(again.records)
    with AgentGymEnv("TextCraft", server=textcraft_url, parser="agentgym") as other:
        played = evaluate(other, ReplayAgent(tmp_path / "a"), range(24))
    for old, now, truth in zip(run.records, again.records, played, strict=True):
        if now.ending == DIVERGED:
            known = now.turns
            assert truth.messages[2 * known + 1] == now.messages[-1] == old.messages[2 * known + 1]
            assert truth.messages[2 * known + 2] != old.messages[2 * known + 2]
        else:
            assert (now.score, now.success, now.turns) == (truth.score, truth.success, truth.turns)
            assert now.parse_errors == truth.parse_errors
            known = now.turns
        assert now.rewards == truth.rewards[:known] == old.rewards[:known]
    for kind in ("NoAction", "ManyActions"):
        errors = [sum(each.parse_errors.get(kind, 0) for each in of) for of in (run.records, played)]
        assert errors == [of.get(kind, 0) for of in (again.errors_before, again.errors_after)]
    assert again.errors_before != again.errors_after


def test_a_diverged_episode_ends_before_the_turn_that_differs(record):
    said = ["Go.", REPLIES[0], "Nothing.", REPLIES[3], "No.", REPLIES[0], "Nothing."]
    messages = tuple(
        {"role": "assistant" if at % 2 else "user", "content": text} for at, text in enumerate(said)
    )
    old = record(
        7,
        turns=3,
        rewards=(0.25, 0.5, 0.25),
        return_=1.0,
        messages=messages,
        steps=(
            {"action": "inventory"},
            {"action": "get 9 gold", "agent_seconds": 1.5},
            {"action": "inventory"},
        ),
    )
    again = rescore(run_of(old), parser="agentgym")
    (now,) = again.records
    assert (now.score, now.success, now.scored, now.ending) == (None, None, False, "diverged")
    assert (now.turns, now.rewards, now.return_) == (1, (0.25,), 0.25)
    assert (now.terminated, now.truncated) == (False, False)
    assert now.messages == messages[:4]
    assert now.steps == (
        {"action": "inventory"},
        {"action": None, "agent_seconds": 1.5, "parse_error": "ManyActions"},
    )
    assert now.agent_fault["kind"] == "Diverged"
    assert "turn 2 sent 'get 9 gold'" in now.agent_fault["message"]
    (example,) = again.examples
    assert (example.task_id, example.turn, example.played, example.read) == (7, 2, "get 9 gold", None)
    assert summarise(again.records).mean_score is None
    assert json.loads(json.dumps(again.to_json()))["diverged"] == 1


def test_diverged_episodes_leave_bounds_and_no_average(record):
    said = tuple({"role": "assistant", "content": REPLIES[0]} for _ in range(2))
    as_played, other = ({"action": "inventory"},) * 2, ({"action": "inventory"}, {"action": "dance"})
    run = run_of(
        record(0, messages=said, steps=as_played),
        record(1, messages=said, steps=other),
        record(2, messages=said, steps=as_played, score=0.0),
        record(3, messages=said, steps=other, score=0.0),
        record(4, messages=said, steps=other, fault="ServerTimeout"),
    )
    again = rescore(run)
    assert [each.score for each in again.records] == [1.0, None, 0.0, None, None]
    assert again.success_bounds == (0.25, 0.75)
    assert again.diverged == again.different == 2
    assert again.not_as_played == 3
    assert again.records[4] == run.records[4]
    assert summarise(again.records).success_rate == 0.5


def test_tool_calls_are_read_as_calls_in_any_format(record):
    call = {"name": "get", "arguments": '{"count": 1, "item": "oak log"}', "id": "c1"}
    steps = ({"action": "get 1 oak log", "tool_calls": [call]},)
    old = record(0, turns=1, rewards=(1.0,), messages=({"role": "assistant", "content": "{…}"},), steps=steps)
    assert rescore(run_of(old), action_format="tags").records[0].score == 1.0
    changed = replace(old, steps=({**steps[0], "action": "get 2 oak log"},))
    assert rescore(run_of(changed), action_format="tags").records[0].ending == DIVERGED


def test_of_several_calls_the_first_is_read_again_and_the_others_stay_in_the_record(record):
    calls = [
        {"name": "get", "arguments": '{"count": 1, "item": "oak log"}', "id": "c1"},
        {"name": "inventory", "arguments": "{}", "id": "c2"},
    ]
    step = {
        "action": "get 1 oak log",
        "tool_calls": calls,
        "ignored_actions": ["inventory"],
        "played_call": 0,
    }
    old = record(
        0, turns=1, rewards=(1.0,), messages=({"role": "assistant", "content": "{…}"},), steps=(step,)
    )
    assert rescore(run_of(old)).records == (old,)
    earlier = replace(old, steps=({**step, "action": None, "parse_error": "ManyActions"},))
    (again,) = rescore(run_of(earlier)).records
    assert again.ending == DIVERGED
    assert again.steps == ({"action": "get 1 oak log", "tool_calls": calls},)


def test_a_rule_of_one_s_own(record):
    run = run_of(record(0), record(1, fault="ServerTimeout"), record(2, score=0.0))
    asked = []

    def rule(episode):
        asked.append(episode.task_id)
        return (episode.score - 0.25, True) if episode.task_id else 0.5

    again = rescore(run, score=rule)
    assert asked == [0, 2]
    assert [(each.score, each.success) for each in again.records] == [
        (0.5, True),
        (None, None),
        (-0.25, True),
    ]
    assert again.replies == 0
    assert [each.rewards for each in again.records] == [each.rewards for each in run.records]


@pytest.mark.parametrize(
    ("rule", "said"),
    [
        (lambda _: None, "returned None"),
        (lambda _: "1.0", "returned '1.0'"),
        (lambda _: True, "returned True"),
        (lambda _: float("nan"), "returned nan"),
        (lambda _: 10**400, "returned 1000"),
        (lambda _: (1.0, True, 2), r"returned \(1.0, True, 2\)"),
        (lambda episode: episode.nothing, "raised AttributeError"),
    ],
)
def test_errors_of_a_rule_are_reported(record, rule, said):
    with pytest.raises(BadOption, match=rf"of task 3, sample 0, {said}"):
        rescore(run_of(record(3)), score=rule)


@pytest.mark.parametrize(
    "path", ["", "json", "json:", ":dumps", "json:nothing", "no_such_module:f", "json:__doc__"]
)
def test_invalid_rules_are_refused(path, tmp_path):
    folder = write_run(tmp_path / "a", [episode(0)], options=OPTIONS)
    refused = command_line.run("rescore", folder, "--out", tmp_path / "b", "--score", path)
    assert (refused.exit_code, f"--score={path!r}" in refused.stderr) == (2, True), refused.stderr
    assert not (tmp_path / "b").exists()


def test_runs_that_cannot_be_read_again_are_refused(record):
    with pytest.raises(BadOption, match=r"no summary\.json"):
        rescore(run_of(record(0), options=None), parser="agentgym")
    with pytest.raises(BadOption, match="my/Env-v0 is not in"):
        rescore(RunResult(None, {"env_id": "my/Env-v0", "options": {"max_turns": 3}}, (record(0),)))
    with pytest.raises(BadOption, match="parser='agentgym' reads TextCraft"):
        rescore(run_of(record(0)), parser="agentgym", action_format="tags")
    with pytest.raises(BadOption, match="fewer replies than turns"):
        rescore(run_of(record(0)))
    assert rescore(run_of(record(0), options=None), score=lambda _: 0.0).records[0].score == 0.0


def test_options_of_a_single_environment_are_the_options_of_the_run(record):
    said = ({"role": "assistant", "content": "<answer> Paris </answer>"},)
    old = record(0, env_id="agentgym/SearchQA-v0", turns=1, rewards=(1.0,), messages=said)
    run = RunResult(None, {"env_id": old.env_id, "options": {**OPTIONS, "answers": None}}, (old,))
    assert rescore(run).records == (old,)
    wrong = RunResult(None, {"env_id": old.env_id, "options": {**OPTIONS, "answers": 3}}, (old,))
    with pytest.raises(BadOption, match="answers=3"):
        rescore(wrong)


def test_a_random_run_is_the_same_again(tmp_path, env):
    run = kept(tmp_path / "random", env, RandomAgent(1), range(3))
    assert rescore(run).records == run.records
