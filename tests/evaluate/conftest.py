"""Fixtures for the tests of runs."""

from __future__ import annotations

import contextlib

import pytest

from agentgym_gym.env import AgentGymEnv
from agentgym_gym.evaluate import ChatAgent
from fake_server import FakeServer, in_turn
from report_browser import browser, view  # noqa: F401 - fixtures
from report_runs import episode


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
def record():
    """Makes a record of one reply, which any score solves; a fault is named by its kind."""

    def make(task_id=0, *, score=1.0, fault=None, **others):
        texts = {"user": "Goal: …", "assistant": "get 1 stick"}
        messages = tuple({"role": role, "content": text} for role, text in texts.items())
        usual = {"success": None if fault else score > 0, "seconds": 0.5, "messages": messages}
        return episode(task_id, score=score, fault=fault, **{**usual, **others})

    return make
