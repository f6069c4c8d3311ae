"""GiGPO's advantages match the paper's formulas, computed here once more."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from verl_bridge._credit.gigpo import advantages, discounted

rewards_of_turn = st.floats(-10, 10, allow_subnormal=False) | st.sampled_from([0.0, 0.0, 1.0])
turns = st.tuples(rewards_of_turn, st.sampled_from("abcd"), st.sampled_from([0.0, 0.0, 0.1]))
episodes = st.lists(
    st.tuples(st.sampled_from("xyz"), st.lists(turns, min_size=1, max_size=8)), min_size=1, max_size=12
)


def by_formulas(scores, groups, rewards, states, penalties, gamma, *, by_std):
    """Equations 3, 6 and 7 of arXiv 2505.10978, each sum written out; penalties lower their own turns."""
    whole, steps = [], []
    lowered = [score - np.array(lost) for score, lost in zip(scores, penalties, strict=True)]
    for i, own in enumerate(lowered):
        others = [lowered[j] for j in range(len(scores)) if groups[j] == groups[i]]
        mean = np.mean([other.mean() for other in others])
        squares = [np.mean((other - mean) ** 2) for other in others]
        scale = np.sqrt(sum(squares) / (len(others) - 1)) + 1e-6 if by_std and len(others) > 1 else 1.0
        whole.append([(value - mean) / scale if len(others) > 1 else value for value in own])
    future = [
        [sum(gamma ** (k - t) * own[k] for k in range(t, len(own))) - lost[t] for t in range(len(own))]
        for own, lost in zip(rewards, penalties, strict=True)
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
    rewards, states, penalties = ([[turn[part] for turn in own] for _, own in episodes] for part in range(3))
    scores = [sum(own) for own in rewards]
    given = advantages(scores, groups, rewards, states, penalties, gamma=gamma, by_std=by_std)
    expected = by_formulas(scores, groups, rewards, states, penalties, gamma, by_std=by_std)
    for part, expected_part in zip(given, expected, strict=True):
        for own, expected_own in zip(part, expected_part, strict=True):
            # The formulas divide the rounding of equal returns by 1e-6.
            np.testing.assert_allclose(own, expected_own, rtol=1e-9, atol=1e-7)


def test_a_case_with_numbers():
    """From the fork "a", one episode goes right and solves the task a turn later, one goes wrong."""
    scores, rewards = [1.0, 0.0], [[0.0, 1.0], [0.0, 0.0]]
    states = [["a", "b"], ["a", "a"]]
    whole, steps = advantages(scores, ["g", "g"], rewards, states, gamma=0.5, by_std=False)
    assert whole == [[0.5, 0.5], [-0.5, -0.5]]
    assert steps == [pytest.approx([1 / 3, 0.0]), pytest.approx([-1 / 6, -1 / 6])]


def test_a_penalty_lowers_the_advantages_of_its_own_turn():
    """The first of two equal episodes has a malformed reply: only in its second turn."""
    whole, steps = advantages(
        [1.0, 1.0],
        ["g", "g"],
        [[0.0, 1.0], [0.0, 1.0]],
        [["a", "b"], ["a", "b"]],
        [[0.0, 0.5], [0.0, 0.0]],
        gamma=1.0,
        by_std=False,
    )
    assert whole == [[0.125, -0.375], [0.125, 0.125]]
    assert steps == [[0.0, -0.25], [0.0, 0.25]]


def test_a_penalty_among_equal_scores_has_a_bounded_advantage():
    """verl-agent may divide it by a deviation of 0, if the first turn of each episode has none."""
    whole, _ = advantages(
        [0.0] * 8,
        ["g"] * 8,
        [[0.0] * 3] * 8,
        [["a", "b", "c"]] * 8,
        [[0.0, 0.0, 0.1], *[[0.0] * 3] * 7],
        gamma=1.0,
        by_std=True,
    )
    assert min(min(own) for own in whole) > -8


def test_states_of_other_groups_are_not_compared():
    _, steps = advantages([1.0, 0.0], ["g", "h"], [[1.0], [0.0]], [["a"], ["a"]], gamma=1.0, by_std=True)
    assert steps == [[0.0], [0.0]]


def test_the_discount_counts_turns():
    assert discounted([1.0, 0.0, 4.0], 0.5) == [2.0, 2.0, 4.0]
