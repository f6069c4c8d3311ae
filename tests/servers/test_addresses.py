"""Addresses of servers: the form that AgentGym's clients need and the form of this library, on both sides."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Callable, Iterator

import httpx
import pytest
from fastapi.responses import JSONResponse

from agentgym_gym import AgentGymEnv, errors
from agentgym_gym.evaluate import evaluate, load_oracle
from agentgym_gym.local_servers import LocalServer, server_kind
from command_line import run
from served_app import served


@pytest.fixture(scope="module")
def alone() -> Iterator[Callable[[str], str]]:
    """Returns the URL of a server in a separate process."""
    started: dict[str, LocalServer] = {}

    def url(name: str) -> str:
        return started.setdefault(name, LocalServer(name)).start()

    yield url
    for server in started.values():
        server.stop()


@pytest.fixture(scope="module")
def as_agentgym() -> Iterator[str]:
    """URL of a Maze server with exactly the routes of AgentGym's own: any other path is 404."""
    maze = server_kind("maze").app()

    async def app(scope, receive, send):
        if scope["type"] == "http" and not re.fullmatch("/|/openapi.json|/maze/[a-z_]+", scope["path"]):
            await JSONResponse({"detail": "Not Found"}, status_code=404)(scope, receive, send)
        else:
            await maze(scope, receive, send)

    with served(app) as url:
        yield url


def wins(name: str, url: str) -> bool:
    with contextlib.closing(AgentGymEnv(name, server=url)) as env:
        (record,) = evaluate(env, load_oracle(env.environment), [3])
        return record.success is True


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "path", "where"),
    [
        *(("maze", path, where) for path in ("", "/{name}", "/{name}/{name}") for where in ("alone", "all")),
        ("wordle", "/{name}", "alone"),
        ("wordle", "/{name}/{name}", "all"),
    ],
)
def test_every_form_reaches_the_game(name, path, where, alone, local_url):
    base = alone(name) if where == "alone" else local_url(name)
    url = base + path.format(name=name)
    made = httpx.post(f"{url}/create").json()
    detail = httpx.get(f"{url}/detail", params={"id": made["id"]})
    assert (detail.status_code, "id" in made) == (200, True)
    assert httpx.post(f"{url}//create").json()["id"] > made["id"]  # AgentGym's page has a slash at the end
    assert wins(name, f"{url}/")
    assert httpx.post(f"{url}/nowhere").status_code == 404


def test_an_environment_takes_the_address_that_agentgyms_client_needs(as_agentgym):
    assert httpx.post(f"{as_agentgym}/maze/maze/create").status_code == 404
    for url in (as_agentgym, f"{as_agentgym}/maze", f"{as_agentgym}/maze/"):
        assert wins("Maze", url)


def test_a_wrong_address_is_named_as_it_was_given(as_agentgym):
    env = AgentGymEnv("Maze", server=f"{as_agentgym}/elsewhere/maze")
    with (
        contextlib.closing(env),
        pytest.raises(errors.WrongServer, match="/elsewhere/maze does not"),
    ):
        env.reset(seed=0)


def test_doctor_lists_the_servers_of_serve_all(local_server):
    shown = run("doctor", local_server.url)
    assert shown.exit_code == 0
    for name in ("textcraft", "maze", "webshop"):
        assert f"{local_server.url}/{name}" in shown.stdout
    assert "known here" not in shown.stdout
    found = json.loads(run("doctor", local_server.url, "--json").stdout)
    assert found["ok"]
    assert found["mounted"]["maze"] == f"{local_server.url}/maze"
    around = run("doctor", env={"AGENTGYM_MAZE_URL": local_server.url})
    assert around.exit_code == 1
    assert f"use {local_server.url}/maze" in "".join(around.stdout.split("\n"))


def test_doctor_finds_maze_at_the_address_that_agentgyms_client_needs(as_agentgym):
    found = json.loads(run("doctor", f"{as_agentgym}/maze", "--json").stdout)
    assert (found["ok"], found["environments"]) == (True, ["agentgym/Maze-v0"])
