"""Waits before a retry: exponential backoff with jitter, and what a server requests by ``Retry-After``."""

from __future__ import annotations

import contextlib
import math
import random
import time
from email.utils import parsedate_to_datetime

__all__ = ["backoff", "retry_after_seconds"]

_MOST_DOUBLINGS = 30  # 2.0 ** 1024 is an error


def backoff(
    attempt: int, first: float, most: float = math.inf, jitter: tuple[float, float] = (0.5, 1)
) -> float:
    """Return the seconds to wait before a retry.

    Args:
        attempt: How many retries there were before.
        first: Seconds before the first retry, which double for each further one.
        most: Seconds at most, before the jitter.
        jitter: The range of the random factor, which keeps clients from coming back at once.
    """
    wait = min(first * 2.0 ** min(attempt, _MOST_DOUBLINGS), most)
    return wait * random.uniform(*jitter)  # noqa: S311 - no secret


def retry_after_seconds(value: str, *, fractions: bool = False) -> float | None:
    """Return the seconds that a ``Retry-After`` requests (RFC 9110, section 10.2.3); None if it is neither.

    Args:
        value: The header's value: a whole number of seconds, or a date.
        fractions: Whether to read any number of seconds, as servers of models write them.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        return float(text)
    if fractions:
        with contextlib.suppress(ValueError):
            seconds = float(text)
            return None if math.isnan(seconds) else max(seconds, 0.0)
    try:
        return max(parsedate_to_datetime(text).timestamp() - time.time(), 0.0)
    except (ValueError, TypeError, OverflowError):
        return None
