"""Fixtures shared by all tests."""

from __future__ import annotations

import contextlib
import gc
import gzip
import hashlib
import importlib.util
import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

if sys.dont_write_bytecode:  # PYTHONDONTWRITEBYTECODE, which keeps compiled files away from their sources
    # The hundreds of processes that tests start would each compile all modules that they import.
    sys.dont_write_bytecode = False
    sys.pycache_prefix = str(Path(__file__).parents[1] / ".pytest_cache" / "bytecode")
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    os.environ["PYTHONPYCACHEPREFIX"] = sys.pycache_prefix

import agentgym_gym
import inside
import needs
from agentgym_gym.local_servers import LocalServer
from counted_server import CountedServer
from fake_server import FakeServer, never
from ports import reserved_ports

if importlib.util.find_spec("hypothesis"):  # not in each environment with a verl
    from hypothesis import HealthCheck, settings

    # A machine may be busy.
    settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
    settings.load_profile("patient")

for _environment in agentgym_gym.environments():  # no test plays on servers that the developer has configured
    os.environ.pop(_environment.variable, None)

Server = TypeVar("Server", bound=FakeServer)


def pytest_xdist_auto_num_workers() -> int:
    """Two processes more than there are processors: many tests wait for a socket or for another process."""
    return (os.cpu_count() or 1) + 2


@pytest.fixture
def server() -> Iterator[LocalServer]:
    """A TextCraft server of one test's own, which may be killed and started again on its port."""
    with reserved_ports(1) as (port,):
        server = LocalServer("textcraft", port=port)
        server.start()
        yield server
        server.stop()


@pytest.fixture(scope="session")
def textcraft_url() -> Iterator[str]:
    """Base URL of the TextCraft server that all tests share.

    A local one, stopped when the session ends, unless AGENTGYM_TEST_TEXTCRAFT_URL names another to be
    tested against, such as AgentGym's own.
    """
    other = os.environ.get("AGENTGYM_TEST_TEXTCRAFT_URL")
    if other:
        yield other
        return
    server = LocalServer("textcraft")
    yield server.start()
    server.stop()


@pytest.fixture
def silent_url() -> Iterator[str]:
    """Base URL of a server that takes connections and never answers."""
    with FakeServer(lambda request: never) as server:
        yield server.url


@pytest.fixture(scope="session")
def unreachable_url() -> Iterator[str]:
    """Base URL that refuses connections: its port is bound, so that no other program can listen on it."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"


@pytest.fixture
def started() -> Iterator[Callable[[Server], Server]]:
    """Takes fake servers, which are there already, and stops them when the test is over."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context


@pytest.fixture
def counted(started: Callable[[CountedServer], CountedServer]) -> Callable[..., CountedServer]:
    """Starts servers that count what they hold."""
    return lambda answers=None: started(CountedServer(answers))


@pytest.fixture
def garbage_collected() -> Iterator[None]:
    """Collects the garbage of a test when it is over, so that no other test is warned of it."""
    yield
    for _ in range(2):  # what finalizers hold is garbage when they have run
        gc.collect()


@pytest.fixture
def report_at_end(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Takes a line that is printed when all tests have run, also where they ran in several processes."""
    return lambda line: record_property("report_at_end", line)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    needs.mark_by_fixtures(items)
    # First what takes longest: of the last files, each process takes some tests, and would build the site.
    items.sort(key=lambda item: "watchers" not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    with needs.programs_for(*needs.names_in(item, "needs", "may_use")):
        return (yield)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    needs.skip_without(*needs.names_in(item, "needs"))


def pytest_collection_finish() -> None:
    """Spare later collections of garbage the modules and the tests, which stay."""
    gc.collect()
    gc.freeze()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    lines = [
        line
        for report in terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
        for name, line in report.user_properties
        if name == "report_at_end" and report.when == "call"
    ]
    if lines:
        terminalreporter.section("measured")
        for line in sorted(lines):
            terminalreporter.write_line(line)
    skipped = terminalreporter.getreports("skipped")
    if skipped:
        terminalreporter.section("skipped")
        for line in needs.table_of_skips(skipped):
            terminalreporter.write_line(line)


@pytest.fixture(autouse=True)
def _files_of_their_own(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[None]:
    """Separate the files about servers, as servers of different tests may have one address."""
    folder = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:16]  # not `tmp_path`, which is made
    inside.keep_files_in(tmp_path_factory.getbasetemp() / "leasing" / folder, monkeypatch)
    yield
    inside.forget_held()


@pytest.fixture(scope="session")
def recordings() -> Callable[[str], list[dict[str, Any]]]:
    """Exchanges recorded from AgentGym's own servers, by file name.

    They are not part of this repository: they are looked for in the folder that AGENTGYM_WIRE names, else in
    ``shared/wire`` next to the checkout, and a test that requests them is skipped without them.
    """

    def read(name: str) -> list[dict[str, Any]]:
        file = needs.RECORDINGS / name
        if not file.is_file():
            pytest.skip(needs.reason("recordings"))
        with gzip.open(file, "rt") if file.suffix == ".gz" else file.open() as lines:
            return [json.loads(line) for line in lines]

    return read
