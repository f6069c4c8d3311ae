"""Servers on the machines of a Ray cluster, with the real ray: see noxfile.py."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from urllib.parse import urlsplit

import pytest

import needs

ray = pytest.importorskip("ray", reason=needs.reason("ray"))

import command_line  # noqa: E402 - not before it is known that ray is there
import programs  # noqa: E402
from agentgym_gym.env import AgentGymEnv  # noqa: E402
from clock import wait_until  # noqa: E402

# Ray leaves sockets open, which the collection of garbage then finds in some later test.
pytestmark = pytest.mark.filterwarnings("ignore:unclosed <socket:ResourceWarning")


@pytest.fixture(autouse=True)
def rays_sockets():
    yield
    gc.collect()


@pytest.fixture(scope="module")
def cluster():
    from ray.cluster_utils import Cluster

    with (
        tempfile.TemporaryDirectory(prefix="ray", ignore_cleanup_errors=True) as folder,
        pytest.MonkeyPatch.context() as patch,
    ):
        # Else it would be the cluster of all programs that look for one, such as other tests' programs.
        patch.setenv("RAY_TMPDIR", folder)
        patch.setenv("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
        patch.setenv("PYTHONPATH", programs.environment()["PYTHONPATH"])  # by which its processes import ours
        patch.setenv("RAY_worker_niceness", "0")  # else the servers would wait for all other tests
        two = Cluster(initialize_head=True, head_node_args={"num_cpus": 1})
        two.add_node(num_cpus=1)
        two.wait_for_nodes()
        processes = [process for node in two.list_all_nodes() for process in processes_of(node)]
        yield two
        two.shutdown()
        for process in processes:
            process.wait(60)
        gc.collect()


def processes_of(node):
    """The processes of a node of ray's own test cluster, which ends them and does not wait for them."""
    return [info.process for several in node.all_processes.values() for info in several]


def first_observation(url):
    with AgentGymEnv("TextCraft", server=url) as env:
        return env.reset(options={"task_id": 0})[0]


def listens(url):
    with socket.socket() as client:
        return client.connect_ex((urlsplit(url).hostname, urlsplit(url).port)) == 0


@contextlib.contextmanager
def serving(address, *options, number=signal.SIGTERM):
    """Serve TextCraft by the command; yields its addresses, and the lines that it prints after them."""
    command = [sys.executable, "-m", "agentgym_gym", "serve", "textcraft", "--ray", address, *options]
    variables = programs.environment() | {
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_worker_niceness": "0",
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as program:
        lines, urls = iter(program.stdout), []
        for line in lines:
            if not line.startswith("serving textcraft on "):
                break
            urls.append(line.split()[-1])
        assert line == f"all addresses: {','.join(urls)}\n"
        try:
            yield urls, lines
        finally:
            os.kill(program.pid, number)
            assert program.wait(timeout=100) == 0
    wait_until(lambda: not any(map(listens, urls)), 60)  # Ray ends the servers, and does not wait for them


def listener(url):
    """Return the process that listens at an address."""
    port = f":{urlsplit(url).port:04X}"
    table = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    sockets = {f"socket:[{row[9]}]" for row in table if row[1].endswith(port) and row[3] == "0A"}
    for file in Path("/proc").glob("[0-9]*/fd/*"):
        with contextlib.suppress(OSError):  # it has ended, or is another's
            if str(file.readlink()) in sockets:
                return int(file.parts[2])
    return None


def test_each_machine_serves_the_same_tasks(cluster):
    with serving(cluster.address, "--per-machine", "2", "--max-envs", "7") as (urls, _):
        assert len(set(urls)) == 4
        assert len({first_observation(url) for url in urls}) == 1


def test_a_server_that_ends_is_started_again_on_its_port(cluster):
    with serving(cluster.address) as ((first, second), lines):
        os.kill(listener(first), signal.SIGKILL)
        assert next(lines) == f"started {first} again\n"
        assert first_observation(first) == first_observation(second)


def test_a_lost_machine_is_logged_once(cluster):
    machine = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    with serving(cluster.address) as (urls, lines):
        assert len(urls) == 3
        processes = processes_of(machine)
        cluster.remove_node(machine)
        for process in processes:
            process.wait(60)
        word, lost = next(lines).split()[:2]
        assert (word, lost.rstrip(":") in urls) == ("lost", True)
        left = [url for url in urls if url != lost.rstrip(":")]
        os.kill(listener(left[0]), signal.SIGKILL)
        assert next(lines) == f"started {left[0]} again\n"  # nothing more of the other
        assert all(map(listens, left))


@pytest.mark.parametrize(
    ("words", "reason"), [(["chess"], "'chess'"), (["textcraft", "--seed", "1"], "takes no seed")]
)
def test_a_server_that_cannot_start_is_reported(cluster, words, reason):
    ended = command_line.run("serve", *words, "--ray", cluster.address)
    assert ended.exit_code == 2
    assert reason in ended.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_the_command_serves_until_a_signal(number):
    with serving("local", number=number) as ((url,), _):
        assert first_observation(url).startswith("Crafting commands:")
