"""Environments that are played alike, awaited or not, and a server that says what it is told."""

from __future__ import annotations

import asyncio
import contextlib
import socketserver
import threading

import pytest

from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv


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


class _Scripted(socketserver.StreamRequestHandler):
    def handle(self):
        while head := self._head():
            length = next((int(line[15:]) for line in head.split(b"\r\n") if line[:15].lower() == LENGTH), 0)
            self.server.requests.append(head + self.rfile.read(length))
            self.wfile.write(self.server.reply)
            if self.server.ends:
                return

    def _head(self):
        lines = b""
        while not lines.endswith(b"\r\n\r\n"):
            line = self.rfile.readline()
            if not line:
                return b""
            lines += line
        return lines


LENGTH = b"content-length:"


class _Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = daemon_threads = True
    request_queue_size = 100

    def __init__(self):
        super().__init__(("127.0.0.1", 0), _Scripted)
        self.requests, self.reply, self.ends = [], b"", False
        self.url = f"http://127.0.0.1:{self.server_address[1]}"


@pytest.fixture
def scripted():
    """A server that answers every request by the bytes ``reply``, and then hangs up if it ``ends``."""
    with _Server() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
