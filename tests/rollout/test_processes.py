"""An environment's process: how it ends, with everything that it has started, and what it may send."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import string
import subprocess
import sys
import textwrap
import time

import gymnasium
import numpy as np
import pytest

import programs
from agentgym_gym.rollout import Pool, TextAdapter
from clock import wait_until
from odd_env import Odd
from process_tree import alive

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="processes need os.fork")

ODD = "odd_env:test/Odd-v0"
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="only Linux adopts processes of other sessions")


def played(*actions, isolate="process", timeout=None):
    """Play actions, each in a separate episode, in one pool; return the episodes."""

    async def work():
        async with Pool(ODD, isolate=isolate, timeout=timeout) as pool:
            episodes = []
            for action in actions:
                async with pool.episode() as episode:
                    await episode.step(action)
                episodes.append(episode)
            return episodes

    return asyncio.run(work())


def pids_in(file):
    """Return the process ids in a file, once it has some."""
    wait_until(lambda: file.exists() and file.read_text("utf-8"), 60)
    return set(map(int, file.read_text("utf-8").split()))


@LINUX
@pytest.mark.slow  # a separate program
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_keeps_the_interpreter_s_lock_ends_with_the_program_and_takes_its_own(
    number, tmp_path
):
    begun, started = tmp_path / "begun", tmp_path / "started"
    program = """
        import asyncio
        import os
        import sys
        from agentgym_gym.rollout import Pool

        async def main():
            async with Pool("odd_env:test/Odd-v0", isolate="process") as pool, pool.episode() as episode:
                print((await episode.step("pid")).observation, flush=True)
                await episode.step(f"programs {sys.argv[2]}")
                if not os.fork():  # a child of the program keeps the connections open
                    os.execvp("sleep", ["sleep", "30"])
                await episode.step(f"hold {sys.argv[1]}")

        asyncio.run(main())
    """
    running = programs.start(
        [sys.executable, "-W", "ignore", "-c", textwrap.dedent(program), str(begun), str(started)],
        env=programs.environment(),
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pids = {int(running.stdout.readline()), *pids_in(started)}
        wait_until(begun.exists, 60)
        assert alive(pids) == pids
        running.send_signal(number)
        running.wait(20)
        wait_until(lambda: not alive(pids))
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.communicate()


@LINUX
def test_a_crash_ends_a_helper_that_keeps_the_connection_open(tmp_path):
    file = tmp_path / "helper"
    began = time.monotonic()
    (crashed,) = played(f"leave_helper {file}")
    assert time.monotonic() - began < 30
    assert crashed.fault == {
        "kind": "EnvProcessDied",
        "message": "the environment's process was killed by SIGSEGV",
    }
    wait_until(lambda: not alive(pids_in(file)))


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize("last", ["say x", "sleep 60"], ids=["closed", "killed"])
def test_programs_of_an_environment_end_with_it(last, tmp_path):
    file = tmp_path / "started"
    played(f"programs {file}", last, timeout=10)
    wait_until(lambda: not alive(pids_in(file)))


def test_plain_data_crosses_and_the_rest_is_left_out_by_name(caplog):
    with caplog.at_level(logging.WARNING):
        (episode,) = played("info")
    assert episode.fault is None
    info = dict(episode.info)
    array, nothing, days = (info.pop(name) for name in ("array", "nothing", "days"))
    assert info == {
        "none": None,
        "numbers": (1, 2.5, True, 2j, 0.5, True),
        "bytes": b"\x00\xff",
        "by number": {1: ["half \ud83d", {"~": "tag"}], (1, 2): {3}},
        "inner": {"kept": 1},
    }
    assert [type(number) for number in info["numbers"][4:]] == [np.float32, np.bool_]
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert array.flags.writeable
    assert (nothing.shape, nothing.dtype, days.tolist()[0].day) == ((0, 2), np.float16, 29)
    (warning,) = [record.getMessage() for record in caplog.records if "left out" in record.getMessage()]
    assert "digits, function, inner.hook, inner.itself, inner.list, objects" in warning


def test_an_error_of_an_environment_s_own_class_runs_no_code_in_the_program():
    (episode,) = played("hooked")
    assert episode.fault["kind"] == "Hooked"


@pytest.mark.slow
@pytest.mark.parametrize(
    "content",
    [
        "",
        "{",
        "[]",
        "[" * 100_000,
        '{"value": {"~": "moon", "of": 1}}',
        '{"value": {"~": "type", "of": ["Box", {}]}}',
    ],
    ids=["empty", "cut off", "a list", "deep", "an unknown tag", "bad arguments"],
)
def test_a_garbled_reply_is_a_fault_and_ends_the_process(content):
    (episode,) = played(f"garble {content}")
    assert episode.fault["kind"] == "EnvProcessDied"
    assert "sent an invalid reply" in episode.fault["message"]


@pytest.mark.parametrize("isolate", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_rewards_and_ends_are_numbers_and_truth_values(isolate):
    refused = {
        "reward='1.0'": "the reward should be a number, not '1.0'",
        "reward=None": "the reward should be a number, not None",
        "reward=np.ones(2)": "the reward should be a number, not array([1., 1.])",
        "reward=float('nan')": "the reward is nan, not a number that can be summed",
        "terminated='false'": "terminated should be True or False, not 'false'",
        "terminated=0": "terminated should be True or False, not 0",
        "truncated=None": "truncated should be True or False, not None",
        "truncated=np.array([True])": "truncated should be True or False, not array([ True])",
    }
    for action, episode in zip(
        refused, played(*[f"returns {each}" for each in refused], isolate=isolate), strict=True
    ):
        assert episode.fault["message"] == refused[action]
    accepted = {
        "reward=2": (2.0, False),
        "reward=True": (1.0, False),
        "reward=np.float32(2)": (2.0, False),
        "reward=np.int8(2)": (2.0, False),
        "reward=np.array(2)": (2.0, False),
        "terminated=np.bool_(True)": (1.0, True),
        "terminated=np.array(True)": (1.0, True),
    }
    for action, episode in zip(
        accepted, played(*[f"returns {each}" for each in accepted], isolate=isolate), strict=True
    ):
        assert (episode.fault, episode.rewards[0], episode.terminated) == (None, *accepted[action])


class Printable(Odd):
    """The same with actions of all printable characters."""

    action_space = gymnasium.spaces.Text(1_000, charset=string.printable)


def test_the_adapter_checks_rewards_and_ends():
    env = TextAdapter(Printable())
    for action in ("returns reward='1.0'", "returns terminated='false'"):
        env.reset()
        with pytest.raises(TypeError, match="should be"):
            env.step(action)
