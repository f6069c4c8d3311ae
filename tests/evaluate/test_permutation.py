"""The paired permutation test, against all choices of signs and against scipy.

The numbers of scipy are of its version 1.17.1: ``stats.binomtest(wins, wins + losses, 0.5).pvalue``, and
``stats.permutation_test((differences,), np.mean, permutation_type="samples", n_resamples=1_000_000).pvalue``,
which is exact for up to 20 differences.
"""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentgym_gym.evaluate._figures.permutation import DRAWS, permutation_test

SHARES = [0.5, 0.25, -0.25, 0.75, 0.5, 0, 0.25, -0.5, 1, 0.25]
SCORES = [0.31, -0.12, 0.08, 0.44, 0.27, -0.05, 0.19, -0.33, 0.52, 0.11, 0.02, 0.24]
MANY = [0.08, 0.17, 0.0, -0.19, -0.06, -0.22, 0.1, 0.48, -0.07, -0.11, 0.23, 0.19, 0.11, -0.2, 0.07, 0.29]
MANY += [-0.32, -0.06, -0.49, -0.31, -0.47, 0.01, -0.3, 0.16, 0.13, 0.02, -0.68, -0.08, 0.07, 0.11, -0.38]
MANY += [-0.06, -0.21, -0.16, 0.4, -0.16, 0.07, 0.35, -0.1, 0.05]


def by_all_signs(differences):
    """Return the share of the choices of signs whose sum is as far from 0, in whole numbers."""
    seen = abs(sum(differences))
    signs = list(product((-1, 1), repeat=len(differences)))
    sums = [abs(sum(s * d for s, d in zip(each, differences, strict=True))) for each in signs]
    return sum(each >= seen for each in sums) / len(signs)


@given(st.lists(st.integers(-6, 6), max_size=10), st.sampled_from([1.0, 0.1, 1 / 3, 1e300, 1e-300]))
def test_it_is_the_share_of_all_signs(differences, unit):
    test = permutation_test([each * unit for each in differences])
    assert test.p_value == pytest.approx(by_all_signs(differences), rel=1e-12)
    assert test.draws is None


@pytest.mark.parametrize(("differences", "p_value"), [(SHARES, 0.12109375), (SCORES, 0.072265625)])
def test_it_is_scipy_s(differences, p_value):
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


@given(st.lists(st.sampled_from(MANY), max_size=30), st.randoms(use_true_random=False))
def test_neither_order_nor_sides_nor_ties_matter(differences, source):
    p_value = permutation_test(differences, draws=500).p_value
    shuffled = source.sample(differences, len(differences))
    assert permutation_test([*shuffled, 0.0], draws=500).p_value == p_value
    assert permutation_test([-each for each in differences], draws=500).p_value == p_value
    assert 0 < p_value <= 1


@pytest.mark.slow
def test_runs_that_do_not_differ_are_told_apart_5_times_in_100():
    """At most: the p-values of an exact test are discrete."""
    import numpy as np

    draws = np.random.default_rng(3)
    times = 2000
    found = sum(
        permutation_test((draws.binomial(4, 0.6, 18) - draws.binomial(4, 0.6, 18)).tolist()).p_value <= 0.05
        for _ in range(times)
    )
    assert 0.03 <= found / times <= 0.06
