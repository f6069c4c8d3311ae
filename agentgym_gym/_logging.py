"""Structured logging: a constant event name, with fields that a program can read."""

from __future__ import annotations

import logging
from typing import Any

__all__ = ["log", "logger"]

logger = logging.getLogger("agentgym_gym")
"""The logger of this library."""

logger.addHandler(logging.NullHandler())  # the application configures its own handlers


def log(level: int, event: str, **facts: Any) -> None:
    """Log an event, if its level is enabled.

    The record's ``agentgym`` is a dict of the event and its fields; its message is the same in one line.

    Args:
        level: A level of `logging`.
        event: The constant name of the event.
        **facts: Its fields, without passwords.
    """
    if logger.isEnabledFor(level):
        message = event + ":" + "".join(f" {name}=%({name})r" for name in facts)
        logger.log(level, message, facts, extra={"agentgym": {"event": event, **facts}}, stacklevel=2)
