"""How many episodes `agentgym eval` plays at a time on the servers of an environment."""

import asyncio
import json
import sys
import types

import pytest

from agentgym_gym import find


class Together:
    """An agent whose episodes wait until as many as expected are open, and a little longer."""

    name = "together"
    open = most = 0

    async def reset(self, env, observation, info):
        kind = type(self)
        kind.open += 1
        kind.most = max(kind.most, kind.open)
        if kind.most == kind.expected:
            kind.reached.set()

    async def act(self, observation, info):
        kind = type(self)
        await asyncio.wait_for(kind.reached.wait(), 60)
        await asyncio.sleep(0.05)
        kind.open -= 1


@pytest.mark.parametrize(
    ("own", "arguments", "most"),
    [(True, {}, 8), (True, {"max_envs_per_server": 3}, 3), (False, {}, 2)],
)
def test_the_capacity_is_agentgyms_only_on_its_own_servers(
    run, tmp_path, textcraft_url, counted, monkeypatch, own, arguments, most
):
    monkeypatch.setattr(type(find("TextCraft").wire), "capacity", 2)
    agents = types.ModuleType("own_agents")
    agents.Together = type("Together", (Together,), {"expected": most, "reached": asyncio.Event()})
    monkeypatch.setitem(sys.modules, "own_agents", agents)
    url = textcraft_url if own else counted().url
    options = ("--tasks", "0:16", "--max-turns", 1, "--concurrency", 8, "--server", url)
    agent = ("--agent", "own_agents:Together", "--env-kwargs", json.dumps(arguments))
    result = run("eval", "TextCraft", *agent, *options, "--out", tmp_path / "run")
    assert result.exit_code == 0, result.stderr
    assert agents.Together.most == most
