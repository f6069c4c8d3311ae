"""Replies that a server should not send, by name: each is its own fault in all three kinds of environment.

Over real sockets. After any failure, an environment plays on after the next reset, and those beside it
in a vector are none the wiser (`bad_textcraft.Among`).
"""

from __future__ import annotations

import json

import pytest

from agentgym_gym import errors
from agentgym_gym.actions import Verbatim
from bad_textcraft import CURSED, POISON, TOLD, Alone, Among, Awaited, cannot_begin, ends_by, plays_on, told
from fake_server import http, then_hang_up


def each_in_turn(table):
    """Return each row with each kind of environment; a plain run has one of the kinds in turn."""
    kinds = (Alone, Awaited, Among)
    rows = [
        pytest.param(kind, name, marks=[] if (row + place) % 3 == 0 else pytest.mark.slow)
        for row, name in enumerate(table)
        for place, kind in enumerate(kinds)
    ]
    return pytest.mark.parametrize(("make", "name"), rows, indirect=["make"])


# --------------------------------------------------------------------------------------------------- replies


def reward_of(number):
    return http(f'{{"observation": "x", "reward": {number}, "done": false}}'.encode())


BAD_REPLIES = {
    "a long page of HTML": (
        errors.BadReply,
        "not JSON: '<!doctype html>",
        http(b"<!doctype html><h1>It works!</h1>" * 300_000, "200 OK", "Content-Type: text/html"),
    ),
    "HTML with its status": (
        errors.ServerError,
        "HTTP 502: '<h1>Bad",
        http(b"<h1>Bad Gateway</h1>", "502 Bad Gateway"),
    ),
    "truncated JSON": (
        errors.BadReply,
        'not JSON: \'{"observation"',
        http(json.dumps(TOLD).encode()[:-9]),
    ),
    "JSON cut off with the connection": (
        errors.ConnectionLost,
        "lost its connection",
        then_hang_up(told()[:-9]),
    ),
    "bytes that are not UTF-8": (errors.BadReply, "not JSON", http(b'{"observation": "\xff\xfe"}')),
    **{
        f"reward {number}": (errors.BadReply, "not JSON", reward_of(number))
        for number in ("NaN", "Infinity", "-Infinity")
    },
    "a reward beyond all floats": (
        errors.BadReply,
        "'reward' should be a finite number",
        told(reward=10**400),
    ),
    **{
        f"reward {reward!r}": (errors.BadReply, "'reward' should be a number, got", told(reward=reward))
        for reward in ("1", "NaN", True, None, [1])
    },
    "no done": (errors.BadReply, "'done' is missing", told(done=...)),
    **{
        f"done {done!r}": (errors.BadReply, "'done' should be true or false", told(done=done))
        for done in (None, 1, "false")
    },
    "no observation": (errors.BadReply, "'observation' is missing", told(observation=...)),
}
"""What answers a step; its fault, and words of the message."""


@each_in_turn(BAD_REPLIES)
def test_a_bad_reply_to_a_step_is_the_fault_that_it_is(play, server, name):
    fault, words, answer = BAD_REPLIES[name]
    ends_by(fault, words, play, server, answer)


BAD_AT_A_RESET = {
    "HTML": ("not JSON: '<h1>", "/reset", http(b"<h1>It works!</h1>")),
    "truncated JSON": ("not JSON", "/reset", http(b'{"id": 1, "observa')),
    "no observation": ("'observation' is missing", "/reset", told(observation=...)),
    "another id": (f"the reply is of remote environment {10**30}, not", "/reset", told(id=10**30)),
    **{
        f"id {env_id!r}": ("'id' should be an integer, got", "/create", told(id=env_id))
        for env_id in ("7", 7.0, None, True, [7])
    },
    "an id too long to be read": ("not JSON", "/create", http(b'{"id": ' + b"9" * 5_000 + b"}")),
}
"""What answers a reset, or the creation before it: words of the message, the path, and the reply."""


@each_in_turn(BAD_AT_A_RESET)
def test_a_bad_reply_before_the_first_step_is_raised(play, server, name):
    words, path, answer = BAD_AT_A_RESET[name]
    cannot_begin(words, play, server, path, answer)


# ---------------------------------------------------------------------------------------------- observations


@pytest.mark.parametrize(
    "make", [Alone, *(pytest.param(kind, marks=pytest.mark.slow) for kind in (Awaited, Among))], indirect=True
)
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
