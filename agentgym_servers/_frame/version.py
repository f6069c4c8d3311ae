"""The version of the worlds."""

from __future__ import annotations

__all__ = ["WORLDS_VERSION"]

WORLDS_VERSION = 3
"""Increased whenever a task, a text or a score of any world changes.

Scores on worlds of different versions are not comparable.
"""
