"""pass@k and pass^k: the probability that one, or all, of k episodes of a task solve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import TypeAlias

from agentgym_gym.errors import BadOption

__all__ = ["Estimator", "ks_up_to", "over_tasks", "pass_at_k", "pass_hat_k"]

Estimator: TypeAlias = Callable[[int, int, int], float | None]
"""Estimates a metric of one task from the number of scored episodes, the number of solved ones, and k."""


def pass_at_k(episodes: int, solved: int, k: int) -> float | None:
    """Return the unbiased estimate of the probability that at least one of k episodes of a task solves it.

    Of n episodes, c solve the task. The estimate is the share of subsets of size k that contain at least one
    of these c: 1 - C(n - c, k) / C(n, k). M. Chen et al., "Evaluating large language models trained on code"
    (2021), arXiv:2107.03374, equation 1.

    Args:
        episodes: n, the number of scored episodes of the task.
        solved: c, the number of these that solved it.
        k: Number of attempts.

    Returns:
        The estimate; None if fewer than k episodes are scored, because there is no unbiased estimate then.

    Raises:
        BadOption: ``solved`` is not between 0 and ``episodes``, or ``k`` is less than 1.
    """
    _check(episodes, solved, k)
    if episodes < k:
        return None
    return (comb(episodes, k) - comb(episodes - solved, k)) / comb(episodes, k)


def pass_hat_k(episodes: int, solved: int, k: int) -> float | None:
    """Return the unbiased estimate of the probability that all of k episodes of a task solve it.

    Of n episodes, c solve the task. The estimate is the share of subsets of size k that contain only these c:
    C(c, k) / C(n, k). S. Yao et al., "tau-bench: A benchmark for tool-agent-user interaction in real-world
    domains" (2024), arXiv:2406.12045, which writes it pass^k.

    Args:
        episodes: n, the number of scored episodes of the task.
        solved: c, the number of these that solved it.
        k: Number of attempts.

    Returns:
        The estimate; None if fewer than k episodes are scored, because there is no unbiased estimate then.

    Raises:
        BadOption: ``solved`` is not between 0 and ``episodes``, or ``k`` is less than 1.
    """
    _check(episodes, solved, k)
    return comb(solved, k) / comb(episodes, k) if episodes >= k else None


def over_tasks(estimator: Estimator, tasks: Sequence[tuple[int, int]], k: int) -> list[float] | None:
    """Return an estimate for each task; None if there are no tasks or a task has no estimate.

    Args:
        estimator: `pass_at_k` or `pass_hat_k`.
        tasks: The number of scored episodes and the number of solved ones, for each task.
        k: Number of attempts.
    """
    values = [estimator(episodes, solved, k) for episodes, solved in tasks]
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None


def ks_up_to(samples: int) -> list[int]:
    """Return the powers of two up to a number of samples, and the number itself."""
    powers = [1 << i for i in range(samples.bit_length())]
    return sorted({*powers, samples}) if samples else []


def _check(episodes: int, solved: int, k: int) -> None:
    if not 0 <= solved <= episodes:
        raise BadOption(f"{solved} of {episodes} episodes cannot have solved a task")
    if k < 1:
        raise BadOption("k", k, "at least 1")
