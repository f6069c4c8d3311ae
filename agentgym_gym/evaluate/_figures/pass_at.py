"""pass@k and pass^k: whether one, and whether all, of k episodes of a task solve it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import comb
from typing import TypeAlias

from agentgym_gym.errors import BadOption

__all__ = ["Estimator", "ks_up_to", "over_tasks", "pass_at_k", "pass_hat_k"]

Estimator: TypeAlias = Callable[[int, int, int], float | None]
"""Estimates something of one task from its scored episodes, those that solved it, and k."""


def pass_at_k(episodes: int, solved: int, k: int) -> float | None:
    """Estimate without bias how likely at least one of k episodes of a task solves it.

    It is the share of the choices of k among n episodes, c of which solve the task, that hold one that does:
    1 - C(n - c, k) / C(n, k). M. Chen et al., "Evaluating large language models trained on code" (2021),
    arXiv:2107.03374, equation 1.

    Args:
        episodes: n, how many episodes of the task were scored.
        solved: c, how many of them solved it.
        k: How many episodes are asked for.

    Returns:
        The estimate; None where fewer than k episodes were scored, since it cannot be known then.

    Raises:
        BadOption: There cannot be such numbers.
    """
    _check(episodes, solved, k)
    if episodes < k:
        return None
    return (comb(episodes, k) - comb(episodes - solved, k)) / comb(episodes, k)


def pass_hat_k(episodes: int, solved: int, k: int) -> float | None:
    """Estimate without bias how likely all of k episodes of a task solve it.

    It is the share of the choices of k among n episodes, c of which solve the task, that hold no other:
    C(c, k) / C(n, k). S. Yao et al., "tau-bench: A benchmark for tool-agent-user interaction in real-world
    domains" (2024), arXiv:2406.12045, where it is written pass^k.

    Args:
        episodes: n, how many episodes of the task were scored.
        solved: c, how many of them solved it.
        k: How many episodes are asked for.

    Returns:
        The estimate; None where fewer than k episodes were scored, since it cannot be known then.

    Raises:
        BadOption: There cannot be such numbers.
    """
    _check(episodes, solved, k)
    return comb(solved, k) / comb(episodes, k) if episodes >= k else None


def over_tasks(estimator: Estimator, tasks: Sequence[tuple[int, int]], k: int) -> list[float] | None:
    """Return an estimate for each task; None where there are no tasks, or it cannot be known of one.

    Args:
        estimator: `pass_at_k` or `pass_hat_k`.
        tasks: For each task how many episodes were scored, and how many of them solved it.
        k: How many episodes are asked for.
    """
    values = [estimator(episodes, solved, k) for episodes, solved in tasks]
    known = [value for value in values if value is not None]
    return known if known and len(known) == len(values) else None


def ks_up_to(samples: int) -> list[int]:
    """Return the powers of two up to a number of samples, and that number."""
    powers = [1 << i for i in range(samples.bit_length())]
    return sorted({*powers, samples}) if samples else []


def _check(episodes: int, solved: int, k: int) -> None:
    if not 0 <= solved <= episodes:
        raise BadOption(f"{solved} of {episodes} episodes cannot have solved a task")
    if k < 1:
        raise BadOption(f"k={k} should be at least 1")
