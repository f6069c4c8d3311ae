"""The version of the worlds."""

from __future__ import annotations

__all__ = ["WORLDS_VERSION"]

WORLDS_VERSION = 1
"""Raised whenever a task, a text or a score of any world changes: scores on worlds of different versions are
not compared."""
