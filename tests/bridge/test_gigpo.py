"""GiGPO's advantages match the paper's formulas, computed here once more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_bridge._credit.gigpo import advantages, discounted

rewards_of_turn = st.floats(-10, 10, allow_subnormal=False) | st.sampled_from([0.0, 0.0, 1.0])
turns = st.tuples(rewards_of_turn, st.sampled_from("abcd"))
episodes = st.lists(
    st.tuples(st.sampled_from("xyz"), st.lists(turns, min_size=1, max_size=8)), min_size=1, max_size=12
)


def by_formulas(scores, groups, rewards, states, gamma, *, by_std):
    """Equations 3, 6 and 7 of arXiv 2505.10978, each sum written out."""
    whole, steps = [], []
    for i, score in enumerate(scores):
        others = np.array([scores[j] for j in range(len(scores)) if groups[j] == groups[i]])
        scale = (np.std(others, ddof=1) + 1e-6) if by_std and len(others) > 1 else 1.0
        whole.append((score - others.mean()) / scale if len(others) > 1 else score)
    future = [
        [sum(gamma ** (k - t) * own[k] for k in range(t, len(own))) for t in range(len(own))]
        for own in rewards
    ]
    for i, own in enumerate(states):
        steps.append([])
        for t, state in enumerate(own):
            anchor = np.array(
                [
                    future[j][k]
                    for j in range(len(states))
                    for k in range(len(states[j]))
                    if groups[j] == groups[i] and states[j][k] == state
                ]
            )
            scale = (np.std(anchor, ddof=1) + 1e-6) if by_std and len(anchor) > 1 else 1.0
            steps[-1].append((future[i][t] - anchor.mean()) / scale)
    return whole, steps


@pytest.mark.slow
@given(episodes=episodes, gamma=st.sampled_from([0.0, 0.5, 0.95, 1.0]), by_std=st.booleans())
def test_they_match_the_formulas(episodes, gamma, by_std):
    groups = [group for group, _ in episodes]
    rewards = [[reward for reward, _ in own] for _, own in episodes]
    states = [[state for _, state in own] for _, own in episodes]
    scores = [sum(own) for own in rewards]
    whole, steps = advantages(scores, groups, rewards, states, gamma=gamma, by_std=by_std)
    expected, expected_steps = by_formulas(scores, groups, rewards, states, gamma, by_std=by_std)
    np.testing.assert_allclose(whole, expected, rtol=1e-9, atol=1e-9)
    for own, expected_own in zip(steps, expected_steps, strict=True):
        np.testing.assert_allclose(own, expected_own, rtol=1e-9, atol=1e-9)


def test_a_case_with_numbers():
    """From the fork "a", one episode goes right and solves the task a turn later, one goes wrong."""
    scores, rewards = [1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]]
    states = [["a", "b"], ["a", "a"]]
    whole, steps = advantages(scores, ["g", "g"], rewards, states, gamma=0.5, by_std=False)
    assert whole == [0.5, -0.5]
    assert steps == [pytest.approx([1 / 3, 0.0]), pytest.approx([-1 / 6, -1 / 6])]


def test_states_of_other_groups_are_not_compared():
    _, steps = advantages([1.0, 0.0], ["g", "h"], [[1.0], [0.0]], [["a"], ["a"]], gamma=1.0, by_std=True)
    assert steps == [[0.0], [0.0]]


def test_the_discount_counts_turns():
    assert discounted([1.0, 0.0, 4.0], 0.5) == [2.0, 2.0, 4.0]
