"""What the tests of local servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from agentgym_gym.local_servers import LocalServer


@pytest.fixture(scope="session")
def local_server() -> Iterator[LocalServer]:
    """One process that serves all local servers, each below its name."""
    server = LocalServer("all")
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def local_url(local_server: LocalServer) -> Callable[[str], str]:
    """Returns the URL of a local server by its name."""
    return lambda name: f"{local_server.url}/{name}"
