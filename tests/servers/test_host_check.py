"""Which `Host` a local server accepts, over real sockets."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Callable, Iterator

import httpx
import pytest

import programs

pytestmark = pytest.mark.slow

LOOPBACK = (
    *("127.0.0.1", "127.0.0.1:8000", "127.1.2.3:1", "localhost", "LocalHost:99", "localhost."),
    *("[::1]:7", "[::1]"),
)
OTHERS = (
    *("evil.example", "evil.example:80", "10.0.0.7:8000", "localhost.evil.example"),
    "127.0.0.1.evil.example",
)
EVERY_ADDRESS = "0.0.0.0"  # noqa: S104 - a server on it is what some of these tests are about
ODD = ("", "localhost:http", "me@localhost", "::1", "[localhost", "localhost localhost", EVERY_ADDRESS)


@pytest.fixture(scope="module")
def start() -> Iterator[Callable[..., str]]:
    """Starts a TextCraft server with options; returns the URL by which this machine reaches it."""
    started = []

    def run(*options: str) -> str:
        command = [sys.executable, "-m", "agentgym_servers", "textcraft", "--exit-with-parent", *options]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=programs.environment()
        )
        started.append(process)
        return f"http://127.0.0.1:{process.stdout.readline().strip().rpartition(':')[2]}"

    yield run
    for process in started:
        process.kill()
        process.communicate()


def status(url: str, host: str) -> int:
    return httpx.get(url, headers={"Host": host}).status_code


def test_on_loopback_only_loopback_names_are_accepted(start):
    url = start()
    assert [status(url, host) for host in LOOPBACK] == [200] * len(LOOPBACK)
    assert [status(url, host) for host in (*OTHERS, *ODD)] == [421] * len((*OTHERS, *ODD))
    refused = httpx.post(f"{url}/create", headers={"Host": "evil.example"}, json={})
    assert refused.headers["connection"] == "close"
    assert refused.json()["detail"] == (
        "The Host 'evil.example' is not a name of this server. Use a loopback address, or start the server "
        "with --allow-host NAME."
    )
    assert httpx.post(f"{url}/create", json={}).json()["id"] == 0  # the refused request made none


@pytest.mark.parametrize("hosts", [b"", b"Host: localhost\r\nHost: localhost\r\n"], ids=["none", "two"])
def test_one_host_is_required(start, hosts):
    port = int(start().rpartition(":")[2])
    with socket.create_connection(("127.0.0.1", port), timeout=30) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\n" + hosts + b"\r\n")
        assert connection.recv(4096).split()[1] == b"421"


def test_the_names_of_allow_host_are_accepted_too(start):
    url = start("--allow-host", "games.example.org", "--allow-host", "10.0.0.7")
    hosts = ("games.example.org", "GAMES.example.org:443", "10.0.0.7:8000", *LOOPBACK)
    assert [status(url, host) for host in hosts] == [200] * len(hosts)
    assert [status(url, host) for host in ("evil.example", "10.0.0.8", "example.org")] == [421] * 3


def test_on_another_address_any_name_is_accepted_unless_names_are_given(start):
    url = start("--host", EVERY_ADDRESS)
    assert [status(url, host) for host in (*LOOPBACK, *OTHERS)] == [200] * len((*LOOPBACK, *OTHERS))
    url = start("--host", EVERY_ADDRESS, "--allow-host", "trainer")
    assert [status(url, host) for host in ("trainer:8000", *LOOPBACK)] == [200] * (1 + len(LOOPBACK))
    assert [status(url, host) for host in OTHERS] == [421] * len(OTHERS)
