"""Fixtures shared by all tests."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from agentgym_gym.servers.local import LocalServer


@pytest.fixture(scope="session")
def textcraft_url() -> Iterator[str]:
    """Base URL of the TextCraft server that all tests share.

    A local one, stopped when the session ends, unless AGENTGYM_TEST_TEXTCRAFT_URL names another to be
    tested against, such as AgentGym's own.
    """
    other = os.environ.get("AGENTGYM_TEST_TEXTCRAFT_URL")
    if other:
        yield other
        return
    server = LocalServer("textcraft")
    yield server.start()
    server.stop()


@pytest.fixture(autouse=True)
def _nothing_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep servers that the developer has configured out of the tests."""
    monkeypatch.delenv("AGENTGYM_TEXTCRAFT_URL", raising=False)
