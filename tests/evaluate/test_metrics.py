"""What is counted over episodes."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import replace
from itertools import combinations
from statistics import fmean

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentgym_gym import Stats
from agentgym_gym.evaluate import Price, summarise
from report_runs import episode


def test_a_fault_is_not_averaged_in(record):
    without = [record(i, score=float(i % 2)) for i in range(4)]
    faulted = [
        record(7, fault="ServerTimeout"),
        record(8, fault="ConnectionLost"),
        record(9, fault="ServerTimeout"),
    ]
    alone, together = summarise(without), summarise([*faulted, *without])
    assert (together.episodes, together.scored, together.faulted) == (7, 4, 3)
    assert together.faults == {"ConnectionLost": 1, "ServerTimeout": 2}
    for name in ("mean_score", "success_rate", "success_interval", "mean_turns", "parse_error_share"):
        assert getattr(together, name) == getattr(alone, name)
    assert together.success_rate == 0.5


@pytest.mark.parametrize(("successes", "episodes"), [(0, 5), (5, 5), (3, 10), (1, 1), (0, 1), (50, 100)])
def test_the_success_rate_has_wilson_s_interval(record, successes, episodes):
    """Its bounds are the rates from which what was seen is 1.96 standard deviations away."""
    summary = summarise(record(i, score=float(i < successes)) for i in range(episodes))
    low, high = summary.success_interval
    assert 0 <= low < high <= 1
    share = successes / episodes
    for bound in {low, high} - {0.0, 1.0}:
        assert abs(share - bound) == pytest.approx(1.959964 * math.sqrt(bound * (1 - bound) / episodes))
    assert (low == 0) is (successes == 0)
    assert (high == 1) is (successes == episodes)
    assert json.loads(json.dumps(summary.to_json()))["success_interval"] == list(summary.success_interval)


def success_interval(successes, tasks):
    """Return the interval of a success rate with an episode for each task: Wilson's."""
    return summarise(episode(i, score=float(i < successes)) for i in range(tasks)).success_interval


def interval_of(scores):
    """Return the interval of a mean score with an episode for each task: the bootstrap's."""
    return summarise(episode(task, score=score) for task, score in enumerate(scores)).score_interval


def test_an_unknown_success_is_not_a_failure(record):
    summary = summarise([record(0), record(1, success=None), record(2, score=0.0)])
    assert (summary.scored, summary.success_rate) == (3, 0.5)
    assert summary.success_interval == success_interval(1, 2)
    silent = summarise([record(success=None)])
    assert silent.success_rate is silent.success_interval is None


def samples(record, outcomes):
    """Return a record for each outcome of each task; None is a fault."""
    return [
        record(task, score=outcome, sample=sample)
        if outcome is not None
        else record(task, fault="ServerFull", sample=sample)
        for task, each in outcomes.items()
        for sample, outcome in enumerate(each)
    ]


def test_averages_are_of_tasks_and_not_of_episodes(record):
    """A task that was scored more often, since others met faults, weighs no more."""
    summary = summarise(samples(record, {0: [1.0, 1.0, 1.0, 0.0], 1: [0.0, None, None, None], 2: [None] * 4}))
    assert (summary.episodes, summary.scored, summary.tasks, summary.samples) == (12, 5, 3, 4)
    assert summary.success_rate == summary.mean_score == (0.75 + 0.0) / 2
    assert summary.success_interval == summary.score_interval == interval_of([0.75, 0.0])
    assert summary.solved.never == (1,)
    assert summary.solved.sometimes == (0,)
    assert summary.solved.always == ()
    assert summary.solved.unknown == (2,)


def test_estimates_for_k_episodes_of_a_task(record):
    outcomes = {0: [1.0, 0.0, 0.0, 1.0], 1: [0.0] * 4, 5: [1.0] * 4, 6: [0.0, 1.0, 0.0, 0.0]}
    summary = summarise(samples(record, outcomes))
    for k in (1, 2, 4):
        choices = [list(combinations(each, k)) for each in outcomes.values()]
        assert summary.pass_at[k] == pytest.approx(fmean(fmean(map(any, each)) for each in choices))
        assert summary.pass_hat[k] == pytest.approx(fmean(fmean(map(all, each)) for each in choices))
    assert list(summary.pass_at) == list(summary.pass_hat) == [1, 2, 4]
    assert summary.avg_at_k == summary.success_rate == summary.pass_at[1] == summary.pass_hat[1]
    assert summary.pass_at_intervals[1] == summary.pass_hat_intervals[1] == summary.success_interval
    assert summary.pass_at_intervals[4] == success_interval(3, 4)
    assert summary.pass_hat_intervals[2] == interval_of([1 / 6, 0.0, 1.0, 0.0])
    assert summary.to_json()["solved"] == {"never": (1,), "sometimes": (0, 6), "always": (5,), "unknown": ()}


def test_with_a_fault_estimates_for_k_episodes_are_unknown(record):
    summary = summarise(samples(record, {0: [1.0, 0.0, 1.0], 1: [1.0, 1.0, None]}))
    assert summary.pass_at == {1: (2 / 3 + 1) / 2, 2: 1.0, 3: None}
    assert summary.pass_hat == {1: (2 / 3 + 1) / 2, 2: (1 / 3 + 1) / 2, 3: None}
    assert summary.avg_at_k is summary.pass_at_intervals[3] is summary.pass_hat_intervals[3] is None
    assert summary.success_rate == (2 / 3 + 1) / 2
    assert summarise(samples(record, {0: [1.0], 1: [None]})).pass_at == {1: None}


def test_a_fault_of_the_agent_is_not_a_failure_either(record):
    fault = {"kind": "ModelBusy", "message": "429"}
    asked = replace(record(), score=None, success=None, agent_fault=fault, ending="agent_fault")
    summary = summarise([asked, record(1), record(2, fault="ServerFull")])
    assert (summary.episodes, summary.scored, summary.faulted) == (3, 1, 2)
    assert (summary.faults, summary.agent_faults) == ({"ServerFull": 1}, {"ModelBusy": 1})
    assert summary.endings == {"agent_fault": 1, "fault": 1, "terminated": 1}
    assert (summary.success_rate, summary.mean_score, summary.mean_turns) == (1.0, 1.0, 2.0)


def step(prompt=None, completion=None, **more):
    known = {"prompt_tokens": prompt, "completion_tokens": completion}
    return {**{name: value for name, value in known.items() if value is not None}, **more}


def test_tokens_are_summed_where_they_are_known(record):
    first = step(1000, 50, reasoning_tokens=30, cached_tokens=600, agent_seconds=2.0, retries=2)
    second = step(1200, 70, agent_seconds=1.0)
    replies = tuple({"role": "assistant", "content": "x"} for _ in range(2))
    whole = record(0, steps=(first, second), messages=replies)
    tokens = summarise([whole]).tokens
    assert (tokens.prompt, tokens.completion, tokens.reasoning, tokens.cached) == (2200, 120, 30, 600)
    assert (tokens.uncounted, tokens.per_second) == (0, 40.0)
    silent = record(1, steps=(step(agent_seconds=5.0),))
    faulted = record(2, fault="ServerFull", steps=(step(10, 1),))
    tokens = summarise([whole, silent, faulted]).tokens
    assert (tokens.prompt, tokens.completion, tokens.uncounted) == (2210, 121, 1)
    assert tokens.per_second == 40.0
    none = summarise([silent]).tokens
    assert none.prompt is none.completion is none.reasoning is none.cached is none.per_second is None
    assert summarise([whole]).retries == 2


@pytest.mark.parametrize("said", [-5, 10**400, None, "12", 1.5])
def test_invalid_token_counts_are_unknown(record, said):
    steps = ({"prompt_tokens": said, "completion_tokens": said, "agent_seconds": 1.0},)
    tokens = summarise([record(steps=steps)]).tokens
    assert tokens.prompt is tokens.completion is tokens.per_second is None
    assert tokens.uncounted == 1


def test_a_run_has_a_price_where_all_of_its_tokens_are_known(record):
    price = Price(input=2.0, cached_input=0.5, output=10.0)
    reply = ({"role": "assistant", "content": "x"},)
    whole = record(0, steps=(step(1_000_000, 100_000, cached_tokens=400_000),), messages=reply)
    assert summarise([whole], price).cost == pytest.approx(0.6 * 2.0 + 0.4 * 0.5 + 0.1 * 10.0)
    assert summarise([whole], Price(input=2.0, output=10.0)).cost == pytest.approx(3.0)
    assert summarise([whole]).cost is None
    assert summarise([whole, record(1, messages=reply)], price).cost is None
    overflowed = record(1, ending="context_overflow", steps=(step(),), messages=reply)
    assert summarise([whole, overflowed], price).cost == summarise([whole], price).cost


def test_the_time_of_agent_and_environment_are_apart(record):
    timed = record(0, agent_seconds=0.25, env_seconds=0.125)
    summary = summarise([timed, timed, record(1)])
    assert (summary.agent_seconds, summary.env_seconds, summary.seconds) == (0.5, 0.25, 1.5)
    assert summarise([record()]).agent_seconds is summarise([record()]).env_seconds is None


def test_measurements_of_time_are_separate(record):
    """All else is the same for two runs with the same replies."""
    slow = step(100, 10, cached_tokens=90, agent_seconds=9.0, retries=3)
    quick = step(100, 10, cached_tokens=0, agent_seconds=1.0)
    first = record(0, steps=(slow,), seconds=10.0, agent_seconds=9.0, counters=Stats(requests=9).as_dict())
    other = record(0, steps=(quick,), seconds=1.5, env_seconds=0.1, counters=Stats(requests=2).as_dict())
    price = Price(input=1.0, output=2.0, cached_input=0.1)
    one, two = (summarise([each], price).to_json() for each in (first, other))
    timing = one.pop("timing"), two.pop("timing")
    assert one == two
    assert all(timing[0][name] != timing[1][name] for name in timing[0])
    assert timing[0]["counters"]["requests"] == 9


def outcome_of(score):
    """Return the fields of a record with a score, or of a fault without one."""
    if score is None:
        return {"fault": {"kind": "ServerFull", "message": ""}}
    return {"score": score, "success": score > 0.5}


outcomes = st.dictionaries(
    st.integers(0, 9),
    st.lists(st.sampled_from([None, 0.0, 0.1, 0.7, 1.0]), min_size=1, max_size=5),
    max_size=6,
)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(outcomes=outcomes, source=st.randoms(use_true_random=False))
def test_the_order_of_the_episodes_makes_no_difference(outcomes, source):
    errors = {"NoAction": 1}
    records = [
        episode(task, sample=sample, seconds=0.1 * task + sample, parse_errors=errors, **outcome_of(score))
        for task, each in outcomes.items()
        for sample, score in enumerate(each)
    ]
    summary = summarise(records)
    value = summary.to_json()
    assert json.dumps(summarise(source.sample(records, len(records))).to_json()) == json.dumps(value)
    json.dumps(value, allow_nan=False)
    for name in ("mean_score", "success_rate"):
        assert value[name] is None or 0 <= value[name] <= 1
    at = [each for each in summary.pass_at.values() if each is not None]
    hat = [each for each in summary.pass_hat.values() if each is not None]
    assert at == pytest.approx(sorted(at))
    assert hat == pytest.approx(sorted(hat, reverse=True))
    solved = summary.solved
    parts = (solved.never, solved.sometimes, solved.always, solved.unknown)
    assert sorted(sum(parts, ())) == sorted(outcomes)


def test_a_mean_of_scores_of_any_size_is_a_number(record):
    summary = summarise([record(i, score=1.7e308) for i in range(3)] + [record(3, score=-1.7e308)])
    assert summary.mean_score == pytest.approx(0.85e308)
    assert all(map(math.isfinite, summary.score_interval))


def test_success_is_not_score(record):
    summary = summarise([record(score=0.5, success=False), record()])
    assert (summary.mean_score, summary.success_rate) == (0.75, 0.5)


def test_unreadable_replies_are_a_share_of_all(record):
    half = record(turns=4, parse_errors={"NoAction": 1, "BadArguments": 1})
    summary = summarise([half, record(turns=6, parse_errors={"NoAction": 1})])
    assert summary.parse_error_share == 0.3
    assert summary.parse_errors == {"BadArguments": 1, "NoAction": 2}


def test_counters_are_summed_and_unknown_ones_are_listed(record):
    one = Stats(requests=7, retries=1, reconnects=2, faults=Counter(ServerTimeout=1), queued=0.5).as_dict()
    two = Stats(requests=5, faults=Counter(ServerTimeout=1, BadReply=1)).as_dict()
    counted = summarise([record(counters=one), record(counters=None), record(counters=two)]).counters
    assert (counted["episodes"], counted["uncounted"]) == (3, 1)
    assert (counted["requests"], counted["retries"], counted["reconnects"]) == (12, 1, 2)
    assert counted["faults"] == {"ServerTimeout": 2, "BadReply": 1}
    assert counted["queued"] == 0.5


@pytest.mark.parametrize("faults", [0, 2])
def test_over_nothing_there_is_no_average(record, faults):
    summary = summarise([record(fault="ServerFull")] * faults)
    assert summary.episodes == faults
    assert summary.scored == 0
    assert summary.to_json()["mean_score"] is summary.success_rate is summary.mean_turns is None
    assert summary.parse_error_share is summary.success_interval is None
