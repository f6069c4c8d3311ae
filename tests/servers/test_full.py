"""A full server: its console and its responses, over real sockets."""

from __future__ import annotations

import subprocess
import sys

import httpx
import pytest

import programs

pytestmark = pytest.mark.slow

COMMANDS = {
    "agentgym": ["agentgym_gym", "serve"],
    "module": ["agentgym_servers"],
}


@pytest.mark.parametrize(
    ("name", "command", "status"), [("maze", "agentgym", 200), ("todolist", "module", 500)]
)
def test_the_console_and_the_reply_of_a_full_server_name_the_limit(name, command, status):
    process = programs.start(
        [sys.executable, "-m", *COMMANDS[command], name, "--max-envs", "3", "--port", "0"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    url = process.stdout.readline().split()[-1]
    made = [httpx.post(f"{url}/create", json={"id": 0}) for _ in range(3)]
    refused = [httpx.post(f"{url}/create", json={"id": 0}) for _ in range(20)]
    process.terminate()
    _, console = process.communicate(timeout=30)
    assert {each.status_code for each in made} == {200}
    assert {each.status_code for each in refused} == {status}
    for each in refused:
        assert "This server has 3 environments, which is its limit" in each.text
        assert "--max-envs" in each.text
    if status == 200:
        assert list(refused[0].json()) == ["error"]
    else:
        assert refused[0].text.startswith("Internal Server Error: ")
        assert refused[0].headers["content-type"] == "text/plain; charset=utf-8"
    (line,) = [each for each in console.splitlines() if each.strip()]
    assert "is full: 3 environments are open, the limit of --max-envs." in line
    assert "AgentGym's own clients never close theirs" in line
