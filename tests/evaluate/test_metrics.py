"""What is counted over episodes."""

import json
import math
from collections import Counter

import pytest

from agentgym_gym import Stats
from agentgym_gym.evaluate import summarise
from agentgym_gym.evaluate.metrics import wilson


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


def test_what_the_environment_does_not_say_is_no_failure(record):
    summary = summarise([record(), record(success=None), record(score=0.0)])
    assert (summary.scored, summary.success_rate) == (3, 0.5)
    assert summary.success_interval == wilson(1, 2)
    silent = summarise([record(success=None)])
    assert silent.success_rate is silent.success_interval is None


def test_success_is_not_score(record):
    summary = summarise([record(score=0.5, success=False), record()])
    assert (summary.mean_score, summary.success_rate) == (0.75, 0.5)


def test_unreadable_replies_are_a_share_of_all(record):
    half = record(turns=4, parse_errors={"NoAction": 1, "BadArguments": 1})
    assert summarise([half, record(turns=6)]).parse_error_share == 0.2


def test_counters_are_summed_and_what_is_not_known_is_said(record):
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
