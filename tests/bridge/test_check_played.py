"""Whole episodes that `check` plays."""

from __future__ import annotations

import time

import gymnasium
import pytest

import nasty_envs
from checked import checked, write_tasks

pytestmark = pytest.mark.usefixtures("pools_closed")


class Picky(nasty_envs.Nasty):
    """Fails at any reply that is not empty."""

    def step(self, action):
        if action:
            raise RuntimeError("no such word")
        return super().step(action)


gymnasium.register("bridge/Picky-v0", Picky)


class Scripted:
    """Gives its replies, then up.

    Attributes:
        observations: What it observed, one for each reply.
    """

    name = "scripted"

    def __init__(self, *replies):
        self.left, self.observations = list(replies), []

    def begin(self, env, observation, info):
        self.task = info["task_id"]

    def reply(self, observation, info):
        self.observations.append(observation)
        return self.left.pop(0) if self.left else None


@pytest.fixture
def play(tmp_path):
    """Has players play the tasks of a folder; returns the findings about episodes and about lengths."""

    def played(*players, env_id="nasty_envs:nasty/Nasty-v0", timeout=30.0, **loop):
        folder = write_tasks(tmp_path, env_id, **(loop or {"max_turns": 9}))
        makers = [lambda player=player: player for player in players]
        names = ("episodes", "response length")
        return checked(folder, *names, timeout=timeout, players=lambda env_id: makers)

    return played


def test_two_episodes_are_played_to_their_ends(play):
    one, other = Scripted(*"abcdef"), Scripted("x")
    (length,) = play(one, other)
    assert (length.check, "by 2 episodes of scripted" in length.text) == ("response length", True)
    assert (one.task, one.observations, one.left) == (0, ["Begin.", "Go on."], [*"cdef"])
    assert (other.task, other.observations, other.left) == (2, ["Begin.", "Go on."], [])


@pytest.mark.parametrize("loop", [{"max_turns": 9}, {"horizon": {"turns": [4, 9], "every": 1}}])
def test_the_highest_turn_limit_counts(play, loop):
    (length,) = play(Scripted("a"), **loop)
    assert "by 1 episodes of scripted up to 9 turns" in length.text


def test_without_players_nothing_is_played(play):
    (length,) = play()
    assert (length.check, "scripted" in length.text) == ("response length", False)


@pytest.mark.slow
def test_episodes_before_the_timeout_count(play):
    """The first reply comes at once, and the second too late."""

    class Late(Scripted):
        def reply(self, observation, info):
            time.sleep(2 * len(self.observations))
            return super().reply(observation, info)

    (length,) = play(Late("a", "b"), timeout=1.0)
    assert "by 1 episodes of scripted" in length.text


def test_a_fault_is_reported(play):
    fault, *_ = play(Scripted(*"abc"), env_id="bridge/Picky-v0")
    assert (fault.check, fault.status) == ("episodes", "warning")
    assert "faulted in turn 1 of scripted: RuntimeError: no such word" in fault.text


def test_a_player_that_fails_ends_no_check(play):
    class Broken(Scripted):
        def begin(self, env, observation, info):
            raise KeyError("nothing")

    finding, length = play(Broken())
    assert (finding.check, finding.status) == ("episodes", "warning")
    assert "no whole episode could be played: KeyError" in finding.text
    assert "scripted" not in length.text
