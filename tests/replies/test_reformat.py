"""A trajectory put into any format and back equals itself, in every environment."""

from __future__ import annotations

import itertools
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_gym import FORMATS
from agentgym_gym.data import Message, SourceFormat, Trajectory, own_prompt, reformat
from agentgym_gym.env import AgentGymEnv
from agentgym_gym.formats import get_format
from agentgym_gym.testing.strategies import thoughts
from every_format import ENVIRONMENTS, each_environment

NAMES = [*FORMATS, "tool_calls"]
FULL = settings.default.max_examples >= 25  # HYPOTHESIS_PROFILE=full


def trajectory_of(environment, action_format, turns, **fields):
    """A trajectory whose replies are as the format writes them."""
    messages = [Message("system", own_prompt(environment, {"action_format": action_format}))]
    for number, (action, thought) in enumerate(turns):
        reply = get_format(action_format).render(action, thought)
        messages += [
            Message("user", f"Observation {number}."),
            Message("assistant", reply, loss=True, extra={"reasoning_content": "Hm."}),
        ]
    messages.append(Message("user", "Done."))
    task = environment.split(None)[0]
    return Trajectory(
        environment.id, task, tuple(messages), 1.0, success=True, action_format=action_format, **fields
    )


PLAIN = st.sampled_from(["", "I know what to do next.", "I look around.\nThen I go on,  and on."])


@pytest.mark.slow
@each_environment
def test_into_every_format_and_back(environment):
    """The text is the same but where a format on the way has no place for the thought, or for its lines.

    Each source and each target comes once in an environment, and all pairs of them in seven; the full profile
    has all pairs in each.
    """
    routes = list(itertools.product(NAMES, repeat=2))
    if not FULL:
        others = np.roll(NAMES[::-1], ENVIRONMENTS.index(environment))
        routes = list(zip(NAMES, others.tolist(), strict=True))

    @given(st.lists(st.tuples(environment.grammar.strategy(), thoughts(), PLAIN), min_size=1, max_size=3))
    def check(drawn):
        for source, target in routes:
            # Native calls follow free text, which may leave a doubt whether the call is meant.
            plain = "tool_calls" in (source, target)
            turns = [(action, simple if plain else thought) for action, thought, simple in drawn]
            given_ = trajectory_of(environment, source, turns)
            kept = [(action, _kept(thought, source, target)) for action, thought in turns]
            there = reformat(given_, environment, source, target)
            assert there.unparsed == ()
            assert there.trajectory.action_format == target
            assert_says(environment, there.trajectory, kept)
            back = reformat(there.trajectory, environment, target, source)
            assert back.unparsed == ()
            assert back.trajectory == trajectory_of(environment, source, kept)

    check()


def _kept(thought, *formats):
    if "bare" in formats:
        return ""
    return " ".join(thought.split()) if "adapt" in formats else thought


def assert_says(environment, trajectory, turns):
    """Check that the environment itself reads what was meant, and that nothing else has changed."""
    action_format = get_format(trajectory.action_format)
    system, *said = trajectory.messages
    assert system.content == own_prompt(environment, {"action_format": action_format.name})
    assert [each.content for each in said[::2]] == [f"Observation {n}." for n in range(len(turns))] + [
        "Done."
    ]
    for message, (action, thought) in zip(said[1::2], turns, strict=True):
        read = action_format.parse(message.content, environment.grammar)
        assert read == action
        assert (message.loss, message.extra) == (True, {"reasoning_content": "Hm."})
        assert action_format.thought_of(message.content, action).split() == thought.split()


@each_environment
def test_reformatted_replies_play_the_same_actions(environment):
    """The environment would send the same words in any format."""
    turns = [(action, "I know.") for action in environment.grammar.examples]
    wanted = [str(action) for action, _ in turns]
    number = ENVIRONMENTS.index(environment)
    for target in NAMES if FULL or number == 0 else [NAMES[number % len(NAMES)]]:
        there = reformat(trajectory_of(environment, "react", turns), environment, "react", target)
        env = AgentGymEnv(environment.name, action_format=target)
        replies = [each.content for each in there.trajectory.messages if each.role == "assistant"]
        assert [env.read(reply) for reply in replies] == wanted
        env.close()


def test_every_format_is_here():
    assert set(get_args(SourceFormat)) == {*NAMES, "agentgym"}
