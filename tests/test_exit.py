"""However a program ends, nothing that could be closed stays open: programs in processes of their own."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time

import pytest

import programs
from clock import wait_until

pytestmark = pytest.mark.slow  # programs of their own

BEGIN = """
    import asyncio, signal, sys
    import gymnasium
    from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv

    options = {"server": sys.argv[1]}
    kept = []
"""

SYNC = """
    kept.append(AgentGymEnv("TextCraft", **options))
    kept[-1].reset(seed=0)
    kept[-1].step("Action: inventory")
"""

VECTOR = """
    kept.append(gymnasium.make_vec("agentgym/TextCraft-v0", num_envs=2, **options))
    kept[-1].reset(seed=0)
    kept[-1].step(["Action: inventory"] * 2)
"""

AWAITED = """
    async def play():
        kept.append(AsyncAgentGymEnv("TextCraft", **options))
        await kept[-1].reset(seed=0)
        await kept[-1].step("Action: inventory")

    asyncio.run(play())
"""


def program(*parts):
    code = "".join(textwrap.dedent(part) for part in (BEGIN, *parts))
    return [sys.executable, "-W", "error", "-c", code]


@pytest.mark.parametrize(
    ("end", "status"),
    [
        ("print('over')", 0),
        ("sys.exit(3)", 3),
        ("raise RuntimeError('on purpose')", 1),
        ("signal.raise_signal(signal.SIGINT)", -signal.SIGINT),
        ("signal.signal(signal.SIGTERM, lambda *_: sys.exit(143)); signal.raise_signal(signal.SIGTERM)", 143),
    ],
)
def test_leased_environments_are_closed(counted, end, status):
    server = counted()
    ended = programs.run(
        [*program(SYNC, VECTOR, AWAITED, end), server.url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ended.returncode == status, ended.stderr
    assert server.most == 4
    assert server.open == set()
    assert status in {1, -signal.SIGINT} or ended.stderr == ""


@pytest.mark.parametrize(
    ("kind", "path"), [(SYNC, "/step"), (AWAITED, "/step"), (VECTOR, "/step"), (VECTOR, "/reset")]
)
def test_ctrl_c_in_the_middle_of_something(counted, kind, path):
    server, number = counted(), 2 if kind is VECTOR else 1
    server.held_up.add(path)
    with programs.start(
        [*program(kind), server.url], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as started:
        while server.asked.get(path, 0) < number:
            assert started.poll() is None
            time.sleep(0.01)
        started.send_signal(signal.SIGINT)
        _, said = started.communicate(timeout=60)
    assert started.returncode == -signal.SIGINT
    assert said.rstrip().endswith("KeyboardInterrupt")
    assert "never" not in said  # retrieved, awaited
    assert server.asked["/create"] == number
    assert server.open == set()


def test_while_it_waits_for_a_place_a_program_can_be_interrupted(counted):
    server = counted()
    second = SYNC.replace("**options", "**options, max_envs_per_server=1")
    with programs.start(
        [*program(second, "print('waits', flush=True)", second), server.url],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as started:
        assert started.stdout.readline() == "waits\n"
        started.send_signal(signal.SIGINT)
        started.communicate(timeout=60)
    assert started.returncode == -signal.SIGINT
    assert (server.most, server.open) == (1, set())


CLOSE_FAILS = """
    import atexit, socket, sys
    from urllib.parse import urlsplit

    asked = []

    def runs(url):
        try:
            socket.create_connection(("127.0.0.1", urlsplit(url).port)).close()
        except ConnectionRefusedError:
            return False
        return True

    # Registered before the library is imported, and so called after what that does at exit.
    atexit.register(lambda: print(asked, runs(url)))

    import httpx
    from agentgym_gym import AgentGymEnv

    class Failing(httpx.HTTPTransport):
        def handle_request(self, request):
            if request.url.path == "/close":
                asked.append(request.url.path)
                raise KeyboardInterrupt if "interrupt" in sys.argv else httpx.ReadTimeout("no answer")
            return super().handle_request(request)

    kept = []
    for _ in range(4):
        env = AgentGymEnv(
            "TextCraft",
            server=None if "local" in sys.argv else sys.argv[1],
            http_client=lambda: httpx.Client(transport=Failing()),
        )
        env.reset(seed=0)
        kept.append(env)
    (url,) = env.servers
"""


def run(*command):
    return programs.run(command, capture_output=True, text=True, timeout=120)


def test_a_server_that_does_not_answer_gets_one_request(counted):
    ended = run(sys.executable, "-c", textwrap.dedent(CLOSE_FAILS), counted().url)
    assert (ended.stdout, ended.stderr) == ("['/close'] True\n", "")


def test_the_local_server_is_stopped_although_a_close_is_interrupted():
    ended = run(sys.executable, "-c", textwrap.dedent(CLOSE_FAILS), "local", "interrupt")
    assert ended.stdout == "['/close', '/close'] False\n"  # it is tried again after the first interrupt
    assert "KeyboardInterrupt" in ended.stderr


def test_the_number_that_there_was_no_time_for_is_logged(counted):
    server = counted()
    server.held_up.add("/close")
    ended = run(*program("import logging\nlogging.basicConfig()\n", SYNC, SYNC), server.url)
    assert ended.returncode == 0
    assert "2 remote environments stay open" in ended.stderr


@pytest.mark.parametrize("interrupts", [1, 2])
def test_ctrl_c_at_exit_closes_what_it_can_and_names_the_rest(counted, interrupts):
    server = counted()
    server.held_up.add("/close")
    running = programs.start(
        [*program("import logging\nlogging.basicConfig()\n", AWAITED, AWAITED), server.url],
        env=programs.environment(),
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        for number in range(interrupts):
            wait_until(lambda number=number: server.asked["/close"] > 2 * number, 30)
            running.send_signal(signal.SIGINT)
        if interrupts == 1:
            wait_until(lambda: server.asked["/close"] > 2, 30)
            server.let_go.set()
        error = running.communicate(timeout=60)[1]
    finally:
        running.kill()
        running.communicate()
    if interrupts == 1:
        assert server.open == set()
        assert "stay open" not in error
    else:
        assert (
            f"2 remote environments stay open, not closed at exit: 0 on {server.url}, 1 on {server.url}"
            in error
        )
