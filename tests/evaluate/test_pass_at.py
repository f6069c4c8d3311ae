"""pass@k and pass^k, against all choices of k episodes."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._figures.pass_at import ks_up_to, over_tasks, pass_at_k, pass_hat_k


@pytest.mark.parametrize("episodes", range(1, 8))
def test_both_are_shares_of_all_choices(episodes):
    for solved in range(episodes + 1):
        outcomes = [i < solved for i in range(episodes)]
        for k in range(1, episodes + 1):
            choices = list(combinations(outcomes, k))
            assert pass_at_k(episodes, solved, k) == float(Fraction(sum(map(any, choices)), len(choices)))
            assert pass_hat_k(episodes, solved, k) == float(Fraction(sum(map(all, choices)), len(choices)))


counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@given(counts)
def test_one_of_more_is_likelier_and_all_of_more_less_likely(count):
    episodes, solved = count
    one = [pass_at_k(episodes, solved, k) for k in range(1, episodes + 1)]
    every = [pass_hat_k(episodes, solved, k) for k in range(1, episodes + 1)]
    assert one == sorted(one)
    assert every == sorted(every, reverse=True)
    assert one[0] == every[0] == solved / episodes
    assert {one[-1], every[-1]} <= {0.0, 1.0}
    assert all(0 <= low <= high <= 1 for low, high in zip(every, one, strict=True))


@given(counts, st.data())
def test_one_fails_where_all_are_solved_by_the_others(count, data):
    """That some of k succeed is that not all of them fail."""
    episodes, solved = count
    k = data.draw(st.integers(1, episodes))
    assert pass_at_k(episodes, solved, k) == pytest.approx(1 - pass_hat_k(episodes, episodes - solved, k))


@pytest.mark.parametrize("estimator", [pass_at_k, pass_hat_k])
def test_what_cannot_be_known_is_no_number(estimator):
    assert estimator(3, 3, 4) is None
    assert estimator(0, 0, 1) is None
    assert over_tasks(estimator, [(4, 2), (3, 3)], 4) is None
    assert over_tasks(estimator, [], 1) is None
    assert over_tasks(estimator, [(4, 4), (5, 0)], 4) == [1.0, 0.0]


@pytest.mark.parametrize(("episodes", "solved", "k"), [(2, 3, 1), (2, -1, 1), (2, 1, 0)])
def test_numbers_that_cannot_be_are_refused(episodes, solved, k):
    for estimator in (pass_at_k, pass_hat_k):
        with pytest.raises(BadOption):
            estimator(episodes, solved, k)


def test_the_ks_are_powers_of_two_and_the_number_of_samples():
    assert [ks_up_to(samples) for samples in (0, 1, 2, 4, 5, 10)] == [
        [],
        [1],
        [1, 2],
        [1, 2, 4],
        [1, 2, 4, 5],
        [1, 2, 4, 8, 10],
    ]
