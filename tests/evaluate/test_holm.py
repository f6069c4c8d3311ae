"""Holm's correction, compared with the closed testing procedure."""

from __future__ import annotations

import itertools
import random

import pytest

from agentgym_gym.evaluate._figures.holm import holm


def by_closed_testing(p_values):
    """Return the largest Bonferroni p-value over all sets of hypotheses that contain each hypothesis.

    R. Marcus, E. Peritz and K. R. Gabriel, Biometrika 63 (1976), 655-660: a hypothesis is rejected if a test
    of each intersection with it rejects. With Bonferroni's test of an intersection, this is Holm's method.
    """
    places = range(len(p_values))
    sets = [each for size in places for each in itertools.combinations(places, size + 1)]
    bonferroni = {each: min(1.0, len(each) * min(p_values[i] for i in each)) for each in sets}
    return [max(p for each, p in bonferroni.items() if i in each) for i in places]


@pytest.mark.parametrize("seed", range(50))
def test_it_is_the_closed_test_with_bonferronis_tests(seed):
    drawn = random.Random(seed)  # noqa: S311
    p_values = [drawn.choice([drawn.random(), drawn.random() / 50, 0.01, 1.0]) for _ in range(seed % 9)]
    assert holm(p_values) == pytest.approx(by_closed_testing(p_values))


def test_by_hand():
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


def test_tests_that_were_not_performed_do_not_count():
    assert holm([None, 0.01, None, 0.04]) == pytest.approx([None, 0.02, None, 0.04])
    assert holm([None]) == [None]
