"""What a server should not say, by name: each is the fault that it is, to all three kinds of environment.

Over real sockets. Whatever happens to one environment, it plays on after the next reset, and those beside it
in a vector are none the wiser (`bad_textcraft.Among`).
"""

from __future__ import annotations

import json

import pytest

from agentgym_gym import errors
from agentgym_gym.actions import Verbatim
from bad_textcraft import CURSED, POISON, TOLD, cannot_begin, ends_by, plays_on, told
from fake_server import http, then_hang_up

# ----------------------------------------------------------------------------------------------- not a reply


def test_html_error_page(play, server):
    page = http(b"<!doctype html><h1>It works!</h1>" * 300_000, "200 OK", "Content-Type: text/html")
    ends_by(errors.BadReply, "not JSON: '<!doctype html>", play, server, page)


def test_html_error_page_with_its_status(play, server):
    page = http(b"<h1>Bad Gateway</h1>", "502 Bad Gateway")
    ends_by(errors.ServerError, "HTTP 502: '<h1>Bad", play, server, page)


def test_html_error_page_at_a_reset(play, server):
    cannot_begin("not JSON: '<h1>", play, server, "/reset", http(b"<h1>It works!</h1>"))


def test_truncated_json(play, server):
    whole = json.dumps(TOLD).encode()
    ends_by(errors.BadReply, 'not JSON: \'{"observation"', play, server, http(whole[:-9]))


def test_truncated_json_at_a_reset(play, server):
    cannot_begin("not JSON", play, server, "/reset", http(b'{"id": 1, "observa'))


def test_json_cut_off_with_the_connection(play, server):
    ends_by(errors.ConnectionLost, "lost its connection", play, server, then_hang_up(told()[:-9]))


def test_raw_bytes_that_are_not_utf8(play, server):
    ends_by(errors.BadReply, "not JSON", play, server, http(b'{"observation": "\xff\xfe"}'))


# ---------------------------------------------------------------------------------------- a field of a reply


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_nan_reward(play, server, number):
    bad = http(f'{{"observation": "x", "reward": {number}, "done": false}}'.encode())
    ends_by(errors.BadReply, "not JSON", play, server, bad)


def test_a_reward_beyond_all_floats(play, server):
    ends_by(errors.BadReply, "'reward' should be a finite number", play, server, told(reward=10**400))


@pytest.mark.parametrize("reward", ["1", "NaN", True, None, [1]])
def test_reward_as_string(play, server, reward):
    ends_by(errors.BadReply, "'reward' should be a number, got", play, server, told(reward=reward))


def test_done_missing(play, server):
    ends_by(errors.BadReply, "'done' is missing", play, server, told(done=...))


@pytest.mark.parametrize("done", [None, 1, "false"])
def test_done_of_another_type(play, server, done):
    ends_by(errors.BadReply, "'done' should be true or false", play, server, told(done=done))


def test_observation_missing(play, server):
    ends_by(errors.BadReply, "'observation' is missing", play, server, told(observation=...))


def test_observation_missing_at_a_reset(play, server):
    cannot_begin("'observation' is missing", play, server, "/reset", told(observation=...))


# ---------------------------------------------------------------------------------------------- observations


def test_10_mb_observation(play, server):
    long = "ø word\n" * 1_400_000
    server.bad[POISON] = told(observation=long)
    server.bad[CURSED] = told(observation=long)
    assert play.reset(CURSED)[0] == long
    turn = play.step(f"Action: {POISON}")
    assert turn[0] == long
    assert "fault" not in turn[4]
    plays_on(play)


@pytest.mark.parametrize("text", ["ø 漢字 🎉 \u202e \x00 \x1b[31m", ""])
def test_unicode_observation(play, server, text):
    server.bad[POISON] = told(observation=text)
    play.reset()
    assert play.step(f"Action: {POISON}")[0] == text
    plays_on(play)


@pytest.mark.parametrize(
    ("raw", "seen"),
    [
        (rb"\ud800 \udfff", "? ?"),
        (rb"\ud83c\udf89", "🎉"),  # a pair is no lone surrogate
        (b"\xed\xa0\x80", "?"),  # a surrogate as UTF-8 would have it, were it allowed there
    ],
    ids=["lone", "a pair", "raw bytes"],
)
def test_lone_surrogates_in_an_observation(play, server, raw, seen):
    server.bad[POISON] = http(b'{"observation": "' + raw + b'", "reward": 0, "done": false}')
    play.reset()
    turn = play.step(f"Action: {POISON}")
    assert turn[0] == seen
    assert "fault" not in turn[4]
    plays_on(play)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("Action: say ø 🎉 漢字", "say ø 🎉 漢字"),
        (Verbatim("fly \ud800 away \x00"), "fly ? away \x00"),
    ],
)
def test_unicode_and_lone_surrogates_in_what_the_agent_writes(play, server, said, heard):
    play.reset()
    observation, *_, info = play.step(said)
    assert heard in [body["action"] for path, body in server.asked if path == "/step"]
    assert info["action"] == heard
    assert observation.startswith(heard)
    assert "fault" not in info
    plays_on(play)
