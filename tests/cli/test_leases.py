"""`agentgym leases`: what dead clients left on real servers, shown and cleared."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import textwrap

import httpx
import pytest

import inside
import programs
from agentgym_gym import AgentGymEnv
from agentgym_gym.local_servers import LocalServer

# This distinguishes SQLGym from others with the same greeting.
OPENAPI = {
    "paths": {
        "/step": {},
        "/reset": {
            "post": {
                "requestBody": {
                    "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Reset"}}}
                }
            }
        },
    },
    "components": {"schemas": {"Reset": {"properties": {"env_idx": {}, "item_id": {}}}}},
}

CLIENT = """
    import os, pathlib, signal, sys, time
    from agentgym_gym import AgentGymEnv
    import inside, pytest
    inside.keep_files_in(pathlib.Path(sys.argv[2]), pytest.MonkeyPatch())
    envs = [AgentGymEnv("TextCraft", server=sys.argv[1]) for _ in range(3)]
    for env in envs:
        env.reset(seed=0)
    ids = [env._episode.lease.env_id for env in envs]
    envs.pop(1).close()
    print(*ids, flush=True)
    {then}
"""


def exists(url: str, env_id: int) -> bool:
    return "error" not in httpx.get(f"{url}/observation", params={"id": env_id}).json()


@contextlib.contextmanager
def client(url, then="os.kill(os.getpid(), signal.SIGKILL)"):
    """A process that holds two environments of the three that it made; yields its number and all ids."""
    code = textwrap.dedent(CLIENT).format(then=then)
    started = subprocess.Popen(
        [sys.executable, "-c", code, url, str(inside.folder_of_files())],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=programs.environment(),
    )
    with started:
        yield started.pid, [int(each) for each in started.stdout.readline().split()]
        started.stdin.close()


def dead_client(url):
    with client(url) as (pid, ids):
        pass
    return pid, ids


def restarted(server):
    server.stop()
    again = LocalServer("textcraft", port=int(server.url.rpartition(":")[2]))
    again.start()
    return again


@pytest.mark.slow  # it waits
def test_only_orphans_of_a_killed_client_are_shown_and_cleared(run, textcraft_url):
    url = textcraft_url
    dead, left = dead_client(url)
    with client(url, then="input()") as (living, held):
        shown = run("leases", url)
        assert shown.exit_code == 0
        assert f"{dead} (ended) TextCraft 2" in " ".join(shown.stdout.split())
        assert f"{dead} (ended)" in run("leases", url.replace("127.0.0.1", "localhost")).stdout
        assert f"{living} (running)" in shown.stdout
        assert f"agentgym leases {url} --clear" in shown.stdout
        found = json.loads(run("leases", url, "--json").stdout)
        assert [(each["pid"], each["alive"]) for each in found["processes"]] == [
            (dead, False),
            (living, True),
        ]
        assert [each["id"] for each in found["processes"][0]["envs"]] == [left[0], left[2]]
        cleared = run("leases", url, "--clear", "--yes")
        assert (cleared.exit_code, cleared.stdout) == (0, "Closed 2 environments.\n")
        assert not any(exists(url, env_id) for env_id in left)
        assert [exists(url, env_id) for env_id in held] == [True, False, True]
        assert run("leases", url, "--clear").stdout.startswith("No ended process on this machine left leases")
        assert str(dead) not in run("leases", url).stdout
    assert "No process on this machine has leases there" in run("leases", url).stdout  # it ended well


@pytest.mark.slow
def test_nothing_is_closed_before_it_was_agreed_to(run, textcraft_url):
    url = textcraft_url
    _, left = dead_client(url)
    for answer in ("n\n", ""):
        refused = run("leases", url, "--clear", input=answer)
        assert refused.exit_code == 1
        assert "2 environments" in refused.stderr
        assert "may belong to other machines" in refused.stderr
    assert exists(url, left[0])
    assert exists(url, left[2])
    assert run("leases", url, "--clear", input="y\n").exit_code == 0
    assert not exists(url, left[0])


@pytest.mark.slow
def test_after_a_restart_of_the_server_nothing_is_closed_that_is_another_s(run, server):
    _, left = dead_client(server.url)
    again = restarted(server)
    try:
        with AgentGymEnvs(again.url, 2) as held:
            assert held[0] in left
            cleared = run("leases", again.url, "--clear", "--yes")
            assert cleared.exit_code == 0
            assert cleared.stdout.startswith("2 environments lost in a restart of the server.\n")
            assert all(exists(again.url, env_id) for env_id in held)
    finally:
        again.stop()


@pytest.mark.slow
def test_after_a_restart_leased_ids_are_not_closed_even_if_ids_have_grown(run, server):
    """Environments of an ended process may belong to a running one now."""
    _, left = dead_client(server.url)
    again = restarted(server)
    try:
        with AgentGymEnvs(again.url, 5) as held:
            assert set(left) <= set(held)
            assert run("leases", again.url, "--clear", "--yes").stdout == "Closed 0 environments.\n"
            assert all(exists(again.url, env_id) for env_id in held)
    finally:
        again.stop()


@contextlib.contextmanager
def AgentGymEnvs(url, number):  # noqa: N802 - it is one
    """Environments of this process; yields their ids."""
    envs = [AgentGymEnv("TextCraft", server=url) for _ in range(number)]
    for env in envs:
        env.reset(seed=0)
    yield [env._episode.lease.env_id for env in envs]
    for env in envs:
        env.close()


@pytest.mark.slow
def test_another_environment_s_server_has_nothing_of_it(run, server):
    dead_client(server.url)
    server.stop()
    maze = LocalServer("maze", port=int(server.url.rpartition(":")[2]))
    maze.start()
    try:
        result = run("leases", maze.url, "--clear", "--yes")
        assert result.exit_code == 2
        assert "A restart of the server removes all" in result.stderr
    finally:
        maze.stop()


@pytest.mark.slow
def test_records_of_an_unreachable_server_are_shown_and_kept(run, server):
    dead, _ = dead_client(server.url)
    server.stop()
    shown = run("leases", server.url)
    assert shown.exit_code == 0
    assert "could not connect" in shown.stdout
    assert f"{dead} (ended)" in shown.stdout
    cleared = run("leases", server.url, "--clear", "--yes")
    assert cleared.exit_code == 2
    assert cleared.stderr.startswith("error: cannot release leases: ")
    assert f"{dead} (ended)" in run("leases", server.url).stdout


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_child_that_outlives_its_parent_is_not_taken_for_it(run, textcraft_url):
    """Else what the parent left could not be cleared before the child ends."""
    then = "os.fork() and os.kill(os.getpid(), signal.SIGKILL); sys.stdin.read(); os._exit(0)"
    with client(textcraft_url, then=then) as (pid, _):
        os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        assert f"{pid} (ended)" in run("leases", textcraft_url).stdout


@pytest.mark.slow
def test_places_on_a_server_that_cannot_close_are_shown(run, counted):
    server = counted({"/": "ok", "/list_envs": [501, 502, 503], "/create": 504, "/openapi.json": OPENAPI})
    places = inside.slots.Slots(server.url, 8)
    left, held = places.take(), places.take()
    left.env_id, held.env_id = 501, 502
    held.save()
    left.release()
    shown = run("leases", server.url)
    assert shown.exit_code == 0
    for line in (
        "open    3 environments",
        "Leased by processes on this machine: 1.",
        "Left by ended processes, to be reused on this machine: 1.",
        "Created by clients elsewhere: 1.",
        "This server cannot close environments. Later processes on this machine reuse those of ended ones.",
    ):
        assert line in shown.stdout
    found = json.loads(run("leases", server.url, "--json").stdout)
    assert (found["closes"], found["listed"]) == (False, [501, 502, 503])
    assert found["places"] == [{"env_id": 501, "taken": False}, {"env_id": 502, "taken": True}]
    cleared = run("leases", server.url, "--clear")
    assert cleared.exit_code == 2
    assert cleared.stderr.startswith("error: cannot release leases: This server cannot close environments")
    held.release()


@pytest.mark.slow
@pytest.mark.parametrize("fails", [True, False])
def test_refused_ids_are_dropped_and_unanswered_ones_kept(run, counted, fails):
    server = counted()
    dead, _ = dead_client(server.url)
    if fails:
        server.broken.add("/close")
    else:
        server.vanish_at = "/close"
    cleared = run("leases", server.url, "--clear", "--yes")
    if fails:
        assert cleared.exit_code == 0
        assert "Not closed by the server, or unknown to it: 2 environments." in cleared.stdout
    else:
        assert cleared.exit_code == 1
        assert "The server failed before all were closed" in cleared.stderr
    assert (f"{dead} (ended)" in run("leases", server.url).stdout) != fails
