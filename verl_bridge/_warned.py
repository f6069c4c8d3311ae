"""Log the errors of additions to verl's trainer instead of raising them: a metric must not end a training."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator

__all__ = ["log", "warned"]

log = logging.getLogger("verl.verl_bridge")
"""A child of verl's logger: verl's trainer process prints no other."""


@contextlib.contextmanager
def warned(name: str) -> Iterator[None]:
    """Log an error as a warning.

    Args:
        name: The name of the result that is then missing.
    """
    try:
        yield
    except Exception:
        log.warning("%s could not be computed", name, exc_info=True)
