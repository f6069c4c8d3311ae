"""All local servers by one process, as `agentgym serve all` has them."""

from __future__ import annotations

import contextlib

import httpx
import pytest

from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import BadOption
from agentgym_gym.servers import SERVERS, serve
from agentgym_gym.servers.local import LocalServer


@pytest.fixture(scope="module")
def url():
    server = LocalServer("all")
    yield server.start()
    server.stop()


def test_it_lists_what_it_serves(url):
    assert httpx.get(url).json() == {"servers": list(SERVERS)}
    reply = httpx.get(f"{url}/chess/create")
    assert reply.status_code == 404
    assert "There is no server 'chess' here; there is: textcraft, " in reply.json()["detail"]


@pytest.mark.parametrize(("name", "title"), [("textcraft", "TextCraft"), ("maze", "Maze")])
def test_each_is_played_below_the_path_of_its_name(url, name, title):
    with contextlib.closing(AgentGymEnv(title, server=f"{url}/{name}")) as env:
        _, info = env.reset(options={"task_id": 1})
        assert info["served_by"].startswith("agentgym-gym/")
        assert f"({title}" in info["served_by"]
        assert "fault" not in env.step("Action: inventory")[4]
    assert httpx.get(f"{url}/{name}/openapi.json").json()["info"]["title"] == title


def test_what_one_server_takes_is_not_given_to_all(tmp_path):
    with pytest.raises(BadOption, match="serve that by its name"):
        serve("all", data=tmp_path)
    with pytest.raises(BadOption, match="the Maze server takes no seed"):
        serve("maze", seed=1)
