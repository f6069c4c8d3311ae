"""Sync and async environments under test, and a server with scripted replies."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv
from fake_server import FakeServer, then_hang_up


class Awaited:
    """The awaitable environment, played as the other one is."""

    def __init__(self, *args, **options):
        self._loop = asyncio.new_event_loop()
        self._env = AsyncAgentGymEnv(*args, **options)

    def reset(self, **options):
        return self._loop.run_until_complete(self._env.reset(**options))

    def step(self, action):
        return self._loop.run_until_complete(self._env.step(action))

    @property
    def stats(self):
        return self._env.stats

    def close(self):
        self._loop.run_until_complete(self._env.close())
        self._loop.run_until_complete(asyncio.sleep(0.02))  # asyncio closes sockets by callbacks
        self._loop.close()


@pytest.fixture(params=[AgentGymEnv, Awaited])
def make_env(request):
    """Makes environments of TextCraft, of either class, and closes them."""
    with contextlib.ExitStack() as stack:

        def make(**options):
            return stack.enter_context(contextlib.closing(request.param("TextCraft", **options)))

        yield make


@pytest.fixture
def arrives(kind):
    """Whether the server executes a request that a fault of this kind hits."""
    return kind in {"lost", "truncate", "garble", "delay"}


class Scripted(FakeServer):
    """A server that answers every request by the bytes ``reply``, and then hangs up if it ``ends``."""

    def __init__(self):
        self.reply, self.ends = b"", False
        super().__init__(lambda request: then_hang_up(self.reply) if self.ends else self.reply)


@pytest.fixture
def scripted(started):
    return started(Scripted())
