"""A real nginx that passes its own `Host` to a local server on a loopback address."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Iterator

import httpx
import pytest

import programs
from agentgym_gym import AgentGymEnv, errors

pytestmark = pytest.mark.slow


@contextlib.contextmanager
def serving(*options: str) -> Iterator[str]:
    command = [sys.executable, "-m", "agentgym_servers", "textcraft", "--exit-with-parent", *options]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=programs.environment()
    )
    try:
        yield process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def test_with_allow_host_it_is_played_through(passing_host):
    with (
        serving("--allow-host", "games.example.org") as url,
        contextlib.closing(AgentGymEnv("TextCraft", server=passing_host(url))) as env,
    ):
        _, info = env.reset(options={"task_id": 0})
        assert info["goal"]


def test_without_it_the_error_names_the_option(passing_host):
    with serving() as url:
        through = passing_host(url)
        assert "--allow-host" in httpx.get(through).json()["detail"]
        env = AgentGymEnv("TextCraft", server=through)
        with contextlib.closing(env), pytest.raises(errors.AgentGymError, match="--allow-host"):
            env.reset(options={"task_id": 0})
