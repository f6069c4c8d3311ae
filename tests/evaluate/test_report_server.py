"""The server of the report: what it serves, to whom, and that its page follows runs as they go."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

import command_line
import programs
from report_browser import HIDDEN, OPENED, until
from report_contents import unpacked
from report_runs import HOSTILE, episode, write_run


@contextlib.contextmanager
def serving(*words: object) -> Iterator[str]:
    """Run `agentgym view`, and yield its address."""
    command = [sys.executable, "-m", "agentgym_gym", "view", *map(str, words)]
    process = programs.start(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().rpartition(" on ")[2].split()[0]
    finally:
        process.terminate()
        process.communicate()


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    """The address of a server of two runs."""
    runs = tmp_path_factory.mktemp("served")
    write_run(runs / "a", [episode(0), episode(1)])
    write_run(runs / "b", [episode(0), episode(1, score=0.0)])
    with serving(runs) as url:
        yield url


def get(url, path, **headers):
    """Return the status, the headers and the body of a response."""
    request = urllib.request.Request(url.rstrip("/") + path, headers=headers)  # noqa: S310 - http
    try:
        with urllib.request.urlopen(request) as response:  # noqa: S310
            return response.status, response.headers, response.read().decode()
    except urllib.error.HTTPError as error:
        with error:
            return error.code, error.headers, error.read().decode()


def append(folder, *records):
    with (folder / "episodes.jsonl").open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(record.to_json()) + "\n" for record in records)


def test_the_page_and_its_data(url):
    status, headers, page = get(url, "/")
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert "connect-src 'self'" in page
    assert "watchRuns()" not in page.replace('typeof watchRuns === "function") watchRuns()', "")
    index = unpacked(get(url, "/data/index")[2])
    assert [run["letter"] for run in index["runs"]] == ["A", "B"]
    (block,) = index["runs"][1]["blocks"]
    assert [each["score"] for each in unpacked(get(url, f"/data/{block}")[2])] == [1.0, 0.0]
    (pair,) = unpacked(get(url, "/data/comparisons")[2])
    assert (pair["a"], pair["b"], pair["broken"]) == ("A", "B", [1])
    for path in ("/data/block-0", "/data/../secret", "/episodes.jsonl", "/data/"):
        assert get(url, path)[0] == 404


@pytest.mark.parametrize(
    "host", ["example.com", "example.com:80", "127.0.0.1.example.com", "a@127.0.0.1", ""]
)
def test_another_host_is_refused(url, host):
    """A page of somebody else may have its name point to this machine."""
    status, _, body = get(url, "/data/index", Host=host)
    assert status == 421
    assert "loopback" in body


@pytest.mark.parametrize("host", ["localhost:1", "127.0.0.1", "[::1]:80", "LOCALHOST."])
def test_loopback_names_are_accepted(url, host):
    assert get(url, "/", Host=host)[0] == 200


@pytest.mark.slow
def test_a_port_that_is_in_use(url, tmp_path):
    port = url.rstrip("/").rpartition(":")[2]
    refused = command_line.run("view", write_run(tmp_path / "a", [episode(0)]), "--port", port)
    assert (refused.exit_code, f"port {port} " in refused.stderr) == (2, True), refused.stderr
    assert "--port=0" in refused.stderr


@pytest.mark.slow  # the server reads at most once a second
def test_runs_are_read_again_only_with_watch(tmp_path):
    runs = tmp_path / "runs"
    folder = write_run(runs / "a", [episode(0)])
    with serving(runs) as fixed, serving(runs, "--watch") as watching:
        assert get(watching, "/data/version")[2] == "1"
        (before,) = unpacked(get(watching, "/data/index")[2])["runs"][0]["blocks"]
        append(folder, episode(1))
        write_run(runs / "b", [episode(0)])
        # Asking for the version reads; run b may have been read before all of it was written.
        wait(lambda: get(watching, "/data/version")[2] != "1" and tasks(watching) == [[0, 1], [0]])
        assert get(watching, f"/data/{before}")[0] == 200  # a page may still have the index before
        assert get(fixed, "/data/version")[2] == "1"
        whole, version = (folder / "episodes.jsonl").read_bytes(), get(watching, "/data/version")[2]
        (folder / "episodes.jsonl").write_text("{}\n")  # what cannot be read leaves the last state
        for _ in range(25):  # it is read once a second
            assert (get(watching, "/data/version")[2], tasks(watching)) == (version, [[0, 1], [0]])
            time.sleep(0.1)
        (folder / "episodes.jsonl").write_bytes(whole * 2)
        wait(lambda: get(watching, "/data/version")[2] != version)


def tasks(url):
    """Return the tasks of each run that is served."""
    return [run["episodes"]["task"] for run in unpacked(get(url, "/data/index")[2])["runs"]]


def wait(condition):
    ends = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < ends
        time.sleep(0.05)


@pytest.mark.slow  # starts Chromium
def test_the_page_follows_a_run(browser, tmp_path):
    text = HOSTILE["script"] + HOSTILE["bidi"]
    folder = write_run(tmp_path / "runs" / "b", [episode(0), episode(1, score=0.0)], finished=False)
    with serving(tmp_path / "runs", "--watch") as url:
        context = browser.new_context()
        page = context.new_page()
        errors = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("dialog", lambda dialog: errors.append(dialog.message))
        page.goto(f"{url}#run=0&task=1&sample=0")
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
