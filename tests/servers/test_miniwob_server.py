"""The MiniWoB server with a real Chromium: its pages, its rewards, and that no episode sees another."""

from __future__ import annotations

import asyncio
import importlib.util
import re
import shutil
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import httpx
import pytest

import needs
import programs
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv
from agentgym_gym.envs.miniwob import MINIWOB, TASK_NAMES, VARIATIONS, task_of
from agentgym_gym.evaluate import evaluate_async, load_oracle
from agentgym_gym.local_servers import LocalServer
from process_tree import alive, descendants

pytestmark = pytest.mark.needs(*needs.needs_of_server("miniwob"))

START_SECONDS = 120  # on a busy machine
SOLVED_ALIKE = ("-easy", "-hard", "-large", "-medium", "-nodelay", "-noscroll", "-popup", "-transfer")
"""How the names of pages end that the oracle solves as it solves those without."""


@pytest.fixture(scope="module")
def client():
    server = LocalServer("miniwob", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=120) as client:
        yield client
    server.stop()


class Env:
    """One environment over HTTP."""

    def __init__(self, client):
        self.client = client
        self.its = client.post("/create", json={}).json()

    def reset(self, name, seed=0):
        task = TASK_NAMES.index(name) * VARIATIONS + seed
        self.began = self.client.post("/reset", json={**self.its, "data_idx": task}).json()
        self.page = self.began["observation"]
        return self.page

    def number(self, element):
        return re.search(rf"\[(\d+)\] {re.escape(element)}", self.page)[1]

    def step(self, action):
        self.reply = self.client.post("/step", json={**self.its, "action": action}).json()
        self.page = self.reply.get("observation", "")
        return self.reply

    def close(self):
        return self.client.post("/close", json=self.its).json()


@pytest.fixture
def env(client):
    env = Env(client)
    yield env
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        ("missing.endEpisode(1.0, true)", "a script of its page failed: missing is not defined"),
        ("core.endEpisode(undefined, true)", "its page ended with the reward None"),
        ("core.endEpisode(0 / 0, true)", "its page ended with the reward nan"),
    ],
)
def test_a_page_that_cannot_compute_its_reward_is_a_fault(tmp_path, monkeypatch, broken, reason):
    """A copy of the package, in which the page scores a click by other code."""
    package = Path(importlib.util.find_spec("miniwob").submodule_search_locations[0])
    html, copied = package / "html", tmp_path / "miniwob" / "html"
    for folder in ("core", "common"):
        shutil.copytree(html / folder, copied / folder)
    page = (html / "miniwob" / "click-test.html").read_text()
    assert "core.endEpisode(1.0, true)" in page
    (copied / "miniwob").mkdir()
    (copied / "miniwob" / "click-test.html").write_text(page.replace("core.endEpisode(1.0, true)", broken))
    (tmp_path / "miniwob" / "__init__.py").touch()
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    server = LocalServer("miniwob", start_seconds=START_SECONDS)
    task = TASK_NAMES.index("click-test") * VARIATIONS
    try:
        with AgentGymEnv("MiniWoB", server=server.start()) as env:
            page, _ = env.reset(options={"task_id": task})
            button = re.search(r"\[(\d+)\] button", page)[1]
            _, reward, terminated, truncated, info = env.step(f"Action: click [{button}]")
    finally:
        server.stop()
    assert (reward, terminated, truncated, info["fault"]["kind"]) == (0.0, False, True, "JudgeFailed")
    assert f"task {task} cannot be judged: {reason}" in info["fault"]["message"]


@pytest.mark.slow
def test_an_episode(env):
    page = env.reset("enter-text", 0)
    assert env.began["task"] == "enter-text"
    assert (env.began["reward"], env.began["done"]) == (0, False)
    goal, text = env.began["goal"], re.search(r'"(.+)"', env.began["goal"])[1]
    head, *lines = page.partition("\n\n")[2].split("\n")
    assert page.startswith(f"OBJECTIVE: {goal}\n\n[1] RootWebArea 'Enter Text Task'")
    assert "miniwob.test" in head
    assert [line.split(" ")[1] for line in lines] == ["textbox", "button"]
    assert env.page == env.client.get("/observation", params=env.its).json()
    assert env.step("click [99]")["observation"].startswith(f"OBJECTIVE: {goal}\nTHE ACTION FAILED: '99'\n")
    for action in ("goto [http://example.com]", "new_tab", "nothing", ""):
        assert "THE ACTION FAILED: " in env.step(action)["observation"]
    field, button = env.number("textbox"), env.number("button 'Submit'")
    assert f"value: {text!r}" in env.step(f"type [{field}] [{text}] [0]")["observation"]
    assert (env.reply["reward"], env.reply["done"]) == (0.0, False)
    assert (env.step(f"click [{button}]")["reward"], env.reply["done"]) == (1.0, True)
    assert (env.step(f"click [{button}]")["reward"], env.reply["done"]) == (0.0, True)  # not paid again
    detail = env.client.get("/detail", params=env.its).json()
    assert (detail["task"], detail["reward"], detail["done"]) == ("enter-text", 1.0, True)


@pytest.mark.slow
def test_a_wrong_end_costs_and_a_reset_shows_the_same_page(env):
    first = env.reset("click-test-2", 3)
    number = env.number("button 'TWO'")
    assert env.step(f"click [{number}]")["reward"] == -1.0
    assert env.reset("click-test-2", 3) == first


@pytest.mark.slow
def test_errors(client, env):
    def error(path, **body):
        return client.post(path, json={**env.its, **body}).json()["error"]

    assert error("/step", action="click [1]") == "The environment has no task yet: reset it."
    assert error("/reset", data_idx=10**6) == "There is no such task."
    assert error("/step", id=10**6, action="") == "The id 1000000 is not valid."
    other = Env(client)
    assert (other.close(), other.close()) == (True, False)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [13, 43])
def test_an_element_whose_middle_is_covered_is_clicked_elsewhere(env, seed):
    env.reset("click-test-2", seed)
    number = env.number("button 'ONE'")
    assert env.step(f"click [{number}]")["reward"] == 1.0


@pytest.mark.slow
@pytest.mark.parametrize("page", ["enter-date", "click-collapsible", "click-menu"])
def test_each_element_that_a_page_shows_can_be_pointed_at(env, page):
    env.reset(page, 0)
    numbers = re.findall(r"^\s*\[(\d+)\]", env.page.partition("\n\n")[2], re.MULTILINE)
    for number in numbers:
        assert "error" not in env.step(f"hover [{number}]"), env.reply
    assert len(numbers) >= 3


@pytest.mark.slow
def test_two_at_once_see_nothing_of_each_other(client, env):
    other = Env(client)
    env.reset("enter-text", 0)
    fresh = other.reset("enter-text", 0)
    env.step(f"type [{env.number('textbox')}] [hello] [0]")
    assert "'hello'" in env.page
    other.step("scroll [down]")
    assert other.page == fresh
    # Of the clipboard, too.
    env.reset("copy-paste", 0)
    (area,) = re.findall(r"\[(\d+)\] textbox .*value: ", env.page)
    env.step(f"click [{area}]")
    env.step("press [Control+a]")
    env.step("press [Control+c]")
    other.step(f"click [{other.number('textbox')}]")
    other.step("press [Control+v]")
    assert "value:" not in other.page
    other.close()


@pytest.mark.slow
def test_a_page_is_the_same_in_another_process(client):
    server = LocalServer("miniwob", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=120) as second:
        one, two = Env(client), Env(second)
        for index, name in enumerate(TASK_NAMES[::20]):
            page = one.reset(name, index % 7)
            assert page.startswith("OBJECTIVE: ")
            assert len(one.began["goal"]) > 10
            assert page.count("\n") >= 3, name
            assert two.reset(name, index % 7) == page
        one.close()
        two.close()
    server.stop()


LATE_PICTURES = """if True:
    import asyncio
    import httpx
    from playwright.async_api import Route
    from agentgym_gym.envs.miniwob import TASK_NAMES, VARIATIONS
    from agentgym_gym.local_servers import server_kind

    fulfill = Route.fulfill

    async def later(route, **reply):
        await asyncio.sleep(route.request.resource_type == "image")
        await fulfill(route, **reply)

    async def main():
        transport = httpx.ASGITransport(server_kind("miniwob").app())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost", timeout=120) as client:
            its = (await client.post("/create", json={})).json()
            task = TASK_NAMES.index("email-inbox-important") * VARIATIONS
            print((await client.post("/reset", json={**its, "data_idx": task})).json()["observation"])
            await client.post("/close", json=its)

    Route.fulfill = later
    asyncio.run(main())
"""


@pytest.mark.slow
def test_a_page_is_shown_with_its_pictures(env):
    """Images that a style shows are requested when the episode begins; on a busy machine they come late."""
    command = [sys.executable, "-c", LATE_PICTURES]
    done = programs.run(
        command, stdout=subprocess.PIPE, text=True, timeout=300, check=True, env=programs.environment()
    )
    assert "'star'" in done.stdout
    assert done.stdout.strip() == env.reset("email-inbox-important", 0).strip()


REACHES = """if True:
    import asyncio, sys
    from agentgym_servers._browser.chromium import Chromium
    from agentgym_servers.miniwob._pages import MiniWobBrowser

    async def main():
        chromium = Chromium()
        tabs = await MiniWobBrowser(chromium).open("click-test")
        for url in (sys.argv[1], "http://example.com/", "http://miniwob.test/../__init__.py", "file:///etc/hosts"):
            reached = "url => fetch(url, {mode: 'no-cors'}).then(() => 'reached', () => 'refused')"
            print(await tabs.shown.evaluate(reached, url))
        own = "fetch('http://miniwob.test/core/core.js').then(answer => answer.status)"
        print(await tabs.shown.evaluate(own))
        await chromium.close()

    asyncio.run(main())
"""


@pytest.mark.slow
def test_a_page_reaches_no_host(client):
    command = [sys.executable, "-c", REACHES, str(client.base_url)]
    done = programs.run(
        command, stdout=subprocess.PIPE, text=True, timeout=300, check=True, env=programs.environment()
    )
    assert done.stdout.split() == ["refused"] * 4 + ["200"]


def test_there_are_enough_pages():
    assert len(TASK_NAMES) >= 60
    assert len(set(TASK_NAMES)) == len(TASK_NAMES)
    assert list(TASK_NAMES) == sorted(TASK_NAMES)
    assert task_of(0) == (TASK_NAMES[0], 0)
    assert task_of(MINIWOB.task_ids[-1]) == (TASK_NAMES[-1], VARIATIONS - 1)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.exhaustive) if name.endswith(SOLVED_ALIKE) else name
        for name in TASK_NAMES
    ],
)
def test_the_oracle_wins_each_page(env, name):
    """In one seed of each; `make validate` plays ten."""
    oracle = load_oracle(MINIWOB)
    first = TASK_NAMES.index(name) * VARIATIONS
    task = next(task for task in range(first, first + VARIATIONS) if task not in MINIWOB.unwinnable)
    env.reset(name, task - first)
    info = {"task_id": task}
    oracle.reset(None, env.page, info)
    for _ in range(MINIWOB.max_turns):
        env.step(str(oracle.act(env.page, info)))
        assert oracle.thought().startswith("The objective is: ")
        if env.reply["done"]:
            break
    assert (env.reply["reward"], env.reply["done"]) == (1.0, True), task


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", ["click-dialog", "enter-text"])
def test_no_test_task_is_won_like_a_training_task(client, name):
    """Its texts or its winning actions are others; the tasks of which neither are in no split but `all`."""
    first = TASK_NAMES.index(name) * VARIATIONS
    tasks = range(first, first + VARIATIONS)
    env = partial(AsyncAgentGymEnv, "MiniWoB", server=str(client.base_url))
    records = asyncio.run(evaluate_async(env, partial(load_oracle, MINIWOB), tasks, concurrency=8))
    played = {record.task_id: str(record.messages) for record in records if record.success}
    assert len(played) == VARIATIONS
    train, test = (set(MINIWOB.splits[split]) & played.keys() for split in ("train", "test"))
    trained = {played[task] for task in train}
    assert {task for task in played.keys() - train if played[task] not in trained} == test


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_a_killed_server_leaves_no_browser():
    server = LocalServer("miniwob", start_seconds=START_SECONDS)
    with httpx.Client(base_url=server.start(), timeout=120) as client:
        Env(client).reset("click-test", 0)
        below = descendants(server.process.pid)
    assert len(below) > 3
    server.process.kill()
    server.stop()
    deadline = time.monotonic() + 60
    while alive(below):
        assert time.monotonic() < deadline, alive(below)
        time.sleep(0.2)
