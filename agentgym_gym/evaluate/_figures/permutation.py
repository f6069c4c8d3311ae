"""The paired permutation test: whether a difference between two runs may be chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

__all__ = ["DRAWS", "ENUMERATED", "PermutationTest", "permutation_test"]

_Floats: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

ENUMERATED = 20
"""Up to how many differences that are not 0 all signs are tried: 2 ** 20 of them."""

DRAWS = 100_000
"""How many signs are drawn by chance where there are more differences."""

_SAME = 1e-9  # of the sum of all differences: sums that differ by less are equal but for rounding


@dataclass(frozen=True)
class PermutationTest:
    """What the test says.

    Attributes:
        p_value: How likely a mean difference at least as far from 0, on either side, is by chance alone.
        draws: How many signs were drawn; None where the p-value is exact.
    """

    p_value: float
    draws: int | None


def permutation_test(differences: Sequence[float], *, draws: int = DRAWS, seed: int = 0) -> PermutationTest:
    """Test, two-sided, whether the mean of paired differences is 0.

    If the two runs do not differ, each difference might as well have had the other sign. The p-value is the
    share of the choices of signs whose sum is at least as far from 0 as the sum that was seen: R. A. Fisher,
    "The design of experiments" (1935), section 21. With up to `ENUMERATED` differences that are not 0 all
    choices are tried. With more of them signs are drawn, and the p-value is (b + 1) / (m + 1), where b of m
    draws are as far: B. Phipson and G. K. Smyth, "Permutation p-values should never be zero", Statistical
    Applications in Genetics and Molecular Biology 9 (2010), article 39, arXiv:1603.05766.

    Where all differences that are not 0 have one size, the sum depends only on how many are positive, and the
    p-value is exact for any number of them. With one episode for each task this is so for success, and the
    test is the exact test of Q. McNemar, Psychometrika 12 (1947), 153-157.

    Args:
        differences: One for each task.
        draws: How many signs are drawn.
        seed: Seed of the draws.
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
    """Return sums of the sizes with signs by chance: a random byte chooses the sum of eight of them."""
    eights = np.append(sizes, np.zeros(-sizes.size % 8)).reshape(-1, 8)
    signs = np.unpackbits(np.arange(256, dtype=np.uint8)[:, None], axis=1) * 2.0 - 1.0
    sums = np.zeros(draws)
    for choices in eights @ signs.T:
        sums += choices[np.frombuffer(source.bytes(draws), dtype=np.uint8)]
    return sums


def _all_sums(sizes: _Floats) -> _Floats:
    """Return the sums of the sizes for all choices of their signs."""
    sums = np.zeros(1)
    for size in sizes:
        sums = np.concatenate([sums - size, sums + size])
    return sums


def _of_one_size(positive: int, number: int) -> float:
    """Return the p-value of a binomial test with the chance 1/2."""
    ways = below = 1  # of choosing none of them
    for chosen in range(min(positive, number - positive)):
        ways = ways * (number - chosen) // (chosen + 1)
        below += ways
    return min(1.0, 2 * below / (1 << number))
