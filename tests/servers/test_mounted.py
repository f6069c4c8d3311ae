"""All local servers by one process, as `agentgym serve all` has them."""

from __future__ import annotations

import httpx
import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import available, servers
from agentgym_servers import serve
from needs import OTHER_PROGRAMS


@pytest.fixture
def url(local_server):
    return local_server.url


@pytest.mark.may_use(*OTHER_PROGRAMS.values())
def test_it_lists_what_it_serves(url):
    assert httpx.get(url).json() == {"servers": [name for name in servers() if available(name) is None]}
    reply = httpx.get(f"{url}/chess/create")
    assert reply.status_code == 404
    assert "There is no server 'chess' here; there is: textcraft, " in reply.json()["detail"]


def test_options_of_one_server_are_not_passed_to_all(tmp_path):
    with pytest.raises(BadOption, match="in place of 'all'"):
        serve("all", data=tmp_path)
