"""The process that releases what a killed one held: it is there when it is of use, also without a stderr."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import programs
from clock import wait_until

PLAYS = """
    import asyncio, json, sys
    from agentgym_gym.rollout import Pool

    async def main():
        pool = Pool(sys.argv[1], json.loads(sys.argv[2]))
        async with pool.episode(task=0) as episode:
            assert not episode.fault, episode.fault
            print("plays", flush=True)
            await asyncio.sleep(1_000)

    asyncio.run(main())
"""

linux = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="processes are listed in /proc")


def start(tmp_path, env_id, arguments, *, without_stderr=False):
    command = [sys.executable, "-c", textwrap.dedent(PLAYS), env_id, arguments]
    if without_stderr:
        command = ["sh", "-c", 'exec "$@" 2>&-', "sh", *command]
    variables = programs.environment(TMPDIR=str(tmp_path), MARK=str(tmp_path))
    return subprocess.Popen(command, env=variables, stdout=subprocess.PIPE, text=True)


def processes_of(tmp_path):
    """Return the processes that a program has started, and itself."""
    mark, found = f"MARK={tmp_path}".encode(), []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if mark in (process / "environ").read_bytes().split(b"\0"):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@pytest.mark.slow  # a separate program
@linux
@pytest.mark.parametrize(("remote", "number"), [(True, 2), (False, 1)])
def test_a_second_process_is_started_only_for_environments_of_a_server(counted, tmp_path, remote, number):
    env_id = "agentgym_gym:agentgym/TextCraft-v0" if remote else "counting_env:bridge/Count-v0"
    arguments = f'{{"server": "{counted().url}"}}' if remote else "{}"
    with start(tmp_path, env_id, arguments) as running:
        try:
            assert running.stdout.readline() == "plays\n"
            assert len(processes_of(tmp_path)) == number
        finally:
            running.kill()
    wait_until(lambda: not processes_of(tmp_path))


@pytest.mark.slow  # a separate program
@linux
def test_the_leases_of_a_killed_program_without_stderr_are_closed(counted, tmp_path):
    server = counted()
    url = f'{{"server": "{server.url}"}}'
    with start(tmp_path, "agentgym_gym:agentgym/TextCraft-v0", url, without_stderr=True) as running:
        try:
            assert running.stdout.readline() == "plays\n"
        finally:
            running.kill()
    wait_until(lambda: not server.open)
