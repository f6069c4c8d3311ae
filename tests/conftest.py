"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentgym_gym.servers import local


@pytest.fixture(scope="session")
def textcraft_url() -> str:
    """Base URL of the TextCraft server that all tests share.

    A local one, stopped when the session ends, unless AGENTGYM_TEST_TEXTCRAFT_URL names another to be
    tested against, such as AgentGym's own.
    """
    return os.environ.get("AGENTGYM_TEST_TEXTCRAFT_URL") or local.local_server_url("textcraft")


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Keep servers that the developer has configured out of the tests."""
    monkeypatch.delenv("AGENTGYM_TEXTCRAFT_URL", raising=False)
    return
