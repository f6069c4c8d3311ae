"""What the tests of local servers share."""

from __future__ import annotations

import contextlib
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

import needs
from agentgym_gym.local_servers import LocalServer


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
    folder = tmp_path / "dev_databases" / "zoo"
    folder.mkdir(parents=True)
    with contextlib.closing(sqlite3.connect(folder / "zoo.sqlite")) as connection:
        connection.executescript("CREATE TABLE animal (id INTEGER); INSERT INTO animal VALUES (4), (7);")
    question = {"db_id": "zoo", "question": "How many?", "evidence": "", "SQL": "SELECT count(*) FROM animal"}
    (tmp_path / "dev.json").write_text(json.dumps([question]))
    return tmp_path
