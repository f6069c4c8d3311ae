"""A user's own tasks of WebArena's schema, on sites with addresses of their own."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import httpx
import pytest

import needs
import programs
from agentgym_gym import AgentGymEnv
from agentgym_gym.errors import BadOption, EnvironmentFailed, JudgeFailed
from agentgym_gym.local_servers import server_kind
from fake_server import FakeServer, as_page, never
from plain_sites import fresh_state, plain_sites, signed_in_cookie
from process_tree import descendants

pytestmark = pytest.mark.needs(*needs.needs_of_server("webarena"))

TASK = {
    "sites": ["shopping"],
    "task_id": 0,
    "require_login": True,
    "storage_state": None,
    "start_url": "__SHOPPING__",
    "geolocation": None,
    "intent_template": "Open the page of {{what}}",
    "instantiation_dict": {"what": "my account"},
    "intent": "Open the page of my account",
    "require_reset": False,
    "eval": {
        "eval_types": ["string_match"],
        "reference_answers": {"must_include": ["7"]},
        "reference_url": "",
        "program_html": [],
    },
    "intent_template_id": 12,
}


def task(number, **changes):
    made = deepcopy(TASK) | {"task_id": number}
    made["eval"] |= changes.pop("check", {})
    return made | changes


def page(url, locator, **required):
    return {"url": url, "locator": locator, "required_contents": required}


def content(target):
    return {"eval_types": ["program_html"], "program_html": [target]}


def write(folder, tasks, addresses):
    (folder / "test.raw.json").write_text(json.dumps(tasks))
    (folder / "sites.json").write_text(json.dumps(addresses))


def load(folder):
    return server_kind("webarena").app(data=folder)


@pytest.mark.slow
def test_a_users_tasks_are_played_and_scored_on_the_users_sites(tmp_path):
    state = fresh_state(0, 3)
    product, post = state.shop.products[5], state.forum.posts[0]
    store_cookies(tmp_path / ".auth" / "shopping_state.json", state.shop.me)
    signed_in = {"storage_state": "./.auth/shopping_state.json"}
    account = {"eval_types": ["url_match"], "reference_url": "__SHOPPING__/account"}
    in_cart = page(
        "__SHOPPING__/cart",
        "document.querySelector('#cart').outerText",
        must_include=[f"x |OR| {product.name}"],
    )
    commented = page("func:reddit_get_post_url('__last_url__')", "", must_include=["Post comment"])
    tasks = [
        task(0),
        task(1, check=account, **signed_in),
        task(2, check=content(in_cart)),
        task(3, start_url="__REDDIT__ |AND| __SHOPPING__", check=content(commented)),
        task(4, check={"reference_answers": {"fuzzy_match": ["The red mug"]}}),
    ]
    shop, forum = "http://onestopmarket.com", "http://reddit.com"
    with plain_sites(state, "shopping", "reddit") as addresses:
        write(tmp_path, tasks, addresses)
        with served(tmp_path) as url, httpx.Client(base_url=url, timeout=120) as client:
            play = Player(client)
            assert client.get("/").headers["agentgym-server"].endswith("(WebArena, data)")
            assert [play(0, f"stop [{text}]")["reward"] for text in ("There are 7.", "70")] == [1, 0]
            reply = play(1, f"goto [{shop}/account]", "stop []")
            assert (reply["reward"], f"URL: {shop}/account" in reply["observation"]) == (1, True)
            assert play(2, "stop []")["reward"] == 0
            button = number(play(2, f"goto [{shop}/product/{product.number}]"), "'Add to cart'")
            reply = play(2, f"goto [{shop}/product/{product.number}]", f"click [{button}]", "stop []")
            assert reply["reward"] == 1
            reply = play(3, f"goto [{forum}{post.path}]", "stop []")
            assert (reply["reward"], " | Tab 1: " in reply["observation"]) == (1, True)
            assert [play(4, f"stop [{text}]")["reward"] for text in ("the mug is red", "a mug")] == [1, 0]


SLOW_PAGE_ASKED = threading.Event()


def page_of_broken_shop(request):
    """Its page /error is an error of the server, its page /slow never comes, and it has no interface."""
    if request.path == "/slow":
        SLOW_PAGE_ASKED.set()
        return never
    status = "503 Service Unavailable" if request.path == "/error" else "200 OK"
    return as_page("<title>Shop</title>Tea 7", "501 Not Implemented" if request.method == "POST" else status)


@pytest.fixture(scope="module")
def broken_shop():
    with FakeServer(page_of_broken_shop) as server:
        yield server.url


GONE = "document.querySelector('#none').outerText"
UNJUDGED = {
    "a site that fails": (content(page("__SHOPPING__/error", "", must_include=["Tea"])), "answered HTTP 503"),
    "a site that is down": (content(page("__WIKIPEDIA__/", "", must_include=["Tea"])), "Failed to load"),
    "an invalid selector": (
        content(page("last", "document.querySelector('div[').outerText", must_include=["Tea"])),
        "SyntaxError",
    ),
    "an invalid script": (content(page("last", "document.title +", must_include=["Tea"])), "SyntaxError"),
    "a shop without its interface": (
        content(page("last", "func:shopping_get_sku_latest_review_author('B1')", must_include=["Tea"])),
        "answered HTTP 501",
    ),
}
JUDGED = {
    "a page without the element": (content(page("last", GONE, must_include=["Tea"])), 0.0),
    "an address of the agent that is none": (
        content(page("func:reddit_get_post_url('__last_url__')", "", must_include=["Tea"])),
        0.0,
    ),
    "a wrong answer before a broken page": (
        {**UNJUDGED["a site that fails"][0], "eval_types": ["string_match", "program_html"]},
        0.0,
    ),
    "a page with the content": (content(page("__SHOPPING__/", "", must_include=["Tea"])), 1.0),
}


@pytest.mark.slow
def test_a_check_that_cannot_be_evaluated_is_a_fault(tmp_path, broken_shop, unreachable_url):
    cases = [*UNJUDGED.values(), *JUDGED.values()]
    tasks = [task(number, require_login=False, check=check) for number, (check, _) in enumerate(cases)]
    tasks.append(task(len(cases), check={"reference_answers": None}))
    write(tmp_path, tasks, {"__SHOPPING__": broken_shop, "__WIKIPEDIA__": unreachable_url})
    with served(tmp_path) as url, AgentGymEnv("WebArena", server=url) as env:

        def play(number):
            with AgentGymEnv("WebArena", server=url) as env:
                env.reset(options={"task_id": number})
                env.step("Action: ```new_tab```") if "__last_url__" in str(cases[number][0]) else None
                return env.step("Action: ```stop [9]```")

        with ThreadPoolExecutor() as threads:  # each waits most of its time
            played = list(threads.map(play, range(len(cases))))
        for number, (_, expected) in enumerate(cases):
            _, reward, terminated, truncated, info = played[number]
            if isinstance(expected, float):
                assert (reward, terminated, info.get("fault")) == (expected, True, None)
            else:
                assert (reward, truncated, info["fault"]["kind"]) == (0.0, True, "JudgeFailed")
                assert f"task {number} cannot be judged: its check program_html" in info["fault"]["message"]
                assert expected in info["fault"]["message"]
        with pytest.raises(JudgeFailed, match="its check string_match"):
            env.reset(options={"task_id": len(cases)})


@pytest.mark.slow
def test_a_browser_that_ends_during_the_evaluation_is_not_a_fault_of_the_task(tmp_path, broken_shop):
    slow = content(page("__SHOPPING__/slow", "", must_include=["Tea"]))
    write(tmp_path, [task(0, require_login=False, check=slow)], {"__SHOPPING__": broken_shop})
    with server_of(tmp_path) as (pid, url), AgentGymEnv("WebArena", server=url) as env:
        env.reset(options={"task_id": 0})
        browsers = [each for each in descendants(pid) if b"--disable-gpu" in command_of(each)]

        def kill():
            SLOW_PAGE_ASKED.wait(120)
            for each in browsers:
                os.kill(each, signal.SIGKILL)

        killer = threading.Thread(target=kill)
        killer.start()
        *_, truncated, info = env.step("Action: ```stop [9]```")
        killer.join()
        assert (truncated, info["fault"]["kind"]) == (True, "EnvironmentFailed")
        env.reset(options={"task_id": 0})


def command_of(pid):
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    return b""


def page_of_late_shop(request):
    """Its page /MILLISECONDS gets its content by a script, so many after it has loaded."""
    script = f"setTimeout(() => document.body.innerHTML = '<p>Tea 7</p>', {request.path[1:]})"
    return as_page(f"<!doctype html><title>Shop</title><body><script>{script}</script>")


TEA = "document.querySelector('p').outerText"
LATE = [  # the milliseconds of the page of the check, the agent's actions, the score
    ("__SHOPPING__/1000", ["stop []"], 1),
    ("__SHOPPING__/2500", ["stop []"], 1),
    ("__SHOPPING__/10000", ["stop []"], 0),
    ("last", ["goto [__SHOPPING__/2500]", "stop []"], 1),
]


@pytest.mark.slow
def test_content_that_comes_late_is_seen_and_scored_as_by_webarena(tmp_path):
    with FakeServer(page_of_late_shop) as server:
        shop = server.url
        checks = [content(page(address, TEA, exact_match="Tea 7")) for address, _, _ in LATE]
        tasks = [task(n, start_url="__SHOPPING__/1000", check=check) for n, check in enumerate(checks)]
        write(tmp_path, tasks, {"__SHOPPING__": shop})
        with served(tmp_path) as url, httpx.Client(base_url=url, timeout=120) as client:
            assert "Tea 7" in Player(client)(0)["observation"]

            def play(number):
                actions = (action.replace("__SHOPPING__", shop) for action in LATE[number][1])
                return Player(client)(number, *actions)["reward"]

            with ThreadPoolExecutor() as threads:
                assert list(threads.map(play, range(len(LATE)))) == [score for _, _, score in LATE]


COUNTS = """<!doctype html><title>Counts</title><h1 id="counts"></h1><script>
const visit = store => store.visits = Number(store.visits ?? 0) + 1;
const cookies = {visits: document.cookie.split("visits=")[1]};
document.cookie = `visits=${visit(cookies)}`;
counts.textContent = `${visit(localStorage)} ${visit(sessionStorage)} ${cookies.visits} visits`;
</script>"""


@pytest.mark.slow
def test_data_of_a_site_in_the_browser_is_separate_and_gone_after_a_reset(tmp_path):
    def visits(reply):
        return re.search(r"\d+ \d+ \d+(?= visits)", reply["observation"])[0]

    with FakeServer(lambda _: as_page(COUNTS)) as site:
        address = f"{site.url}/"
        write(tmp_path, [task(0, require_login=False)], {"__SHOPPING__": address})
        with served(tmp_path) as url, httpx.Client(base_url=url, timeout=120) as client:
            one, other = Player(client), Player(client)
            again = f"goto [{address}]"
            assert visits(one(0, again, again)) == "3 3 3"
            assert visits(other(0, again)) == "2 2 2"
            assert visits(one(0, again)) == "2 2 2"


def store_cookies(path, user):
    cookie = {"name": "session", "value": signed_in_cookie(user), "domain": "127.0.0.1", "path": "/"}
    cookie |= {"expires": -1, "httpOnly": False, "secure": False, "sameSite": "Lax"}
    path.parent.mkdir()
    path.write_text(json.dumps({"cookies": [cookie], "origins": []}))


class Player:
    """One environment, in which tasks are played."""

    def __init__(self, client):
        self.client = client
        self.env = client.post("/create").json()

    def __call__(self, number, *actions):
        reply = self.client.post("/reset", json={**self.env, "seed": 0, "idx": number}).json()
        assert reply["observation"] != "TimeoutError"
        for action in actions:
            reply = self.client.post("/step", json={**self.env, "action": f"```{action}```"}).json()
        return reply


@contextlib.contextmanager
def served(folder):
    with server_of(folder) as (_, url):
        yield url


@contextlib.contextmanager
def server_of(folder):
    """Start a server; yields its process id and its URL."""
    command = [sys.executable, "-m", "agentgym_servers", "webarena", "--data", str(folder), "--port", "0"]
    process = programs.start(command, stdout=subprocess.PIPE, text=True, env=programs.environment())
    try:
        yield process.pid, process.stdout.readline().split()[-1]
    finally:
        process.kill()
        process.communicate()


def number(reply, name):
    nodes = reply["info"]["observation_metadata"]["text"]["obs_nodes_info"]
    return next(number for number, node in nodes.items() if "button" in node["text"] and name in node["text"])


def nested(depth):
    value = "x"
    for _ in range(depth):
        value = [value]
    return value


ADDRESSES = {"__SHOPPING__": "http://localhost:7770/"}


@pytest.mark.slow
def test_a_file_for_each_task_is_read_too(tmp_path, broken_shop):
    (tmp_path / "config_files").mkdir()
    for number in (3, 8):
        content = json.dumps(task(number, require_login=False))
        (tmp_path / "config_files" / f"{number}.json").write_text(content)
    (tmp_path / "sites.json").write_text(json.dumps({"__SHOPPING__": broken_shop}))
    with served(tmp_path) as url, AgentGymEnv("WebArena", server=url) as env:
        for number in (3, 8):
            observation, _ = env.reset(options={"task_id": number})
            assert broken_shop in observation
        with pytest.raises(EnvironmentFailed):
            env.reset(options={"task_id": 4})


@pytest.mark.parametrize(
    ("tasks", "addresses", "message"),
    [
        ([], ADDRESSES, "has no tasks"),
        ([task(0)], {}, "task 0 needs the address of __SHOPPING__"),
        ([task(0), task(0)], ADDRESSES, "task 0 occurs twice"),
        ([{"task_id": 0}], ADDRESSES, "lacks sites, intent, start_url, eval"),
        ([task(0, check={"eval_types": ["taste"]})], ADDRESSES, "eval_types is"),
        ([task(0, check={"program_html": [page("func:exec('1')", "")]})], ADDRESSES, "calls func:exec"),
        ([task(0, storage_state=".auth/none.json")], ADDRESSES, "needs the cookies of"),
        ([3], ADDRESSES, "should have a task"),
        ([task(0, check={"note": nested(500)})], ADDRESSES, "nested too deeply"),
        ([task(0, intent=nested(500))], ADDRESSES, "nested too deeply"),
        ([task(0)], {"__SHOPPING__": nested(500)}, "nested too deeply"),
        ([task(0, check={"eval_types": [["string_match"]]})], ADDRESSES, "eval_types is"),
        ([task(0)], [], "should map placeholders"),
    ],
)
def test_a_folder_that_is_wrong_is_refused_with_the_reason(tmp_path, tasks, addresses, message):
    write(tmp_path, tasks, addresses)
    with pytest.raises(BadOption, match=message):
        load(tmp_path)


def test_a_file_that_is_nested_too_deeply_is_refused(tmp_path):
    write(tmp_path, [task(0)], ADDRESSES)
    (tmp_path / "more.json").write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(BadOption, match=r"more\.json"):
        load(tmp_path)


def test_a_folder_that_is_not_there_is_refused(tmp_path):
    with pytest.raises(BadOption, match="should be a folder with task files"):
        load(tmp_path / "none")
