"""Servers in separate processes: how they start, where they listen, and that none is left."""

from __future__ import annotations

import importlib.util
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

import programs
from agentgym_gym import local_servers as local
from agentgym_gym.errors import BadOption, MissingExtra, NoServer, SetupError, UnknownEnvironment
from agentgym_gym.local_servers import (
    LocalServer,
    available,
    local_server_url,
    server_kind,
    servers,
    stop_all,
)
from agentgym_servers import serve
from agentgym_servers.__main__ import main
from ports import reserved_ports

posix = pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals and fork")

ENVIRONMENT = programs.environment()


def answers(url: str) -> bool:
    try:
        return httpx.get(url).status_code == 200
    except httpx.TransportError:
        return False


def within(seconds: float, condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def server() -> Iterator[LocalServer]:
    server = LocalServer("TextCraft")
    yield server
    server.stop()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, LocalServer]]:
    """A registry of servers of this test's own, so that it may kill them."""
    servers: dict[str, LocalServer] = {}
    monkeypatch.setattr(local, "_servers", servers)
    yield servers
    stop_all()


@pytest.fixture
def run() -> Iterator[Callable[..., subprocess.Popen]]:
    """Start Python; processes that still run at the end are killed."""
    started: list[subprocess.Popen] = []

    def start(*arguments: str, **options) -> subprocess.Popen:
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": ENVIRONMENT}
        process = programs.start([sys.executable, *arguments], **pipes, **options)
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()


# --- one server ---


@pytest.mark.slow
def test_a_server_starts_serves_and_stops(server, monkeypatch, tmp_path):
    # In any folder, even one with a file that could be taken for one of its modules.
    if sys.version_info >= (3, 11):
        (tmp_path / "fastapi.py").write_text("raise SystemExit('the wrong module')")
    monkeypatch.chdir(tmp_path)
    url = server.start()
    assert url == server.url
    assert httpx.get(url).json() == "This is environment TextCraft."
    assert server.start() == url
    server.stop()
    assert not server.is_alive()
    assert not answers(url)
    server.stop()


def test_before_its_start_it_has_no_address(server):
    assert not server.is_alive()
    with pytest.raises(NoServer, match="not been started"):
        server.url  # noqa: B018


@pytest.mark.slow
def test_it_can_be_killed_and_come_back_on_its_port():
    with reserved_ports(1) as (port,):
        server = LocalServer("textcraft", port=port)
        with httpx.Client(base_url=server.start()) as client:
            client.get("/")  # a connection that is open when the server dies keeps the port busy for a while
            server.process.kill()
            server.process.wait()
            assert not server.is_alive()
            assert server.start() == f"http://127.0.0.1:{port}"
        assert answers(server.url)
        server.stop()


def test_a_port_in_use_is_named():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(BadOption, match=f"port {port} of 127.0.0.1: it is in use"):
            serve("textcraft", port=port)


@pytest.mark.slow
def test_a_server_whose_port_is_in_use_is_an_error():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with pytest.raises(NoServer, match=f"status 2.*port {port} of 127.0.0.1"):
            LocalServer("textcraft", port=port).start()


@pytest.mark.parametrize(
    ("host", "port", "message"),
    [
        ("127.0.0.1", 65536, "port=65536 should be 0 to 65535"),
        ("127.0.0.1", -1, "port=-1 should be 0 to 65535"),
        ("192.0.2.1", 0, "port 0 of 192.0.2.1"),  # an address kept for documentation
        ("no such host", 0, "port 0 of no such host"),
    ],
)
def test_where_no_server_can_listen(host, port, message):
    with pytest.raises(BadOption, match=message):
        serve("textcraft", host=host, port=port)


@posix
@pytest.mark.parametrize(
    ("script", "start_seconds", "message"),
    [
        ("echo boom >&2; exit 3", 60, "status 3.*: boom"),
        pytest.param("echo slow >&2; exec sleep 60", 3, "within 3 s.*: slow", marks=pytest.mark.slow),
    ],
)
def test_a_server_that_does_not_start_is_an_error_with_the_reason(
    monkeypatch, tmp_path, script, start_seconds, message
):
    program = tmp_path / "python"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    server = LocalServer("textcraft", start_seconds=start_seconds)
    with pytest.raises(NoServer, match=message):
        server.start()
    assert not server.is_alive()


@pytest.mark.parametrize("executable", ["", "/no/such/python"])
def test_without_a_python_none_can_be_started(monkeypatch, executable):
    monkeypatch.setattr(sys, "executable", executable)
    with pytest.raises(NoServer, match="cannot be started"):
        LocalServer("textcraft").start()


# --- the command ---


@pytest.mark.slow
@posix
def test_a_signal_ends_it_cleanly_after_one_line(run):
    numbers = (signal.SIGINT, signal.SIGTERM)
    for number, process in [(number, run("-m", "agentgym_servers", "textcraft")) for number in numbers]:
        line = process.stdout.readline()
        assert line.startswith("serving TextCraft on http://127.0.0.1:")
        with httpx.Client(base_url=line.split()[-1]) as client:
            client.get("/")  # an idle connection does not hold it back
            process.send_signal(number)
            assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 0


@pytest.mark.slow
def test_without_a_parent_to_wait_for_it_stops_at_once(run):
    process = run("-m", "agentgym_servers", "textcraft", "--exit-with-parent", stdin=subprocess.DEVNULL)
    out, err = process.communicate(timeout=60)  # it would never end
    assert (out.count("\n") <= 1, err, process.returncode) == (True, "", 0)


def test_an_error_is_one_line(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["servers", "textcraft", "--port", "70000"])
    assert main() == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "error: port=70000 should be 0 to 65535; 0 takes any free port\n"


@pytest.mark.slow
def test_ipv6_addresses_are_written_as_in_urls():
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    server = LocalServer("textcraft", arguments=("--host", "::1"))
    assert re.fullmatch(r"http://\[::1\]:\d+", server.start())
    assert answers(server.url)
    server.stop()


# --- what can be started ---


def test_an_unknown_server_is_refused_with_the_list():
    with pytest.raises(UnknownEnvironment, match=r"'chess'.*textcraft"):
        serve("chess")
    with pytest.raises(UnknownEnvironment, match="chess"):
        LocalServer("chess").start()
    assert "chess" in available("chess")


@pytest.mark.parametrize(
    ("name", "module", "extra"),
    [
        ("textcraft", "uvicorn", "servers"),
        ("textcraft", "textcraft", "servers"),
        ("sciworld", "scienceworld", "servers-sciworld"),
        ("miniwob", "miniwob", "servers-miniwob"),
    ],
)
def test_a_missing_extra_is_named(monkeypatch, name, module, extra):
    monkeypatch.setattr(importlib.util, "find_spec", lambda each: None if each == module else object())
    assert f"'{module}'" in available(name)
    for start in (LocalServer(name).start, lambda: serve(name), server_kind(name).app):
        with pytest.raises(MissingExtra, match=rf"\[{extra}\]"):
            start()


@pytest.mark.needs("playwright")
def test_a_missing_program_is_named(monkeypatch):
    monkeypatch.setenv("AGENTGYM_CHROMIUM", "/nowhere/chromium")
    assert "apt-get install chromium" in available("WebArena")
    with pytest.raises(SetupError, match="AGENTGYM_CHROMIUM"):
        LocalServer("WebArena").start()


@pytest.mark.slow
def test_a_server_of_all_lists_missing_environments():
    variables = {**ENVIRONMENT, "AGENTGYM_CHROMIUM": "/nowhere/chromium"}
    command = [sys.executable, "-m", "agentgym_servers", "all", "--exit-with-parent"]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = programs.start(command, env=variables, **pipes)
    url = process.stdout.readline().split()[-1]
    names = httpx.get(url).json()["servers"]
    _, console = process.communicate(timeout=60)
    assert "webarena" not in names
    assert "textcraft" in names
    (line,) = [line for line in console.splitlines() if "webarena" in line]
    assert line.startswith("not served: webarena: ")
    assert "install" in line


@pytest.mark.slow
def test_asking_imports_nothing_heavy(run):
    code = "import sys; from agentgym_gym import local_servers as local; local.available('textcraft')\n"
    code += "print(sorted({'fastapi', 'pydantic', 'starlette', 'textcraft', 'uvicorn'} & set(sys.modules)))"
    assert run("-c", code).communicate(timeout=60) == ("[]\n", "")


# --- one for each process ---


@pytest.mark.slow
def test_all_of_a_process_share_one_server(registry):
    with ThreadPoolExecutor(8) as pool:
        urls = set(pool.map(local_server_url, ["textcraft", "TextCraft"] * 8))
    assert len(urls) == len(registry) == 1
    assert answers(urls.pop())


@pytest.mark.slow
def test_one_that_died_is_replaced_elsewhere(registry):
    url = local_server_url("textcraft")
    registry[servers()["textcraft"]].process.kill()
    registry[servers()["textcraft"]].process.wait()
    again = local_server_url("textcraft")
    assert answers(again)
    assert again != url
    stop_all()
    assert not answers(again)
    assert not registry


START = """
import time
from agentgym_gym.local_servers import local_server_url
print(local_server_url("textcraft"), flush=True)
"""


@pytest.mark.slow
@posix
def test_a_parent_killed_outright_leaves_no_orphan(run):
    # Not even where a forked child lives on, which holds copies of all that its parent opened.
    fork = "import os\nif os.fork() == 0: os.close(1); os.close(2); time.sleep(60); os._exit(0)\n"
    parent = run("-c", f"{START}{fork}print('forked', flush=True)\ntime.sleep(60)")
    url = parent.stdout.readline().strip()
    assert parent.stdout.readline() == "forked\n"
    assert answers(url)
    parent.kill()
    assert within(30, lambda: not answers(url))


@pytest.mark.slow
def test_a_parent_that_ends_stops_its_server(run):
    parent = run("-c", START)
    out, err = parent.communicate(timeout=60)
    assert (err, parent.returncode) == ("", 0)
    assert not answers(out.strip())


FORK = """
import os, sys, warnings
import httpx
from agentgym_gym import local_servers as local
warnings.simplefilter("error")
own = local.LocalServer("textcraft")
own.start()
url = local.local_server_url("textcraft")
child = os.fork()
if child == 0:
    assert not own.is_alive()
    own.stop()
    assert local.local_server_url("textcraft") != url
    sys.exit()
_, status = os.waitpid(child, 0)
assert own.is_alive()
assert httpx.get(own.url).status_code == httpx.get(url).status_code == 200
own.stop()
print("status", status)
"""


@pytest.mark.slow
@posix
def test_a_forked_child_starts_its_own_and_leaves_its_parents(run):
    assert run("-c", FORK).communicate(timeout=120) == ("status 0\n", "")
