"""What the tests of local servers share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import needs
from agentgym_gym.local_servers import LocalServer
from bird_folder import write_bird


@pytest.fixture(scope="session")
def local_server() -> Iterator[LocalServer]:
    """One process that serves all local servers, each below its name."""
    server = LocalServer("all")
    with needs.programs_for(*needs.OTHER_PROGRAMS.values()):
        server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def local_url(local_server: LocalServer) -> Callable[[str], str]:
    """Returns the URL of a local server by its name; skips the test if it cannot run on this machine."""

    def url_of(name: str) -> str:
        needs.skip_without(*needs.needs_of_server(name))
        return f"{local_server.url}/{name}"

    return url_of


@pytest.fixture
def bird(tmp_path: Path) -> Path:
    """A folder of BIRD with one database, zoo, and one question of its split dev."""
    return write_bird(tmp_path, "SELECT count(*) FROM animal")
