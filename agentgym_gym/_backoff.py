"""Waits before a retry: exponential backoff with jitter, and the ``Retry-After`` header."""

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
        attempt: Number of earlier retries.
        first: Seconds before the first retry, doubled for each further one.
        most: Upper bound in seconds, before the jitter.
        jitter: The range of the random factor, which prevents clients from retrying at the same time.
    """
    wait = min(first * 2.0 ** min(attempt, _MOST_DOUBLINGS), most)
    return wait * random.uniform(*jitter)  # noqa: S311 - no secret


def retry_after_seconds(value: str, *, fractions: bool = False) -> float | None:
    """Return the seconds of a ``Retry-After`` header (RFC 9110, section 10.2.3); None if it is invalid.

    Args:
        value: The header's value: a whole number of seconds, or a date.
        fractions: Whether to accept any number of seconds, as some model servers send.
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
