"""The turns of an episode, as the agent loop records them for credit by turn; without verl."""

from __future__ import annotations

import asyncio

import gymnasium
import numpy as np
import pytest

import verl_bridge.trainer  # noqa: F401 - credit by turn needs it
from agentgym_gym.rollout import close_all
from loop_without_verl import agent_loop, replies, row_of


class Shows(gymnasium.Env):
    """Shows one observation with its info after another, and then ends."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, shown):
        self.shown = shown

    def reset(self, *, seed=None, options=None):
        self.left = list(self.shown)
        return tuple(self.left.pop(0))

    def step(self, action):
        observation, info = self.left.pop(0) if self.left else ("", {})
        return observation, float(len(self.left)), not self.left, False, info


gymnasium.register("bridge/Shows-v0", Shows)


@pytest.fixture(autouse=True)
def _closed():
    yield
    close_all()


def turns_of(*shown, **arguments):
    """Return the record of an episode that shows these observations, each with its info."""
    loop = agent_loop(replies("a"), fault_budget=0, **{"estimator": "gym_gigpo", **arguments})
    output = asyncio.run(loop.run({}, **row_of("bridge/Shows-v0", {"shown": [*shown, ("end", {})]})))
    assert output.extra_fields["env_fault"] is None
    return output.extra_fields["gym_turns"], output


def states_of(*shown):
    return turns_of(*shown)[0]["states"]


def test_a_state_is_the_key_if_there_is_one():
    key = {"state_key": "x"}
    seen, other, empty, text, without, same, one, number, alike, space = states_of(
        ("seen", {}),
        ("seen", {"other": 1}),
        ("", {}),
        ("seen", key),
        ("x", {}),
        ("", key),
        ("", {"state_key": 4}),
        ("", {"state_key": 3}),
        ("", {"state_key": np.int64(3)}),  # of a Discrete space
        ("\ud800", {}),
    )
    assert seen == other != empty
    assert seen != text == same != without
    assert one != number == alike
    assert len(space) == 16


def test_a_key_of_another_type_is_an_error():
    with pytest.raises(TypeError, match=r"state_key.*got dict: write"):
        turns_of(("", {"state_key": {"at": 1}}))


def test_a_reply_without_an_action_leaves_the_state():
    refused = {"parse_error": "NoAction"}
    first, kept, keyed, last = states_of(
        ("at 1", {}),
        ("Your reply was not carried out.", refused),
        ("Your reply was not carried out.", refused | {"state_key": "at 1"}),
        ("at 2", {"parse_error": None}),
    )
    assert first == kept
    assert keyed == states_of(("", {"state_key": "at 1"}))[0]
    assert last == states_of(("at 2", {}))[0]


@pytest.mark.parametrize("turn_rewards", [True, False])
def test_a_turn_has_its_tokens_and_its_reward(turn_rewards):
    record, output = turns_of(("a", {}), ("b", {}), ("c", {}), turn_rewards=turn_rewards)
    assert (record["rewards"], record["place"]) == ([2.0, 1.0, 0.0], turn_rewards)
    masked = [place for place, own in enumerate(output.response_mask) if own]
    spans = zip(record["starts"], record["ends"], strict=True)
    assert [place for start, end in spans for place in range(start, end)] == masked


def test_turns_without_their_tokens_have_no_record():
    record, _ = turns_of(("a", {}), ("b", {}), drop_reasoning=True)
    assert record is None
