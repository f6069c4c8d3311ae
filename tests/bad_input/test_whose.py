"""Whose reply it is, and whether there is one: ids, replies to other requests, redirects, silence."""

from __future__ import annotations

import contextlib
import itertools
import socket
import threading

import pytest

from agentgym_gym import errors
from bad_textcraft import LOOK, POISON, cannot_begin, ends_by, plays_on, told
from fake_server import http, never

pytestmark = pytest.mark.slow  # many processes or waits

# ------------------------------------------------------------------------------------------------------- ids


@pytest.mark.parametrize("env_id", [0, 10**30])
def test_id_0_and_huge_id(play, server, env_id):
    server.ids = itertools.count(env_id)
    assert plays_on(play) == env_id
    assert "fault" not in play.step(LOOK)[4]
    server.bad["/create"] = http(b"", "500 Internal Server Error")
    assert plays_on(play) == env_id
    play.close()
    assert ("/close", {"id": env_id}) in server.asked


# ------------------------------------------------------------------------------------------- another's reply


def test_a_late_reply_to_an_earlier_request(play, server):
    released, sent = threading.Event(), threading.Event()

    def late(connection):
        released.wait(30)
        with contextlib.suppress(OSError):
            connection.send(told(observation="late"))
        sent.set()

    ends_by(errors.ServerTimeout, "no whole reply in the time allowed", play, server, late)
    released.set()
    assert sent.wait(30)
    assert play.step(LOOK)[0].startswith("inventory in ")
    plays_on(play)


def test_surplus_bytes_after_a_reply(play, server):
    server.bad[POISON] = told(observation="mine") + told(observation="stale")
    play.reset()
    assert play.step(f"Action: {POISON}")[0] == "mine"
    server.pretend("mine")
    assert play.step(LOOK)[0].startswith("inventory in ")
    plays_on(play)


def test_an_unrequested_reply(play, server):
    go, sent = threading.Event(), threading.Event()

    def chatter(connection):
        connection.send(told(observation="mine"))
        go.wait(30)
        connection.send(told(observation="stale"))
        sent.set()

    server.bad[POISON] = chatter
    play.reset()
    assert play.step(f"Action: {POISON}")[0] == "mine"
    server.pretend("mine")
    go.set()
    assert sent.wait(30)
    play.idle()
    assert play.step(LOOK)[0].startswith("inventory in ")
    plays_on(play)


# ---------------------------------------------------------------------------------------- elsewhere, nowhere


@pytest.fixture
def elsewhere():
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setblocking(False)
        yield listening
        with pytest.raises(BlockingIOError):  # nobody has come
            listening.accept()


@pytest.mark.parametrize("status", ["301 Moved Permanently", "303 See Other", "307 Temporary Redirect"])
def test_redirect_to_another_host(play, server, elsewhere, status):
    target = f"http://localhost:{elsewhere.getsockname()[1]}/step"
    bad = http(b"", status, f"Location: {target}")
    ends_by(errors.BadReply, f"redirected to '{target}'; redirects are not followed", play, server, bad)


def test_redirect_at_a_reset(play, server, elsewhere):
    target = f"http://localhost:{elsewhere.getsockname()[1]}/"
    bad = http(b"", "308 Permanent Redirect", f"Location: {target}")
    cannot_begin("redirects are not followed", play, server, "/reset", bad)


def test_a_server_that_never_answers(play, server):
    ends_by(errors.ServerTimeout, "no whole reply in the time allowed", play, server, never)
