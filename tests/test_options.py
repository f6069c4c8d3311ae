"""The options of an environment, declared once."""

from __future__ import annotations

import inspect
from typing import get_args

import httpx
import pytest

from agentgym_gym import FORMATS, AgentGymEnv, AsyncAgentGymEnv, FormatName, errors, find


def test_the_options_match_an_awaited_environment():
    options, awaited = (inspect.signature(kind).parameters for kind in (AgentGymEnv, AsyncAgentGymEnv))
    assert options == awaited
    assert {*get_args(FormatName)} == {*FORMATS, "tool_calls"}


def test_options_that_differ_from_the_defaults_are_shown():
    shown = repr(AgentGymEnv("SearchQA", action_format="react", max_turns=None, answers=1))
    assert shown == "AgentGymEnv('SearchQA', max_turns=None, answers=1)"


@pytest.mark.parametrize(
    ("environment", "timeout", "close"),
    [
        ("TextCraft", 300.0, 5),
        ("TextCraft", 2, 2),
        ("WebArena", 300.0, 30),
        ("WebArena", 4, 30),  # a number of seconds for replies does not make each close a fault
        ("WebArena", {"step": 1}, 30),
        ("WebArena", {"close": 3}, 3),
        ("SciWorld", 60, 15),
    ],
)
def test_an_environment_has_its_own_time_limits(environment, timeout, close):
    seconds = []

    def answer(request):
        """Make an environment that cannot be reset, and so is closed."""
        if request.url.path == "/close":
            seconds.append(request.extensions["timeout"]["read"])
        made = {"id": 0, "env_idx": 0} if request.url.path == "/create" else {"error": "no such id"}
        return httpx.Response(200, json=find(environment).wire.greeting if request.method == "GET" else made)

    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        env = AgentGymEnv(environment, server="http://own.test", timeout=timeout, http_client=client)
        with pytest.raises(errors.Fault):
            env.reset(seed=0)
    assert seconds == [pytest.approx(close, abs=0.9)]
