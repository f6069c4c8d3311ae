"""What the tests of local servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agentgym_gym.servers.local import LocalServer


@pytest.fixture(scope="session")
def local_url() -> Iterator[Callable[[str], str]]:
    """Returns the URL of a local server by its name; one process serves all."""
    server = LocalServer("all")
    yield lambda name: f"{server.start()}/{name}"
    server.stop()
