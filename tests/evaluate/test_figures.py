"""The exact arithmetic of figures: intervals, p-values, their correction, pass@k and pass^k.

What they make of episodes is in test_metrics.py and test_compare.py. The numbers here are of other seeds and
other numbers of draws than for runs.

The numbers of scipy are of its version 1.17.1: ``stats.binomtest(s, n).proportion_ci(method="wilson")``,
``stats.bootstrap((values,), np.mean, n_resamples=200_000, method="BCa", random_state=1)``,
``stats.binomtest(wins, wins + losses, 0.5).pvalue``, and ``stats.permutation_test((differences,), np.mean,
permutation_type="samples", n_resamples=1_000_000).pvalue``, which is exact for up to 20 differences.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentgym_gym.evaluate._figures.intervals import bootstrap, share_interval, wilson
from agentgym_gym.evaluate._figures.p_values import DRAWS, holm, permutation_test
from agentgym_gym.evaluate._figures.pass_at import pass_at_k, pass_hat_k

# --- intervals ---

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
def test_the_interval_of_a_rate_is_scipy_s(successes, trials, bounds):
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


def test_for_many_tasks_the_bootstrap_is_the_normal_one():
    values = np.random.default_rng(5).random(2000)
    half = 1.959964 * values.std() / math.sqrt(values.size)
    assert bootstrap(values.tolist()) == pytest.approx(
        (values.mean() - half, values.mean() + half), abs=0.03 * half
    )


@pytest.mark.parametrize("values", [[], [0.3], [0.3] * 5, [0.0, 0.0]])
def test_values_without_variation_have_no_bootstrap(values):
    assert bootstrap(values) is None


def test_a_share_has_wilson_s_where_a_bootstrap_has_no_width():
    assert share_interval([]) is None
    assert share_interval([1, 0, 0, 1, 1]) == wilson(3, 5)
    assert share_interval([0.0] * 7) == wilson(0, 7)
    assert share_interval([0.5] * 7) == wilson(3.5, 7)
    assert share_interval([0.25]) == wilson(0.25, 1)
    assert share_interval(SHARES) == bootstrap(SHARES)


few = settings(max_examples=25)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@few
@given(st.lists(numbers, min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_an_interval_is_within_the_values_in_any_order(values, source):
    interval = bootstrap(values, resamples=200)
    shuffled = source.sample(values, len(values))
    assert bootstrap(shuffled, resamples=200) == interval
    if interval is not None:
        assert min(values) <= interval[0] <= interval[1] <= max(values)


@pytest.mark.parametrize(("scale", "shift"), [(1e-300, 0.0), (1e300, 0.0), (100.0, 7.0)])
def test_an_interval_has_the_unit_of_the_values(scale, shift):
    expected = [bound * scale + shift for bound in bootstrap(SKEWED)]
    found = bootstrap([value * scale + shift for value in SKEWED])
    assert found == pytest.approx(expected, rel=1e-9, abs=0)
    mirrored = bootstrap([-value * scale - shift for value in SKEWED])  # of other draws
    width = expected[1] - expected[0]
    assert mirrored == pytest.approx((-expected[1], -expected[0]), abs=0.1 * width)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tasks", "samples", "chances"),
    [
        (15, 4, (0.5, 0.5)),
        pytest.param(25, 4, (0.3, 2.0), marks=pytest.mark.exhaustive),
        pytest.param(100, 8, (2.0, 2.0), marks=pytest.mark.exhaustive),
    ],
)
def test_an_interval_contains_the_true_rate_about_95_times_in_100(tasks, samples, chances):
    """Each task has its own chance to be solved, of a beta distribution; the true rate is that one's mean."""
    draws = np.random.default_rng(11)
    true, times, held = chances[0] / sum(chances), 300, 0
    for _ in range(times):
        solved = draws.binomial(samples, draws.beta(*chances, tasks)) / samples
        low, high = share_interval(solved.tolist())
        held += low <= true <= high
    assert 0.92 <= held / times <= 0.98


# --- the paired permutation test ---

DIFFERENCES = [0.5, 0.25, -0.25, 0.75, 0.5, 0, 0.25, -0.5, 1, 0.25]
OF_SCORES = [0.31, -0.12, 0.08, 0.44, 0.27, -0.05, 0.19, -0.33, 0.52, 0.11, 0.02, 0.24]
MANY = [0.08, 0.17, 0.0, -0.19, -0.06, -0.22, 0.1, 0.48, -0.07, -0.11, 0.23, 0.19, 0.11, -0.2, 0.07, 0.29]
MANY += [-0.32, -0.06, -0.49, -0.31, -0.47, 0.01, -0.3, 0.16, 0.13, 0.02, -0.68, -0.08, 0.07, 0.11, -0.38]
MANY += [-0.06, -0.21, -0.16, 0.4, -0.16, 0.07, 0.35, -0.1, 0.05]


def by_all_signs(differences):
    """Return the share of the choices of signs whose sum is as far from 0, in whole numbers."""
    seen = abs(sum(differences))
    signs = list(product((-1, 1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]
    return sum(each >= seen for each in sums) / len(signs)


@few
@given(st.lists(st.integers(-6, 6), max_size=10), st.sampled_from([1.0, 0.1, 1 / 3, 1e300, 1e-300]))
def test_a_p_value_is_the_share_of_all_signs(differences, unit):
    test = permutation_test([each * unit for each in differences])
    assert test.p_value == pytest.approx(by_all_signs(differences), rel=1e-12)
    assert test.draws is None


@pytest.mark.parametrize(("differences", "p_value"), [(DIFFERENCES, 0.12109375), (OF_SCORES, 0.072265625)])
def test_a_p_value_is_scipy_s(differences, p_value):
    assert permutation_test(differences).p_value == p_value


@pytest.mark.parametrize(
    ("wins", "losses", "p_value"),
    [
        (3, 6, 0.5078125),
        (0, 6, 0.03125),
        (5, 5, 1.0),
        (1, 0, 1.0),
        (3, 9, 0.14599609375),
        (40, 61, 0.046044066929342785),
    ],
)
@pytest.mark.parametrize("size", [1.0, 0.1])
def test_differences_of_one_size_have_mcnemar_s_exact_test(wins, losses, p_value, size):
    test = permutation_test([size] * wins + [-size] * losses + [0.0] * 5)
    assert (test.p_value, test.draws) == (pytest.approx(p_value, rel=1e-12), None)


def test_mcnemar_s_has_no_limit_of_size():
    test = permutation_test([1.0] * 10_000 + [-1.0] * 10_300)
    assert test.p_value == pytest.approx(0.0359, abs=0.0003)  # normal: z = 299 / sqrt(20300)
    assert permutation_test([1.0] * 20_000).p_value == 0.0  # less than any float


def test_many_differences_are_drawn():
    test = permutation_test(MANY)
    assert test.draws == DRAWS
    assert test.p_value == pytest.approx(0.3339, abs=0.006)  # four standard deviations of the draws
    assert test == permutation_test(MANY)


def test_a_p_value_of_draws_is_never_0():
    """(b + 1) / (m + 1), with b = 0 of m = 100,000 draws."""
    test = permutation_test([1 + i / 100 for i in range(60)])
    assert test.p_value == pytest.approx(1 / 100_001)


@few
@given(st.lists(st.sampled_from(MANY), max_size=30), st.randoms(use_true_random=False))
def test_neither_order_nor_sides_nor_ties_matter(differences, source):
    p_value = permutation_test(differences, draws=500).p_value
    shuffled = source.sample(differences, len(differences))
    assert permutation_test([*shuffled, 0.0], draws=500).p_value == p_value
    assert permutation_test([-each for each in differences], draws=500).p_value == p_value
    assert 0 < p_value <= 1


@pytest.mark.slow
def test_equal_runs_differ_significantly_5_times_in_100():
    """At most: the p-values of an exact test are discrete."""
    draws = np.random.default_rng(3)
    times = 2000
    found = sum(
        permutation_test((draws.binomial(4, 0.6, 18) - draws.binomial(4, 0.6, 18)).tolist()).p_value <= 0.05
        for _ in range(times)
    )
    assert 0.03 <= found / times <= 0.06


# --- Holm's correction ---


def by_closed_testing(p_values):
    """Return the largest Bonferroni p-value over all sets of hypotheses that contain each hypothesis.

    R. Marcus, E. Peritz and K. R. Gabriel, Biometrika 63 (1976), 655-660: a hypothesis is rejected if a test
    of each intersection with it rejects. With Bonferroni's test of an intersection, this is Holm's method.
    """
    places = range(len(p_values))
    sets = [each for size in places for each in combinations(places, size + 1)]
    bonferroni = {each: min(1.0, len(each) * min(p_values[i] for i in each)) for each in sets}
    return [max(p for each, p in bonferroni.items() if i in each) for i in places]


@pytest.mark.parametrize("seed", range(50))
def test_holm_s_is_the_closed_test_with_bonferronis_tests(seed):
    drawn = random.Random(seed)  # noqa: S311
    p_values = [drawn.choice([drawn.random(), drawn.random() / 50, 0.01, 1.0]) for _ in range(seed % 9)]
    assert holm(p_values) == pytest.approx(by_closed_testing(p_values))


def test_holm_s_by_hand():
    assert holm([0.04, 0.01, 0.03, 0.005]) == pytest.approx([0.06, 0.03, 0.06, 0.02])
    assert holm([0.5, 0.6]) == [1.0, 1.0]
    assert holm([]) == []
    assert holm([0.2]) == [0.2]


def test_tests_that_were_not_performed_do_not_count():
    assert holm([None, 0.01, None, 0.04]) == pytest.approx([None, 0.02, None, 0.04])
    assert holm([None]) == [None]


# --- pass@k and pass^k ---


@pytest.mark.parametrize("episodes", range(1, 8))
def test_pass_at_k_and_pass_hat_k_are_shares_of_all_choices(episodes):
    for solved in range(episodes + 1):
        outcomes = [i < solved for i in range(episodes)]
        for k in range(1, episodes + 1):
            choices = list(combinations(outcomes, k))
            assert pass_at_k(episodes, solved, k) == float(Fraction(sum(map(any, choices)), len(choices)))
            assert pass_hat_k(episodes, solved, k) == float(Fraction(sum(map(all, choices)), len(choices)))


counts = st.integers(1, 400).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n)))


@few
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


@few
@given(counts, st.data())
def test_one_fails_where_all_are_solved_by_the_others(count, data):
    """That some of k succeed is that not all of them fail."""
    episodes, solved = count
    k = data.draw(st.integers(1, episodes))
    assert pass_at_k(episodes, solved, k) == pytest.approx(1 - pass_hat_k(episodes, episodes - solved, k))
