"""The proxy in a separate process."""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import subprocess
import sys

import httpx
import pytest

import forked
import programs

pytestmark = pytest.mark.slow  # programs of their own


def start(*arguments, **options):
    command = [sys.executable, "-m", "agentgym_gym.testing", *arguments]
    return programs.start(command, stdout=subprocess.PIPE, text=True, **options)


@pytest.mark.parametrize("way", ["end of input", signal.SIGINT, signal.SIGTERM])
def test_it_prints_its_address_and_at_its_end_its_counts(textcraft_url, way):
    options = ("--share", "1", "--seed", "3", "--kinds", "error", "lost", "--stages", "step", "--delay", "2")
    with start(textcraft_url, *options, stdin=subprocess.PIPE) as process:
        with httpx.Client(base_url=json.loads(process.stdout.readline())["url"]) as client:
            made = client.post("/create", json={}).json()["id"]
            for _ in range(20):
                with contextlib.suppress(httpx.ReadError):
                    response = client.post("/step", json={"id": made, "action": "inventory"})
                    assert response.status_code == 500
            client.post("/close", json={"id": made})
        if way == "end of input":
            process.stdin.close()
        else:
            process.send_signal(way)
        counted = json.loads(process.stdout.readline())
        assert process.wait(60) == 0
    assert counted["calls"] == {"create": 1, "step": 20, "close": 1}
    assert set(counted["injected"]) == {"error", "lost"}
    assert sum(counted["injected"].values()) == 20
    assert counted["created"] == [
        {
            "id": made,
            "path": "/create",
            "life": 0,
            "reply_sent": True,
            "close_requested": True,
            "closed": True,
        }
    ]


def test_an_input_that_was_never_open_does_not_end_it(textcraft_url):
    with start(textcraft_url, "--share", "0", stdin=subprocess.DEVNULL) as process:
        url = json.loads(process.stdout.readline())["url"]
        assert httpx.get(url).json() == "This is environment TextCraft."
        process.terminate()
        assert json.loads(process.stdout.readline())["calls"] == {"identify": 1}


@pytest.mark.parametrize("arguments", [["--share", "2"], ["--kinds", "rest"], ["--port", "70000"]])
def test_a_mistake_ends_it_by_status_2(arguments):
    program = "import runpy; runpy.run_module('agentgym_gym.testing', run_name='__main__')"
    ended = forked.run(program, "http://games.test", *arguments)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert "error: " in ended.stderr


def test_hundreds_of_connections_at_once(textcraft_url):
    """Three hundred open at the same time, each of which is answered twice."""

    async def talk(port, all_open):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        replies = []
        for _ in range(2):
            writer.write(b"GET / HTTP/1.1\r\nHost: here\r\n\r\n")
            head = await reader.readuntil(b"\r\n\r\n")
            length = int(head.lower().partition(b"content-length:")[2].split()[0])
            replies.append(await reader.readexactly(length))
            await all_open(len(replies))
        writer.close()
        await writer.wait_closed()
        return replies

    async def everybody(port):
        arrived, full = 0, asyncio.Event()

        async def all_open(times):
            nonlocal arrived
            arrived += times == 1
            if arrived == 300:
                full.set()
            await full.wait()

        return await asyncio.gather(*(talk(port, all_open) for _ in range(300)))

    with start(textcraft_url, "--share", "0", stdin=subprocess.PIPE) as process:
        url = json.loads(process.stdout.readline())["url"]
        replies = asyncio.run(everybody(int(url.rpartition(":")[2])))
        process.stdin.close()
        counted = json.loads(process.stdout.readline())
    assert replies == [[b'"This is environment TextCraft."'] * 2] * 300
    assert (counted["calls"], counted["unplanned"]) == ({"identify": 600}, 0)
