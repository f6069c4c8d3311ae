"""Fixtures of the tests of the bridge without verl."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import nasty_envs
from agentgym_gym.rollout import close_all


@pytest.fixture
def pools_closed() -> Iterator[None]:
    """Close all pools before the test and after it."""
    close_all()
    yield
    close_all()
    nasty_envs.OneAtATime._open = 0
