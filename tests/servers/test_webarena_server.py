"""The WebArena server with a real Chromium: its pages, its actions, and that no episode sees another."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

import needs
import programs
from agentgym_gym.local_servers import LocalServer
from process_tree import alive, descendants

pytestmark = pytest.mark.needs(*needs.needs_of_server("webarena"))

START_SECONDS = 120  # on a busy machine


@pytest.fixture(scope="module")
def client():
    server = LocalServer("webarena", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=120) as client:
        yield client
    server.stop()


class Env:
    """One environment over HTTP; names of elements in place of their numbers."""

    def __init__(self, client, task):
        self.client = client
        self.its = {"env_idx": client.post("/create").json()["env_idx"]}
        self.reset(task)

    def reset(self, task):
        self.began = self.client.post("/reset", json={**self.its, "seed": 0, "idx": task}).json()
        self.page = self.client.get("/observation", params=self.its).json()
        return self.page

    def number(self, element):
        return re.search(rf"\[(\d+)\] {re.escape(element)}", self.page)[1]

    def step(self, action):
        self.reply = self.client.post("/step", json={**self.its, "action": f"```{action}```"}).json()
        self.page = self.reply["observation"]
        return self.page

    def click(self, element):
        return self.step(f"click [{self.number(element)}]")

    def type(self, element, text, enter=1):
        return self.step(f"type [{self.number(element)}] [{text}] [{enter}]")

    def goto(self, url):
        return self.step(f"goto [{url}]")


@pytest.fixture
def start(client):
    started = []

    def make(task):
        started.append(Env(client, task))
        return started[-1]

    yield make
    for env in started:
        client.post("/close", json=env.its)


@pytest.mark.slow
def test_a_page_is_as_agentgyms_server_shows_it(start):
    env = start(0)
    assert env.page == (
        f"OBSERVATION:\n{env.began['observation']}\nURL: http://gitlab.com/\n"
        f"OBJECTIVE: {env.began['object']}\nPREVIOUS ACTION: None"
    )
    tabs, blank, root, *lines = env.began["observation"].split("\n")
    assert (tabs, blank) == ("Tab 0 (current): My projects - Forgehub", "")
    assert root == "[1] RootWebArea 'My projects - Forgehub' focused: True url: http://gitlab.test/"
    assert all(re.match(r"\t+\[\d+\] \w+ ['\"]", line) for line in lines)
    assert lines[0] == "\t[2] link 'My projects' url: http://gitlab.test/"
    assert any(line.endswith("textbox 'Search projects' required: False") for line in lines)
    first, env = env.page, start(0)
    assert env.page == first  # in another context too
    seen = set()
    for url in (
        "http://onestopmarket.com",
        "http://openstreetmap.org",
        "http://gitlab.com",
        "http://reddit.com",
    ):
        numbers = set(re.findall(r"^\t*\[(\d+)\]", env.goto(url), re.MULTILINE))
        assert numbers.isdisjoint(seen)  # an old number never names an element of another page
        seen |= numbers


@pytest.mark.slow
def test_all_twelve_actions(start):
    env = start(0)
    page = env.goto("http://onestopmarket.com")
    assert "URL: http://onestopmarket.com/\n" in page
    assert page.endswith("PREVIOUS ACTION: goto [http://shopping.test]")
    number = env.number("textbox 'Search products'")
    page = env.type("textbox 'Search products'", "mug", 0)
    assert "textbox 'Search products' required: False\n" not in page  # it has a value now
    assert f"PREVIOUS ACTION: type [{number}] [mug] where [{number}] is textbox 'Search products'" in page
    assert "Results for: mug" in env.step("press [Enter]")
    assert env.reply["reward"] == 1.0
    assert "Corner Market'" in env.step("go_back")
    assert "Results for: mug" in env.step("go_forward")
    assert "PREVIOUS ACTION: hover [" in env.step(f"hover [{env.number('link')}]")
    assert env.step("new_tab").startswith(
        "OBSERVATION:\nTab 0: Search: mug - Corner Market | Tab 1 (current): "
    )
    env.goto("http://luma.com/admin/orders")
    first = env.page
    assert "000000148" in first
    assert "000000101" not in first
    for _ in range(3):
        env.step("scroll [down]")
    assert "000000101" in env.page
    assert env.step("scroll [up]") != first
    assert "Tab 0 (current): Search: mug" in env.step("tab_focus [0]")
    assert env.page.endswith("PREVIOUS ACTION: page_focus [0]")
    assert env.step("close_tab").startswith("OBSERVATION:\nTab 0 (current): Orders")
    assert not env.reply["terminated"]
    assert env.step("stop [nothing]").endswith("PREVIOUS ACTION: stop [nothing]")
    assert (env.reply["reward"], env.reply["terminated"]) == (0.0, True)
    env.step("stop [again]")
    assert (env.reply["reward"], env.reply["terminated"]) == (0.0, True)


FAILING = {
    "click [99999]": "'99999'",
    "goto [file:///etc/passwd]": "Invalid URL",
    "goto [chrome://version]": "Invalid URL",
    "goto [homepage.com]": "Invalid URL",
    "tab_focus [7]": "list index out of range",
    "press [NoSuchKey]": "Unknown key",
}


@pytest.mark.slow
def test_an_action_that_fails_leaves_the_page(start):
    env = start(0)
    before = env.page.partition("\nPREVIOUS")[0]
    for action, failure in FAILING.items():
        assert env.step(action).partition("\nPREVIOUS")[0] == before
        assert env.reply["reward"] == 0.0
        assert failure in env.reply["info"]["fail_error"]


@pytest.mark.slow
def test_no_other_host_is_reached(start, client):
    env = start(0)
    port = client.base_url.port
    for url in (f"http://127.0.0.1:{port}/", f"http://localhost:{port}/", "http://example.com/"):
        assert "There is no such site." in env.goto(url)
    assert "There is no such site." not in env.goto("https://example.com/")
    assert env.reply["reward"] == 0.0


@pytest.mark.slow
def test_changes_of_an_episode_are_separate_and_gone_after_a_reset(start):
    one, two = start(0), start(0)
    fresh = one.page
    for env in (one, two):
        env.goto("http://onestopmarket.com/product/0")
    one.click("button 'Add to cart'")
    one.goto("http://onestopmarket.com/orders")
    one.click("link 'Sign out'")
    assert "Your cart is empty." in two.goto("http://onestopmarket.com/cart")
    assert "My orders" in two.goto("http://onestopmarket.com/orders")
    assert "heading 'Sign in'" in one.goto("http://onestopmarket.com/orders")
    assert "Your cart is empty." not in one.goto("http://onestopmarket.com/cart")
    assert one.reset(0).split("\n")[3:] == fresh.split("\n")[3:]
    assert "Your cart is empty." in one.goto("http://onestopmarket.com/cart")
    assert "heading 'My orders'" in one.goto("http://onestopmarket.com/orders")


@pytest.mark.slow
def test_markup_that_an_agent_writes_stays_text(start):
    env = start(0)
    env.goto("http://reddit.com/submit")
    env.type("textbox 'Title'", "<script>document.title = 1</script> <b>&amp;", 0)
    env.type("textbox 'Body'", "\"'><img src=x onerror=alert(1)>", 0)
    env.type("textbox 'Forum'", "chess", 1)
    assert "heading '<script>document.title = 1</script> <b>&amp;'" in env.page
    assert "<img src=x onerror=alert(1)>" in env.page
    assert "Tab 0 (current): <script>document.title" in env.page


@pytest.mark.slow
def test_failures_have_the_form_of_agentgyms_server(client, start):
    failed = {"observation": "TimeoutError", "sites": "Error", "object": "Error"}
    its = start(0).its
    for body in ({**its, "idx": 0}, {**its, "seed": 0, "idx": 9999}, {"env_idx": 9999, "seed": 0, "idx": 0}):
        assert client.post("/reset", json=body).json() == failed
    for reply, observation in (
        ("no fence", "Cannot parse action from response no fence"),
        ("```fly [1]```", "Invalid action fly [1]"),
    ):
        answer = client.post("/step", json={**its, "action": reply}).json()
        assert (answer["observation"], answer["info"]) == (observation, None)
    for path in ("/reset", "/step", "/close"):
        assert client.post(path, content=b"{").status_code == 400
        assert client.post(path, content=b"[]").status_code == 500
    assert client.get("/observation", params={"env_idx": 9999}).status_code == 500
    assert client.get("/").text == "ok"


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_server_leaves_no_browser():
    server = LocalServer("webarena", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=120) as client:
        Env(client, 0)
        below = descendants(server.process.pid)
    assert len(below) > 3
    server.stop()  # by SIGKILL
    deadline = time.monotonic() + 60
    while alive(below):
        assert time.monotonic() < deadline, alive(below)
        time.sleep(0.2)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("died", ["--headless", "--type=renderer", "playwright/driver"])
def test_a_browser_that_died_is_replaced(died):
    """And is noticed before the time limit of a step, 60 s."""
    server = LocalServer("webarena", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=50) as client:
        env = Env(client, 0)
        for pid in descendants(server.process.pid):
            with contextlib.suppress(OSError):  # it has ended with another one
                if died in (Path("/proc") / str(pid) / "cmdline").read_text():
                    os.kill(pid, signal.SIGKILL)
        env.step("scroll [down]")
        assert env.reply["info"] is None
        assert "OBJECTIVE" in env.reset(0)
        env.step("scroll [down]")
        assert env.reply["reward"] == 1.0
    server.stop()


FORGETS = """if True:
    import asyncio
    import httpx
    from agentgym_gym.local_servers import server_kind

    async def main():
        app = server_kind("webarena").app(keep_seconds=1)
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as client:
            async def play():
                its = (await client.post("/create")).json()
                await client.post("/reset", json={**its, "seed": 0, "idx": 0})
            await play()
            browser = app.state.server.browser
            print(len(browser.chromium._browser.contexts), len(browser.sites._states))
            await asyncio.sleep(1.5)
            await play()
            while len(browser.chromium._browser.contexts) > 1:
                await asyncio.sleep(0.1)
            print(len(browser.chromium._browser.contexts), len(browser.sites._states))
            await browser.chromium.close()

    asyncio.run(main())
"""


@pytest.mark.slow
def test_an_environment_that_is_forgotten_leaves_no_context():
    command = [sys.executable, "-c", FORGETS]
    done = programs.run(
        command, stdout=subprocess.PIPE, text=True, timeout=300, check=True, env=programs.environment()
    )
    assert done.stdout.splitlines() == ["1 1", "1 1"]
