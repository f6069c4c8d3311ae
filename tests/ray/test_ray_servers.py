"""Servers on the machines of a Ray cluster, with the real ray: see noxfile.py."""

from __future__ import annotations

import gc
import os
import signal
import socket
import subprocess
import sys
import tempfile
from urllib.parse import urlsplit

import pytest

import needs

ray = pytest.importorskip("ray", reason=needs.reason("ray"))

import programs  # noqa: E402
from agentgym_gym._cli.ray_servers import RayServers  # noqa: E402 - not before it is known that ray is there
from agentgym_gym.env import AgentGymEnv  # noqa: E402
from agentgym_gym.errors import NoServer, UnknownEnvironment  # noqa: E402
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
        # Else it would be the cluster of all programs that look for one, such as those of other tests.
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


def test_each_machine_serves_the_same_tasks(cluster):
    with RayServers(cluster.address, "textcraft", per_machine=2, arguments=["--max-envs", "7"]) as servers:
        urls = servers.urls
        assert len(set(urls)) == 4
        assert len({first_observation(url) for url in urls}) == 1
        assert servers.check() == []
    wait_until(lambda: not any(map(listens, urls)), 60)  # Ray ends the servers, and does not wait for them


def test_a_server_that_ends_is_started_again_on_its_port(cluster):
    with RayServers(cluster.address, "textcraft") as servers:
        first, second = servers.urls
        killed = servers._hosts[first].__ray_call__
        ray.get(killed.remote(lambda host: (host._server.process.kill(), host._server.process.wait())))
        assert not listens(first)
        assert servers.check() == [f"started {first} again"]
        assert servers.check() == []
        assert first_observation(first) == first_observation(second)


def test_a_machine_that_is_gone_is_said_once(cluster):
    machine = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    with RayServers(cluster.address, "textcraft") as servers:
        assert len(servers.urls) == 3
        processes = processes_of(machine)
        cluster.remove_node(machine)
        for process in processes:
            process.wait(60)
        (change,) = servers.check()
        assert change.startswith("lost http://")
        assert len(servers.urls) == 2
        assert servers.check() == []
        assert all(map(listens, servers.urls))


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [("chess", [], UnknownEnvironment), ("textcraft", ["--seed", "1"], NoServer)],
)
def test_a_server_that_cannot_start_is_told(cluster, name, arguments, error):
    with pytest.raises(error):
        RayServers(cluster.address, name, arguments=arguments)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_serves_until_a_signal(number):
    command = [sys.executable, "-m", "agentgym_gym", "serve", "textcraft", "--ray", "local"]
    variables = programs.environment() | {
        "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
        "RAY_worker_niceness": "0",
    }
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables) as program:
        lines = iter(program.stdout)
        url = next(line for line in lines if line.startswith("serving textcraft on ")).split()[-1]
        assert next(lines) == f"all addresses: {url}\n"
        assert first_observation(url).startswith("Crafting commands:")
        os.kill(program.pid, number)
        assert program.wait(timeout=100) == 0
    wait_until(lambda: not listens(url), 60)
