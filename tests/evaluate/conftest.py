"""Fixtures for the tests of runs."""

from __future__ import annotations

import contextlib
import socket

import pytest

from agentgym_gym.env import AgentGymEnv
from agentgym_gym.evaluate import ChatAgent, EpisodeRecord
from agentgym_gym.local_servers import LocalServer
from fake_server import FakeServer, in_turn
from report_browser import browser, view  # noqa: F401 - fixtures


@pytest.fixture
def env(textcraft_url):
    with contextlib.closing(AgentGymEnv("TextCraft", server=textcraft_url)) as env:
        yield env


@pytest.fixture
def model(started):
    """Makes a server that answers in turn, and an agent of it."""

    def make(*answers, **options):
        server = started(FakeServer(in_turn(*answers)))
        return server, ChatAgent("m", base_url=f"{server.url}/v1", **options)

    return make


@pytest.fixture
def mortal():
    """A server of the test's own, to be stopped and started on one port, and an environment on it."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    server = LocalServer("textcraft", port=port)
    with contextlib.closing(AgentGymEnv("TextCraft", server=server.start())) as env:
        try:
            yield server, env
        finally:
            server.stop()


@pytest.fixture
def record():
    """Makes a record out of what matters in a test."""

    def make(task_id=0, *, score=1.0, fault=None, **others):
        fields = {
            "env_id": "agentgym/TextCraft-v0",
            "agent": "someone",
            "task_id": task_id,
            "goal": f"goal {task_id}",
            "score": None if fault else score,
            "success": None if fault else score > 0,
            "return_": 0.0 if fault else score,
            "turns": 2,
            "terminated": not fault,
            "truncated": bool(fault),
            "parse_errors": {},
            "fault": {"kind": fault, "message": "it failed"} if fault else None,
            "seconds": 0.5,
            "rewards": (0.0, score),
            "messages": (
                {"role": "user", "content": "Goal: …"},
                {"role": "assistant", "content": "get 1 stick"},
            ),
        }
        return EpisodeRecord(**{**fields, **others})

    return make
