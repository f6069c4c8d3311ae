"""How things are logged: a few words that stay the same, and facts beside them that a program can read."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["log", "logger"]

logger = logging.getLogger("agentgym_gym")
"""The one logger of this library."""

logger.addHandler(logging.NullHandler())  # who wants to read the log, says where


def log(level: int, event: str, **facts: Any) -> None:
    """Log an event, if anybody listens.

    The record's ``agentgym`` is a dict of the event and its facts; its message says the same in one line.

    Args:
        level: As `logging` has them.
        event: What happened, in words that stay the same.
        **facts: What is known of it, without passwords.
    """
    if logger.isEnabledFor(level):
        message = event + ":" + "".join(f" {name}=%({name})r" for name in facts)
        logger.log(level, message, facts, extra={"agentgym": {"event": event, **facts}}, stacklevel=2)
