"""Local servers, and pairs of AgentGym's client and an environment of this library on them."""

from __future__ import annotations

import contextlib

import pytest

import needs
from agentgym_checkout import import_or_skip
from agentgym_gym.local_servers import LocalServer
from agentgym_pair import NAMES, Pair


@pytest.fixture(scope="module")
def urls():
    """Returns the address of a local server by its name; each is started once for a file of tests."""
    addresses = {}

    def url_of(name):
        if name not in addresses:
            server = LocalServer(name)
            stack.callback(server.stop)
            served = NAMES if name == "all" else [name]
            with needs.programs_for(*(need for each in served for need in needs.needs_of_server(each))):
                addresses[name] = server.start()
        return addresses[name]

    with contextlib.ExitStack() as stack:
        yield url_of


@pytest.fixture
def pair(urls):
    """Makes pairs on the local server of an environment, and closes them."""
    envs = import_or_skip("agentenv.envs")

    def make(name, url=None, **options):
        needs.skip_without(*needs.needs_of_server(name))
        both = Pair(envs, name, url or urls(name), **options)
        stack.callback(both.close)
        return both

    with contextlib.ExitStack() as stack:
        yield make
