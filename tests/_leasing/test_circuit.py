"""A server that does not answer costs seconds, not hours."""

from __future__ import annotations

import asyncio
import errno
import os
import socket
import sys
import textwrap
import threading
import time
from collections import Counter

import pytest

import inside
import programs
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv, errors


def test_a_dead_server_costs_three_time_limits(silent_url):
    env = AgentGymEnv("TextCraft", server=silent_url, timeout=0.2)
    for _ in range(3):
        with pytest.raises(errors.ServerTimeout):
            env.reset(seed=0)
    sent = env.stats.requests
    with pytest.raises(errors.ServerUnreachable, match="circuit open"):
        env.reset(seed=0)
    assert env.stats.requests == sent
    env.close()


@pytest.mark.slow
def test_of_several_servers_the_one_that_answers_is_used_and_the_other_tried_again(silent_url, textcraft_url):
    envs = [
        AgentGymEnv("TextCraft", server=[silent_url, textcraft_url], timeout={"create": 2}) for _ in range(6)
    ]
    for env in envs:
        env.reset(seed=0)
    # The first found out, and the others were not held up.
    assert [env.stats.faults["ServerTimeout"] for env in envs] == [1, 0, 0, 0, 0, 0]
    inside.advance_clock("TextCraft", silent_url, 10)
    envs[0].reset(seed=0)  # in what it holds
    late = AgentGymEnv("TextCraft", server=[silent_url, textcraft_url], timeout={"create": 2})
    late.reset(seed=0)
    assert late.stats.faults["ServerTimeout"] == 1
    late.close()
    for env in envs:
        env.close()


def test_many_threads_are_not_blocked_by_a_dead_server(silent_url):
    faults = []

    def play():
        env = AgentGymEnv("TextCraft", server=silent_url, timeout=0.5)
        for _ in range(4):
            with pytest.raises(errors.Fault):
                env.reset(seed=0)
        faults.append(Counter(env.stats.faults))
        env.close()

    threads = [threading.Thread(target=play) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(each.total() for each in faults) == 32
    assert sum(each["ServerTimeout"] for each in faults) <= 10  # requests under way, and no later one


def looked_up(monkeypatch, answer):
    """Have every name looked up by a function."""
    look_up = socket.getaddrinfo

    def instead(host, *args, **options):
        return answer() if host == "name.test" else look_up(host, *args, **options)

    monkeypatch.setattr(socket, "getaddrinfo", instead)


def no_such_name():
    raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")


GIVEN_UP = threading.Event()
GIVEN_UP.set()


def slow_look_up():
    """Take longer than connecting may: in a thread of an event loop, until that has given up."""
    GIVEN_UP.wait(60)
    time.sleep(0.04)
    return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 1))]


async def awaited_reset(env):
    GIVEN_UP.clear()
    try:
        await env.reset(seed=0)
    finally:
        GIVEN_UP.set()  # or the end of the event loop would wait for the thread


def resets(env, number):
    """Return the messages of a number of resets that fail."""
    said = []
    for _ in range(number):
        with pytest.raises(errors.ServerUnreachable) as caught:
            asyncio.run(awaited_reset(env)) if isinstance(env, AsyncAgentGymEnv) else env.reset(seed=0)
        said.append(str(caught.value))
    return said


@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv])
@pytest.mark.parametrize(
    ("answer", "reason"), [(no_such_name, "name resolution"), (slow_look_up, "look up the name name.test")]
)
def test_a_name_that_is_not_found_opens_no_circuit(monkeypatch, kind, answer, reason):
    looked_up(monkeypatch, answer)
    inside.retry_at_once(monkeypatch)
    env = kind("TextCraft", server="http://name.test", timeout={"connect": 0.02, "create": 60})
    assert all(reason in each for each in resets(env, 5))


@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv])
@pytest.mark.parametrize(
    ("code", "advice"),
    [
        (errno.EMFILE, "ulimit -n"),
        (errno.ENFILE, "ulimit -n"),
        (errno.ENOMEM, ""),
        (errno.ENOBUFS, ""),
        (errno.ENETUNREACH, ""),
        (errno.EHOSTUNREACH, ""),
        (errno.EACCES, ""),
        (errno.EADDRNOTAVAIL, ""),
    ],
)
def test_local_failures_open_no_circuit_and_are_named(monkeypatch, kind, code, advice):
    def refuse(*_args):
        raise OSError(code, os.strerror(code))

    inside.retry_at_once(monkeypatch)
    monkeypatch.setattr(socket.socket, "connect_ex", lambda *_args: code)
    monkeypatch.setattr(asyncio.selector_events.BaseSelectorEventLoop, "sock_connect", refuse)
    said = resets(kind("TextCraft", server="http://192.0.2.1"), 5)
    assert all(os.strerror(code) in each and advice in each for each in said)


@pytest.mark.slow  # a separate program
@pytest.mark.parametrize("kind", [AgentGymEnv, AsyncAgentGymEnv])
def test_a_lack_of_descriptors_does_not_count_against_the_server(counted, kind):
    """Truly without: in a separate program, which frees them after five resets."""
    server = counted()
    code = f"""
        import asyncio, os, resource, sys
        from agentgym_gym import {kind.__name__}, errors

        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        loop = asyncio.new_event_loop()
        run = loop.run_until_complete if {kind is AsyncAgentGymEnv} else lambda done: done
        env = {kind.__name__}("TextCraft", server=sys.argv[1])
        run(env.reset(seed=0))
        run(env.close())
        taken = []
        try:
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        except OSError:
            pass
        for _ in range(5):
            try:
                run(env.reset(seed=0))
            except errors.ServerUnreachable as fault:
                print(fault)
        for each in taken:
            os.close(each)
        run(env.reset(seed=0))
        print("plays")
        run(env.close())
        loop.close()
    """
    ended = programs.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code), server.url],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ended.stderr == ""
    *failed, last = ended.stdout.splitlines()
    assert len(failed) == 5
    assert all("Too many open files" in each and "ulimit -n" in each for each in failed)
    assert last == "plays"


def test_an_episode_whose_own_time_is_up_opens_no_circuit(counted, monkeypatch):
    server = counted()
    envs = [AgentGymEnv("TextCraft", server=server.url, timeout={"episode": 600}) for _ in range(4)]
    for env in envs:
        env.reset(seed=0)
    now = time.monotonic
    with monkeypatch.context() as later:  # as many timeouts in a row would open the circuit of a late server
        later.setattr(time, "monotonic", lambda: now() + 601)
        for env in envs:
            _, _, terminated, truncated, info = env.step("Action: inventory")
            assert (terminated, truncated, info["fault"]["kind"]) == (False, True, "ServerTimeout")
            assert "had its 600 seconds" in info["fault"]["message"]
    for env in envs:
        env.reset(seed=0)
        env.close()
    assert (server.open, server.asked["/step"]) == (set(), 0)


@pytest.mark.slow  # a separate program
def test_who_has_set_up_no_log_reads_none(silent_url):
    code = """
        import sys
        from agentgym_gym import AgentGymEnv, errors

        env = AgentGymEnv("TextCraft", server=sys.argv[1], timeout=0.1)
        for _ in range(4):
            try:
                env.reset(seed=0)
            except errors.Fault as fault:
                print(fault)
    """
    ended = programs.run(
        [sys.executable, "-c", textwrap.dedent(code), silent_url],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert "circuit open" in ended.stdout
    assert ended.stderr == ""
