"""The p-values of the difference between two runs, and their correction for several comparisons."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

__all__ = ["DRAWS", "ENUMERATED", "PermutationTest", "holm", "permutation_test"]

_Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

ENUMERATED = 20
"""Largest number of nonzero differences for which the test enumerates all sign vectors: 2 ** 20 of them."""

DRAWS = 100_000
"""Number of random sign vectors if there are more differences."""

_SAME = 1e-9  # of the sum of all differences: sums that differ by less differ only by rounding


@dataclass(frozen=True)
class PermutationTest:
    """Result of the test.

    Attributes:
        p_value: Two-sided p-value.
        draws: Number of random sign vectors; None if the p-value is exact.
    """

    p_value: float
    draws: int | None


def permutation_test(differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> PermutationTest:
    """Run a two-sided test of the null hypothesis that the mean of paired differences is 0.

    Under the null hypothesis, each difference has either sign with equal probability. The p-value is the
    share of sign vectors whose sum is at least as far from 0 as the observed sum: R. A. Fisher, "The design
    of experiments" (1935), section 21. With up to `ENUMERATED` nonzero differences, the test enumerates all
    sign vectors. With more, it draws random ones, and the p-value is (b + 1) / (m + 1), where b of m draws
    are at least as far from 0: B. Phipson and G. K. Smyth, "Permutation p-values should never be zero",
    Statistical Applications in Genetics and Molecular Biology 9 (2010), article 39, arXiv:1603.05766.

    If all nonzero differences have the same size, the sum depends only on how many are positive, and the
    p-value is exact for any number of them. This is true for success with one episode for each task, where
    the test is the exact test of Q. McNemar, Psychometrika 12 (1947), 153-157.

    Args:
        differences: One difference for each task.
        draws: Number of random sign vectors.
        seed: Seed of the random generator.
    """
    seen = np.sort(np.asarray([each for each in differences if each != 0], dtype=np.float64))
    if not seen.size:
        return PermutationTest(1.0, None)
    seen /= float(np.abs(seen).max())  # so that no sum overflows
    sizes = np.sort(np.abs(seen))
    if sizes[-1] - sizes[0] <= _SAME:
        return PermutationTest(_of_one_size(int((seen > 0).sum()), seen.size), None)
    total = float(sizes.sum())
    least = abs(float(seen.sum())) - _SAME * total
    if sizes.size <= ENUMERATED:
        return PermutationTest(float((np.abs(_all_sums(sizes)) >= least).mean()), None)
    sums = _drawn_sums(sizes, draws, np.random.default_rng(seed))
    as_far = int((np.abs(sums) >= least).sum())
    return PermutationTest((as_far + 1) / (draws + 1), draws)


def _drawn_sums(sizes: _Floats, draws: int, source: np.random.Generator) -> _Floats:
    """Return sums of the sizes with random signs. One random byte selects the signs of eight sizes."""
    eights = np.append(sizes, np.zeros(-sizes.size % 8)).reshape(-1, 8)
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0
    sums = np.zeros(draws)
    for choices in eights @ signs.T:
        sums += choices[np.frombuffer(source.bytes(draws), dtype=np.uint8)]
    return sums


def _all_sums(sizes: _Floats) -> _Floats:
    """Return the sums of the sizes for all sign vectors."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _of_one_size(positive: int, number: int) -> float:
    """Return the p-value of a two-sided binomial test with the probability 1/2."""
    ways = below = 1  # the one way to choose none of them
    for chosen in range(min(positive, number - positive)):
        ways = ways * (number - chosen) // (chosen + 1)
        below += ways
    return min(1.0, 2 * below / (1 << number))


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Return the adjusted p-values of a family of tests.

    A test is significant at a level if its adjusted p-value is at most that level. The probability of one or
    more false rejections among all tests is then at most the level, for any dependence between the tests.
    S. Holm, "A simple sequentially rejective multiple test procedure", Scandinavian Journal of Statistics 6
    (1979), 65-70.

    The smallest of m p-values is multiplied by m, the next one by m - 1, and so on. An adjusted p-value is at
    least as large as those of all smaller p-values, and at most 1.

    Args:
        p_values: The p-value of each test; None for a test that was not performed, which does not count.

    Returns:
        The adjusted p-values, in the same order; None where there was no test.
    """
    tests = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    adjusted: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(tests):
        largest = max(largest, min(1.0, p * (len(tests) - rank)))
        adjusted[i] = largest
    return adjusted
