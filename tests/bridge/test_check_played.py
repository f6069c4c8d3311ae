"""Whole episodes that `agentgym verl check` plays, and the estimate of their tokens."""

from __future__ import annotations

import asyncio
import math
import time

import pytest

from verl_bridge.recipes._check_episodes import Case
from verl_bridge.recipes._check_played import PlayedEpisode, percentile_tokens, play_whole
from verl_bridge.tasks import EnvTask

pytestmark = pytest.mark.usefixtures("pools_closed")


class Scripted:
    def __init__(self, *replies, seconds=0.0):
        self.name, self.left, self.seconds = "scripted", list(replies), seconds

    def begin(self, env, observation, info):
        self.task = info["task_id"]

    def reply(self, observation, info):
        time.sleep(self.seconds)
        return self.left.pop(0) if self.left else None


def play(*makers, name="Nasty", timeout=30.0, max_turns=9, seeds=(0, 2), **env_kwargs):
    cases = [Case(f"row {s}", EnvTask(f"nasty_envs:nasty/{name}-v0", env_kwargs, seed=s)) for s in seeds]
    return asyncio.run(play_whole(cases, makers, timeout=timeout, max_turns=max_turns))


def test_two_episodes_are_played_to_their_ends():
    findings, episodes = play(lambda: Scripted(*"abcdef"), lambda: Scripted("x"))
    assert findings == []
    assert [episode.replies for episode in episodes] == [["a", "b"], ["x"]]
    assert [len(episode.observations) for episode in episodes] == [2, 1]


def test_without_players_nothing_is_played():
    assert play() == ([], [])


@pytest.mark.slow
def test_what_was_played_in_time_counts():
    began = time.monotonic()
    findings, (episode,) = play(lambda: Scripted(*"ab", seconds=0.8), timeout=1.0)
    assert time.monotonic() - began < 5
    assert findings == []
    assert len(episode.observations) == 1


def test_a_fault_is_reported():
    (finding, *_), _ = play(lambda: Scripted(*"abc"), seeds=(1,), wrong="step exit")
    assert finding.status == "warning"
    assert "faulted in turn 1 of scripted" in finding.text


def test_a_player_that_fails_ends_no_check():
    class Broken(Scripted):
        def begin(self, env, observation, info):
            raise KeyError("nothing")

    ((finding,), episodes) = play(Broken)
    assert (finding.status, episodes) == ("warning", [])
    assert "no whole episode could be played: KeyError" in finding.text


def tokens(*episodes, turns=math.inf, reply=0, reply_limit=None, observation_limit=10**6):
    limits = {"reply": reply, "reply_limit": reply_limit, "observation_limit": observation_limit}
    return percentile_tokens(episodes, len, turns=turns, **limits)


def test_the_estimate():
    """A character is a token here."""
    short = PlayedEpisode("oracle", ["ab"] * 2, ["o" * 8] * 2)
    long = PlayedEpisode("random", ["a"] * 4, ["o" * 29] * 4)
    assert tokens(short) == 2 * (2 + 8)
    assert tokens(short, turns=10) == 10 * (2 + 8)  # as if it had gone on
    assert tokens(short, long) == 20 + 0.9 * (4 * 30 - 20)
    assert tokens(short, reply=5) == 2 * (5 + 8)
    assert tokens(short, reply=5, reply_limit=3) == 2 * (3 + 8)
    assert tokens(long, observation_limit=9) == 4 * (1 + 9)
    assert tokens(long, turns=2) == 4 * 30  # more than the limit were played
