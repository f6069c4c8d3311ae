"""The server of the report: what it serves, to whom, and that its page follows runs as they go."""

from __future__ import annotations

import base64
import gzip
import http.client
import json
import threading
import time

import pytest

from agentgym_gym.errors import BadOption
from agentgym_gym.evaluate._report.server import PageServer
from report_browser import HIDDEN, OPENED, until
from report_runs import HOSTILE, episode, write_run


@pytest.fixture
def served(tmp_path):
    """Starts servers of a folder, and stops them."""
    servers = []

    def start(**options):
        server = PageServer([tmp_path / "runs"], **options)
        thread = threading.Thread(target=server.serve)
        thread.start()
        servers.append((server, thread))
        return server

    yield start
    for server, thread in servers:
        server.stop()
        thread.join()


def get(server, path, **headers):
    """Return the status, the headers and the body of a response."""
    connection = http.client.HTTPConnection(server.url.removeprefix("http://").rstrip("/"))
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    body = response.read().decode()
    connection.close()
    return response.status, response.headers, body


def unpacked(text):
    return json.loads(gzip.decompress(base64.b64decode(text)))


def append(folder, *records):
    with (folder / "episodes.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record.to_json()) + "\n" for record in records)


def test_the_page_and_its_data(served, tmp_path):
    write_run(tmp_path / "runs" / "a", [episode(0), episode(1)])
    write_run(tmp_path / "runs" / "b", [episode(0), episode(1, score=0.0)])
    server = served()
    status, headers, page = get(server, "/")
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert "connect-src 'self'" in page
    assert "watchRuns()" not in page.replace('typeof watchRuns === "function") watchRuns()', "")
    index = unpacked(get(server, "/data/index")[2])
    assert [run["letter"] for run in index["runs"]] == ["A", "B"]
    (block,) = index["runs"][1]["blocks"]
    assert [each["score"] for each in unpacked(get(server, f"/data/{block}")[2])] == [1.0, 0.0]
    (pair,) = unpacked(get(server, "/data/comparisons")[2])
    assert (pair["a"], pair["b"], pair["broken"]) == ("A", "B", [1])
    for path in ("/data/block-0", "/data/../secret", "/episodes.jsonl", "/data/"):
        assert get(server, path)[0] == 404


@pytest.mark.parametrize(
    "host", ["example.com", "example.com:80", "127.0.0.1.example.com", "a@127.0.0.1", ""]
)
def test_another_host_is_refused(served, tmp_path, host):
    """A page of somebody else may have its name point to this machine."""
    write_run(tmp_path / "runs" / "a", [episode(0)])
    server = served()
    status, _, body = get(server, "/data/index", Host=host)
    assert status == 421
    assert "loopback" in body


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST."])
def test_loopback_names_are_accepted(served, tmp_path, host):
    write_run(tmp_path / "runs" / "a", [episode(0)])
    assert get(served(), "/", Host=host)[0] == 200


def test_a_port_that_is_in_use(served, tmp_path):
    write_run(tmp_path / "runs" / "a", [episode(0)])
    port = int(served().url.rstrip("/").rpartition(":")[2])
    with pytest.raises(BadOption, match=rf"cannot listen on port {port} of 127\.0\.0\.1: .*pass --port 0"):
        PageServer([tmp_path / "runs"], port=port)


def test_new_episodes_and_runs_are_read_only_with_watch(served, tmp_path):
    folder = write_run(tmp_path / "runs" / "a", [episode(0)])
    fixed, watching = served(), served(watch=True)
    assert get(watching, "/data/version")[2] == "1"
    (before,) = unpacked(get(watching, "/data/index")[2])["runs"][0]["blocks"]
    append(folder, episode(1))
    write_run(tmp_path / "runs" / "b", [episode(0)])
    ends = time.monotonic() + 30
    while get(watching, "/data/version")[2] == "1":
        assert time.monotonic() < ends
        time.sleep(0.05)
    runs = unpacked(get(watching, "/data/index")[2])["runs"]
    assert [run["episodes"]["task"] for run in runs] == [[0, 1], [0]]
    assert get(watching, f"/data/{before}")[0] == 200  # a page may still have the index before
    assert get(fixed, "/data/version")[2] == "1"


def test_a_run_that_becomes_unreadable_leaves_the_last_state(served, tmp_path, caplog):
    folder = write_run(tmp_path / "runs" / "a", [episode(0)])
    server = served(watch=True)
    (folder / "episodes.jsonl").write_text("{}\n")
    ends = time.monotonic() + 30
    while "cannot read the runs again" not in caplog.text:
        assert get(server, "/data/version")[2] == "1"
        assert time.monotonic() < ends
        time.sleep(0.05)
    assert get(server, "/data/index")[0] == 200


@pytest.mark.slow  # starts Chromium
def test_the_page_follows_a_run(served, browser, tmp_path):
    text = HOSTILE["script"] + HOSTILE["bidi"]
    folder = write_run(tmp_path / "runs" / "b", [episode(0), episode(1, score=0.0)], finished=False)
    server = served(watch=True)
    context = browser.new_context()
    page = context.new_page()
    errors = []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("dialog", lambda dialog: errors.append(dialog.message))
    page.goto(f"{server.url}#run=0&task=1&sample=0")
    page.wait_for_selector(OPENED)
    page.locator("#filter").fill("item")
    messages = ({"role": "user", "content": text},)
    append(folder, episode(2, goal=f"item {text}", messages=messages, turns=0, rewards=()))
    write_run(tmp_path / "runs" / "a", [episode(0, agent=text)], agent=text)
    until(page, "state.runs.length === 2 && state.runs[1].cells.length === 3")
    assert page.locator("#filter").input_value() == "item"
    assert page.locator("#count").inner_text() == "3 tasks"
    assert page.locator("#episode-title").inner_text() == "Task 1"
    until(page, "location.hash === '#run=1&task=1&sample=0'")  # the new run is before it
    page.keyboard.press("Escape")
    page.locator("button.cell[aria-label^='B, task 2']").click()
    page.wait_for_selector(OPENED)
    assert page.evaluate(HIDDEN) == []
    assert page.locator("main script, main img").count() == 0
    page.locator("#tab-compare").click()
    until(page, "document.querySelector('#comparison .pair') !== null")
    context.close()
    assert errors == []
