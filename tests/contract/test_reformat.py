"""The actions of the recordings, put into every format and back."""

from __future__ import annotations

import contextlib
import itertools

import pytest

import agentgym_gym
from agentgym_gym import FORMATS
from agentgym_gym.data import Message, Trajectory, own_prompt, reformat
from agentgym_gym.errors import ActionError
from agentgym_gym.formats import get_format

THOUGHT = "I look around.\nThen I go on."


def actions_of(recorded, environment):
    """Return the actions that were sent to the server and that the environment accepts, each once."""
    found = {}
    for played in recorded(environment).played:
        if isinstance(played, str) or played.flow != "step":
            continue
        with contextlib.suppress(ActionError):
            action = get_format("bare").parse(played.made_of["action"], environment.grammar)
            found[str(action)] = action
    return list(found.values())


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment",
    [each for each in agentgym_gym.environments() if each.of_agentgym],
    ids=lambda each: each.name,
)
def test_there_and_back(environment, recorded, report_at_end):
    actions = actions_of(recorded, environment)
    assert actions
    pairs = list(itertools.permutations([*FORMATS, "tool_calls"], 2))
    stride = 1 + len(actions) // 20  # of very many, each goes through some of the pairs
    assert stride <= len(pairs)
    for number, (source, target) in enumerate(pairs):
        messages = [Message("system", own_prompt(environment, {"action_format": source}))]
        thought = "" if "bare" in (source, target) else THOUGHT
        thought = " ".join(thought.split()) if "adapt" in (source, target) else thought
        for action in actions[number % stride :: stride]:
            reply = get_format(source).render(action, thought)
            messages += [Message("user", "?"), Message("assistant", reply, loss=True)]
        given = Trajectory(environment.id, 1, tuple(messages), action_format=source)
        there = reformat(given, environment, source, target)
        assert there.unparsed == ()
        assert reformat(there.trajectory, environment, target, source).trajectory == given
    report_at_end(
        f"reformat: {environment.name}: {len(actions)} recorded actions in {len(pairs)} pairs of formats"
    )
