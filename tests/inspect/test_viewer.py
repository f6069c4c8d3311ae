"""inspect_ai's viewer, in a real browser, shows the conversations of an exported run."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import needs
from command_line import run
from ports import reserved_ports

pytest.importorskip("inspect_ai", reason=needs.reason("inspect_ai"))
playwright = pytest.importorskip("playwright.sync_api", reason=needs.reason("playwright.sync_api"))

SCRIPT = "<script>window.attacked = 1</script><img src=x onerror='window.attacked = 1'>"
SECONDS = 120


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=needs.path_of("chromium"), args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def viewed():
    """Serves a folder of logs by ``inspect view``."""
    with contextlib.ExitStack() as stack:

        def serve(logs):
            (port,) = stack.enter_context(reserved_ports(1))
            inspect = Path(sys.executable).with_name("inspect")
            viewer = stack.enter_context(
                subprocess.Popen(
                    [inspect, "view", "--log-dir", logs, "--port", str(port)],
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )
            )
            stack.callback(viewer.kill)
            until = time.monotonic() + SECONDS
            while True:
                assert viewer.poll() is None
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                except OSError:
                    assert time.monotonic() < until
                    time.sleep(0.1)
                else:
                    return f"http://127.0.0.1:{port}/"

        yield serve


def test_the_viewer_shows_scores_faults_and_a_conversation(browser, viewed, folder, record, tmp_path):
    hostile = (
        {"role": "user", "content": f"The first observation {SCRIPT}"},
        {"role": "assistant", "content": f"The only reply {SCRIPT}"},
        {"role": "user", "content": f"The last observation {SCRIPT}"},
    )
    steps = (
        {
            "prompt_tokens": 41,
            "completion_tokens": 1,
            "reasoning": f"A thought {SCRIPT}",
            "tool_calls": [{"name": "craft", "arguments": '{"item": "a very odd item"}'}],
        },
    )
    records = [
        record(3, 0, goal=f"A goal {SCRIPT}", messages=hostile, steps=steps, rewards=(0.75,), score=0.75),
        record(3, 1),
        record(4, 0, fault="ServerTimeout"),
    ]
    run("export", folder(records), "--to", "inspect", "--out", tmp_path / "logs")
    (log,) = (tmp_path / "logs").iterdir()
    url = viewed(log.parent)
    with contextlib.closing(browser.new_page()) as page:
        page.set_default_timeout(SECONDS * 1_000)
        errors = []
        page.on("pageerror", lambda error: errors.append(error))  # noqa: PLW0108 - it marks what it is given
        page.goto(f"{url}#/logs/{log.name}")
        page.get_by_text("A goal").first.wait_for()
        listed = page.inner_text("body")
        assert SCRIPT in listed
        assert "goal 4" in listed
        assert "the server failed" in listed
        assert "0.5" in listed  # one of the two scored ones is solved
        page.goto(f"{url}#/logs/{log.name}/samples/sample/3/1/transcript")
        page.get_by_text("The only reply").first.wait_for()
        shown = page.inner_text("body")
        for text in ("The first observation", "A thought", "The only reply"):
            assert f"{text} {SCRIPT}" in shown
        assert "a very odd item" in shown
        page.get_by_text("ended by: terminated").first.wait_for()
        page.goto(f"{url}#/logs/{log.name}/samples/sample/3/1/messages")
        page.get_by_text("You are playing a game.").first.wait_for()
        assert f"The last observation {SCRIPT}" in page.inner_text("body")
        assert page.evaluate("window.attacked") is None
        assert errors == []
