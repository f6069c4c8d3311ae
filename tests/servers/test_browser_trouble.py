"""A browser in trouble: pages that never load, a frozen process, addresses out of bounds, files that stay."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import psutil
import pytest

import needs
import programs
from agentgym_gym.errors import BadOption
from agentgym_gym.local_servers import server_kind
from fake_server import FakeServer, as_page
from process_tree import descendants

pytestmark = [
    pytest.mark.slow,
    pytest.mark.needs(*needs.needs_of_server("webarena")),
    pytest.mark.skipif(sys.platform != "linux", reason="reads /proc"),
]

PAGE = """<title>Shop</title><a href="javascript:void(0)">nothing</a><a href="/file">file</a>
<button onclick="fetch('/never')">poll</button><button onclick="for (;;);">loop</button>
<button onclick="add()">frame</button>
<script>const add = () => document.body.append(
    Object.assign(document.createElement("iframe"), {src: "/never"}));</script>"""


def page_of_shop(request):
    """Its page /never never comes, and its page /file is a download."""
    if request.path == "/never":
        return lambda connection: connection.wait(300)
    return as_page(PAGE, "200 OK", *["Content-Disposition: attachment"] * (request.path == "/file"))


@pytest.fixture(scope="module")
def shop():
    with FakeServer(page_of_shop) as server:
        yield server.url


def write(folder, sites):
    task = {
        "task_id": 0,
        "sites": ["shopping"],
        "intent": "Look around",
        "start_url": "__SHOPPING__/",
        "eval": {"eval_types": ["string_match"], "reference_answers": {"exact_match": "7"}},
    }
    (folder / "test.raw.json").write_text(json.dumps([task]))
    (folder / "sites.json").write_text(json.dumps(sites))


@contextlib.contextmanager
def running(folder):
    """Start a server; yields its process and a client."""
    command = [sys.executable, "-m", "agentgym_servers", "webarena", "--data", str(folder), "--port", "0"]
    process = programs.start(command, stdout=subprocess.PIPE, text=True, env=programs.environment())
    try:
        url = process.stdout.readline().split()[-1]
        with httpx.Client(base_url=url, timeout=120) as client:
            yield process, client
    finally:
        process.kill()
        process.communicate()


@pytest.fixture
def client(tmp_path, shop):
    write(tmp_path, {"__SHOPPING__": shop})
    with running(tmp_path) as (_, client):
        yield client


class Env:
    """An environment over HTTP, in the task of the folder."""

    def __init__(self, client):
        self._client = client
        self._its = client.post("/create").json()
        self.reset()

    def reset(self):
        sent = {**self._its, "seed": 0, "idx": 0}
        self.page = self._client.post("/reset", json=sent).json()["observation"]

    def step(self, action):
        reply = self._client.post("/step", json={**self._its, "action": f"```{action}```"}).json()
        self.page = reply["observation"]
        return reply

    def click(self, element):
        number = re.search(rf"\[(\d+)\] {re.escape(element)}", self.page)[1]
        return self.step(f"click [{number}]")


@contextlib.contextmanager
def seconds():
    """Yields a list that gets the duration of the block."""
    began, taken = time.monotonic(), []
    yield taken
    taken.append(time.monotonic() - began)


@pytest.mark.parametrize("element", ["link 'nothing'", "link 'file'", "button 'poll'", "button 'frame'"])
def test_a_page_that_never_loads_costs_no_more_than_any_other(client, element):
    """As in WebArena, which waits 1.5 s after each action."""
    env = Env(client)
    for _ in range(2):
        with seconds() as taken:
            reply = env.click(element)
        assert (reply["reward"], "'Shop'" in env.page) == (1, True)
        assert taken[0] < 6


def test_pages_that_hang_hold_nobody_else(tmp_path, shop):
    """Their scripts never end, so that they are never read."""
    write(tmp_path, {"__SHOPPING__": shop})
    with running(tmp_path) as (process, client):
        hung = [Env(client) for _ in range(8)]
        other = Env(client)
        with seconds() as free:
            other.step("scroll [down]")
        clicks = [threading.Thread(target=click_until_closed, args=(each, "button 'loop'")) for each in hung]
        for each in clicks:
            each.start()
        time.sleep(4)
        with seconds() as taken:
            assert other.step("scroll [down]")["reward"] == 1
        assert taken[0] < free[0] + 2
        assert all(each.is_alive() for each in clicks)
        process.kill()
        for each in clicks:
            each.join()


def click_until_closed(env, element):
    with contextlib.suppress(httpx.HTTPError):
        env.click(element)


@pytest.mark.parametrize("part", ["--agentgym-browser", "playwright/driver"])
def test_a_frozen_browser_is_replaced(tmp_path, shop, part):
    write(tmp_path, {"__SHOPPING__": shop})
    with running(tmp_path) as (process, client):
        env, other = Env(client), Env(client)
        for pid in descendants(process.pid):
            if part in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGSTOP)
        with seconds() as taken:
            env.reset()
        assert "'Shop'" in env.page
        assert taken[0] < 20  # twelve seconds and the start of a browser
        assert other.step("scroll [down]")["info"] is None  # its page is gone
        other.reset()
        assert "'Shop'" in other.page


def test_the_browser_reaches_the_sites_only(tmp_path, shop):
    with FakeServer(page_of_shop) as stranger, FakeServer(page_of_shop) as friend:
        outside, allowed = stranger.url, friend.url
        write(tmp_path, {"__SHOPPING__": shop, "allow": [allowed]})
        with running(tmp_path) as (_, client):
            env = Env(client)
            port = shop.rpartition(":")[2]
            reached = [shop, allowed, f"http://localhost:{port}"]
            beyond = [
                *(outside, outside.replace("127.0.0.1", "localhost"), str(client.base_url)),
                *("http://169.254.169.254/", "http://example.org/", outside.replace("127.0.0.1", "[::1]")),
            ]
            for url in (*reached, *beyond):
                env.reset()
                reply = env.step(f"goto [{url}]")
                assert (reply["reward"], "'Shop'" in env.page) == (float(url in reached), url in reached), url
                assert ("Failed to load" in reply["info"]["fail_error"]) is (url not in reached)


@pytest.mark.parametrize(
    ("sites", "problem"),
    [
        ({"__SHOPPING__": "http://"}, "is not an address"),
        ({"__SHOPPING__": "http://localhost:port"}, "is not an address"),
        ({"__SHOPPING__": "http://localhost", "allow": "http://localhost:1"}, "allow should be a list"),
    ],
)
def test_an_address_that_is_none_is_an_error(tmp_path, sites, problem):
    write(tmp_path, sites)
    with pytest.raises(BadOption, match=problem):
        server_kind("webarena").app(data=tmp_path)


def test_the_files_of_a_killed_browser_are_deleted_at_the_next_start(tmp_path, shop):
    write(tmp_path, {"__SHOPPING__": shop})
    temporary = Path(tempfile.gettempdir())
    with running(tmp_path) as (process, client):
        Env(client)
        (folder,) = temporary.glob(f"agentgym-browser-{process.pid}-*")
        assert any(folder.iterdir())
        for pid in (process.pid, *descendants(process.pid)):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait()
        assert folder.exists()
    with running(tmp_path) as (_, client):
        Env(client)
        assert not folder.exists()


def test_the_limit_of_environments_depends_on_the_memory_and_the_browser(monkeypatch, tmp_path):
    from webarena_parts import most_envs

    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=20_000_000_000))
    limits = {}
    for name in ("chromium", "chromium-headless-shell"):
        browser = tmp_path / name
        browser.touch(mode=0o755)
        monkeypatch.setenv("AGENTGYM_CHROMIUM", str(browser))
        limits[name] = most_envs()
    assert 8 <= limits["chromium"] < limits["chromium-headless-shell"] <= 4096
    server = server_kind("webarena")
    assert server.app().state.server.envs._max_envs == limits["chromium-headless-shell"]
    assert server.app(max_envs=3).state.server.envs._max_envs == 3
