"""Every wire against recordings of AgentGym's own servers: the same bytes out, the right reading back.

An exchange that our wire would send is played: the wire must ask for exactly what was recorded, and read the
reply as the outcome or the fault that it is. All others must be of a kind that is named, so that nothing in a
recording goes unexplained.
"""

from __future__ import annotations

from collections import Counter

import pytest

from agentgym_gym import errors
from agentgym_gym.catalogue import BUILT_IN
from agentgym_gym.wire import Outcome, Start

each_environment = pytest.mark.parametrize(
    "environment", [place.environment() for place in BUILT_IN], ids=lambda e: e.name
)


def check(row, played):
    """Check that a reply was read as what it is."""
    answer, result = row.get("response_json"), played.result
    if isinstance(result, errors.ActionError):
        assert played.flow == "step"  # an action that a wire never sends
    elif row["status"] != 200:
        assert type(result) in {errors.ServerError, errors.WrongServer}
    elif isinstance(answer, dict) and "error" in answer:
        assert type(result) is errors.EnvironmentFailed
    elif played.flow == "create":
        assert isinstance(result, int)
    elif played.flow == "list_envs":
        assert list(result) == answer
    elif played.flow == "reset":
        assert isinstance(result, (Start, errors.EnvironmentFailed))
        check_start(result, played.answers)
    elif played.flow == "step":
        assert isinstance(result, (Outcome, errors.EnvironmentFailed))
        check_outcome(result, played.answers[0])
    else:
        assert result is None


def check_start(start, answers):
    if isinstance(start, Start):
        assert any(text in start.observation for text in map(observation_of, answers) if text)


def check_outcome(outcome, answer):
    if isinstance(outcome, Outcome):
        assert outcome.observation == observation_of(answer)
        assert outcome.reward == answer["reward"]
        ends = [answer.get(name, False) for name in ("done", "terminated", "truncated")]
        assert outcome.done == any(ends)


def observation_of(answer):
    if isinstance(answer, dict):
        return answer.get("observation", answer.get("state"))
    return answer[0] if isinstance(answer, list) else answer


@each_environment
def test_recordings(environment, recorded, report_at_end):
    recording = recorded(environment)
    played, faults, reasons = Counter(), Counter(), Counter()
    for row, result in zip(recording.rows, recording.played, strict=True):
        if isinstance(result, str):
            reasons[result] += 1
            continue
        check(row, result)
        played[result.flow] += 1
        if isinstance(result.result, errors.AgentGymError):
            faults[type(result.result).__name__] += 1
    report_at_end(
        f"{environment.name}: {played.total()} of {len(recording.rows)} exchanges played {dict(played)}"
        f", of them {dict(faults)}; not ours: {dict(reasons)}"
    )
    assert all(played[name] for name in ("identify", "create", "reset", "step"))
    assert played.total() + reasons.total() == len(recording.rows)


@each_environment
def test_the_transcript_in_the_docs_was_recorded(environment, recorded):
    """The server sent the replies in the documentation's episode, to the same actions."""
    recording = recorded(environment)
    results = [p for p in recording.played if not isinstance(p, str)]
    started = [p for p in results if isinstance(p.result, Start)]
    starts = [each for p in started for each in (p.result.observation, observation_of(p.answers[0]))]
    outcomes = [(p.made_of["action"], p.result.observation) for p in results if isinstance(p.result, Outcome)]
    first, *turns = environment.transcript
    assert any(shows(first, observation) for observation in starts)
    assert len(turns) >= 2
    for action, told in zip(turns[::2], turns[1::2], strict=True):
        assert any(action == sent and shows(told, seen) for sent, seen in outcomes), action


def shows(excerpt, observation):
    if excerpt.endswith("…"):
        return observation.startswith(excerpt.removesuffix("…").rstrip())
    return observation.strip() == excerpt.strip()
