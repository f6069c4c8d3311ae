"""A server that misbehaves on request, and each kind of environment on it."""

from __future__ import annotations

import pytest

import inside
from bad_textcraft import Alone, Among, Awaited, Server


@pytest.fixture
def server(monkeypatch):
    inside.retry_at_once(monkeypatch)
    with Server() as server:
        yield server


@pytest.fixture(params=[Alone, Awaited, Among], ids=["AgentGymEnv", "AsyncAgentGymEnv", "AgentGymVectorEnv"])
def make(request, server):
    made = []

    def play(**options):
        made.append(request.param(server.url, **options))
        return made[-1]

    yield play
    for each in made:
        each.close()


@pytest.fixture
def play(make):
    return make()
