"""Local servers, and pairs of AgentGym's client and an environment of this library on them."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_checkout import import_or_skip
from agentgym_gym.local_servers import LocalServer, available
from agentgym_pair import Pair


@pytest.fixture(scope="module")
def urls():
    """Returns the address of a local server by its name; each is started once for a file of tests."""
    addresses = {}

    def url_of(name):
        if name not in addresses:
            server = LocalServer(name)
            stack.callback(server.stop)
            addresses[name] = server.start()
        return addresses[name]

    with contextlib.ExitStack() as stack:
        yield url_of


@pytest.fixture
def pair(urls):
    """Makes pairs on the local server of an environment, and closes them."""
    envs = import_or_skip("agentenv.envs")

    def make(name, url=None, **options):
        missing = available(name)
        if missing is not None:
            pytest.skip(missing)
        both = Pair(envs, name, url or urls(name), **options)
        stack.callback(both.close)
        return both

    with contextlib.ExitStack() as stack:
        yield make
