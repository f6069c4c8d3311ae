"""Environments as parameters of tests."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

__all__ = ["OTHER_PROGRAMS", "slow_with_other_programs"]

OTHER_PROGRAMS = {"miniwob", "sciworld", "webarena"}
"""Environments whose server starts Java or a browser."""


def slow_with_other_programs(environments: Iterable[Any]) -> list[Any]:
    """Return environments, or names, as parameters; a server that starts other programs takes seconds."""
    return [
        pytest.param(each, marks=pytest.mark.slow)
        if getattr(each, "name", each).lower() in OTHER_PROGRAMS
        else each
        for each in environments
    ]
