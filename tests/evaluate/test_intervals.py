"""Intervals, against scipy's and by simulation.

The numbers of scipy are of its version 1.17.1: ``stats.binomtest(s, n).proportion_ci(method="wilson")`` and
``stats.bootstrap((values,), np.mean, n_resamples=200_000, method="BCa", random_state=1)``.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_gym.evaluate._figures.intervals import bootstrap, share_interval, wilson

SHARES = [0, 0, 0.25, 0.25, 0.5, 0.5, 0.75, 1, 1, 1, 1, 1]
SKEWED = [0.0, 0.1, 0.15, 0.2, 0.3, 0.35, 0.5, 0.9, 1.4, 3.2]


@pytest.mark.parametrize(
    ("successes", "trials", "bounds"),
    [
        (0, 5, (0.0, 0.43448246478317476)),
        (3, 10, (0.10779126740630102, 0.6032218525388546)),
        (50, 100, (0.4038315303659956, 0.5961684696340044)),
    ],
)
def test_wilson_s_is_scipy_s(successes, trials, bounds):
    assert wilson(successes, trials) == pytest.approx(bounds, abs=1e-12)


@pytest.mark.parametrize(
    ("values", "bounds"), [(SHARES, (0.375, 0.8125)), (SKEWED, (0.315, 1.645))], ids=["shares", "skewed"]
)
@pytest.mark.parametrize("seed", range(3))
def test_the_bootstrap_s_is_scipy_s(values, bounds, seed):
    low, high = bounds
    width = high - low
    assert bootstrap(values, seed=seed) == pytest.approx(bounds, abs=0.05 * width)
    assert bootstrap(values, seed=seed, resamples=200_000) == pytest.approx(bounds, abs=0.02 * width)


def test_many_tasks_with_few_values_and_with_many_are_drawn_alike():
    """Which values are drawn, or how often each is: two ways to one distribution."""
    few = [i % 5 / 4 for i in range(300)]
    many = [value + i * 1e-9 for i, value in enumerate(few)]
    assert bootstrap(few) == pytest.approx(bootstrap(many), abs=0.003)


def test_for_many_tasks_it_is_the_normal_one():
    values = np.random.default_rng(5).random(2000)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    assert bootstrap(values.tolist()) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.03 * half
    )


@pytest.mark.parametrize("values", [[], [0.3], [0.3] * 5, [0.0, 0.0]])
def test_values_without_variation_have_no_bootstrap(values):
    assert bootstrap(values) is None


def test_a_share_has_wilson_s_where_a_bootstrap_says_nothing():
    assert share_interval([]) is None
    assert share_interval([1, 0, 0, 1, 1]) == wilson(3, 5)
    assert share_interval([0.0] * 7) == wilson(0, 7)
    assert share_interval([0.5] * 7) == wilson(3.5, 7)
    assert share_interval([0.25]) == wilson(0.25, 1)
    assert share_interval(SHARES) == bootstrap(SHARES)


numbers = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(numbers, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_it_lies_within_the_values_whatever_they_are_and_their_order(values, source):
    interval = bootstrap(values, resamples=200)
    shuffled = source.sample(values, len(values))
    assert bootstrap(shuffled, resamples=200) == interval
    if interval is not None:
        assert min(values) <= interval[0] <= interval[1] <= max(values)


@pytest.mark.parametrize(("scale", "shift"), [(1e-300, 0.0), (1e300, 0.0), (100.0, 7.0)])
def test_it_has_the_unit_of_the_values(scale, shift):
    expected = [bound * scale + shift for bound in bootstrap(SKEWED)]
    found = bootstrap([value * scale + shift for value in SKEWED])
    assert found == pytest.approx(expected, rel=1e-9, abs=0)
    mirrored = bootstrap([-value * scale - shift for value in SKEWED])  # of other draws
    width = expected[1] - expected[0]
    assert mirrored == pytest.approx((-expected[1], -expected[0]), abs=0.1 * width)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "samples", "chances"), [(15, 4, (0.5, 0.5)), (25, 4, (0.3, 2.0)), (100, 8, (2.0, 2.0))]
)
def test_it_holds_the_true_rate_about_95_times_in_100(tasks, samples, chances):
    """Each task has its own chance to be solved, of a beta distribution; the true rate is that one's mean."""
    draws = np.random.default_rng(11)
    true, times, held = chances[0] / sum(chances), 500, 0
    for _ in range(times):
        solved = draws.binomial(samples, draws.beta(*chances, tasks)) / samples
        low, high = share_interval(solved.tolist())
        held += low <= true <= high
    assert 0.92 <= held / times <= 0.98
