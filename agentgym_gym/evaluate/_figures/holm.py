"""Correction of p-values for multiple comparisons."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["holm"]


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
