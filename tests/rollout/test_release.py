"""What a killed process held is released by the process that outlives it."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import programs
from clock import wait_until

PLAYS = """
    import asyncio, sys
    from verl_bridge.tasks import EnvTask

    async def main():
        task = EnvTask("agentgym_gym:agentgym/TextCraft-v0", {"server": sys.argv[1]}, {"task_id": 0})
        episodes = await asyncio.gather(*(task.episode().begin() for _ in range(3)))
        assert not any(episode.fault for episode in episodes), episodes[0].fault
        await episodes[0].end()  # and waits in the pool
        print("plays", flush=True)
        await asyncio.sleep(1_000)

    asyncio.run(main())
"""


@contextlib.contextmanager
def killed(program: str, folder: Path, *arguments: str, **options: Any) -> Iterator[subprocess.Popen[str]]:
    """Start a program, wait for its first line, and kill it at the end of the block."""
    running = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), *arguments],
        env=programs.environment(TMPDIR=str(folder)),
        stdout=subprocess.PIPE,
        text=True,
        **options,
    )
    try:
        assert running.stdout.readline() == "plays\n"
        yield running
    finally:
        running.kill()
        running.communicate()


def recorded(folder: Path) -> list[str]:
    """The ids in the records below a folder for temporary files, which may go meanwhile."""
    names = (name for at, _, names in os.walk(folder) for name in names if "held" in Path(at).parts)
    return sorted(filter(str.isdecimal, names))


@pytest.mark.slow
def test_only_the_leases_of_a_killed_process_are_closed(counted, tmp_path):
    server = counted()
    server.open.add(99)  # somebody else's
    with killed(PLAYS, tmp_path, server.url):
        assert server.open == {99, 0, 1, 2}
        assert recorded(tmp_path) == ["0", "1", "2"]
    wait_until(lambda: server.open == {99} and not recorded(tmp_path))


@pytest.mark.slow
def test_the_children_and_the_process_group_may_be_killed_too(counted, tmp_path):
    """As Ray does, and shells."""
    server = counted()
    with killed(PLAYS, tmp_path, server.url, start_new_session=True) as running:
        of_thread = Path(f"/proc/{running.pid}/task").glob("*/children")
        children = [child for file in of_thread for child in file.read_text().split()]
        assert children == []
        os.killpg(running.pid, signal.SIGKILL)
    wait_until(lambda: server.open == set() and not recorded(tmp_path))


@pytest.mark.slow
def test_after_a_restart_of_the_server_ids_that_may_be_others_are_not_closed(counted, tmp_path):
    server = counted()
    with killed(PLAYS, tmp_path, server.url):
        server.open = {0}
        server._ids = itertools.count(1)
    wait_until(lambda: not recorded(tmp_path))
    assert server.open == {0}
    assert server.asked["/close"] == 1  # of the environment by whose id the restart was noticed


@pytest.mark.slow
def test_an_unreachable_server_is_not_waited_for(counted, tmp_path):
    server = counted()
    with killed(PLAYS, tmp_path, server.url):
        server.stop()
    wait_until(lambda: not recorded(tmp_path))


OWN = """
    import asyncio, json, os, sys, time
    import gymnasium
    from verl_bridge.tasks import EnvTask

    class Own(gymnasium.Env):
        metadata = {"release_entry_point": "own_environment_of_test:release"}
        observation_space = action_space = gymnasium.spaces.Text(9)

        def __init__(self, place=0, key=""):
            self.place = place

        def reset(self, *, seed=None, options=None):
            return "begin", {}

    gymnasium.register("test/Own-v0", Own, kwargs={"place": 1})

    async def main():
        for arguments in ({"key": "one"}, {"key": "one"}, {"place": 2}, {"place": object()}):
            await EnvTask("test/Own-v0", arguments).episode().begin()

    asyncio.run(main())
    child = os.fork()
    if not child:
        os.close(1)
        time.sleep(1_000)
    print(f"plays\\n{os.getpid()} {child}", flush=True)
    time.sleep(1_000)
"""

RELEASES = """
import json, pathlib, os

def release(pid, **arguments):
    with (pathlib.Path(__file__).parent / "released.jsonl").open("a") as log:
        log.write(json.dumps([pid, arguments]) + "\\n")
    if arguments.get("key"):
        raise ValueError("the first one fails")
"""


@pytest.mark.slow
def test_any_environment_may_name_what_releases_it(tmp_path, monkeypatch):
    """Once for each set of arguments, also where one fails, and though a forked child lives on."""
    (tmp_path / "own_environment_of_test.py").write_text(RELEASES)
    monkeypatch.syspath_prepend(tmp_path)
    with killed(OWN, tmp_path) as running:
        pid, child = map(int, running.stdout.readline().split())
    released = tmp_path / "released.jsonl"
    try:
        wait_until(lambda: released.exists() and len(released.read_text().splitlines()) == 2)
        os.kill(child, 0)  # it still runs
    finally:
        os.kill(child, signal.SIGKILL)
    assert pid == running.pid
    assert [json.loads(line) for line in released.read_text().splitlines()] == [
        [pid, {"place": 1, "key": "one"}],
        [pid, {"place": 2}],
    ]
