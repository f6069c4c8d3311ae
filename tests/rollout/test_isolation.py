"""Where an environment runs: the event loop, a separate thread, or a separate process."""

from __future__ import annotations

import asyncio
import functools
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest

import odd_env
import programs
from agentgym_gym.errors import BadOption
from agentgym_gym.rollout import Pool, TextAdapter
from clock import wait_until
from process_tree import alive

ODD = "odd_env:test/Odd-v0"
WITH_THREADS = ("thread", "process")
A_PROCESS = pytest.param("process", marks=pytest.mark.slow)  # one is started


def played(*actions, env=ODD, env_kwargs=None, **options):
    """Play actions, each in a separate episode, in one pool; return the episodes."""

    async def work():
        async with Pool(env, env_kwargs, **options) as pool:
            episodes = []
            for number, action in enumerate(actions):
                async with pool.episode(seed=number) as episode:
                    if not episode.over:
                        await episode.step(action)
                episodes.append(episode)
            return episodes

    return asyncio.run(work())


@pytest.mark.parametrize("isolate", [None, *WITH_THREADS])
def test_an_episode_is_the_same_everywhere(isolate):
    (episode,) = played("say hello", isolate=isolate)
    assert episode.fault is None
    assert [message["content"] for message in episode.chat()] == [
        "Do odd things.",
        "seed 0",
        "say hello",
        "hello",
    ]
    record = episode.record(agent="me")
    assert (record.env_id, record.task_id, record.return_) == ("test/Odd-v0", 0, 1.0)


@pytest.mark.parametrize("isolate", [None, "thread", A_PROCESS])
def test_an_environment_lives_in_one_thread(isolate, tmp_path):
    log = tmp_path / "closed"
    played(*["say x"] * 3, env_kwargs={"log": str(log)}, isolate=isolate)
    assert log.read_text() == "1\n"


def test_a_process_is_reused_and_keeps_what_it_does_to_itself(tmp_path, capfd):
    """Its output and input do not disturb the messages, and `os.chdir` moves no other process."""
    before = Path.cwd()
    actions = ("pid", "print hello", "input", "lock", f"chdir {tmp_path}", "pid")
    first, printed, read, locked, moved, last = played(*actions, isolate="process")
    assert first.observation == last.observation != str(os.getpid())
    assert (printed.fault, read.fault, read.observation) == (None, None, "''")
    captured = capfd.readouterr()
    assert (captured.out, captured.err) == ("", "hello\n")
    assert (locked.fault, dict(locked.info)) == (None, {"kept": 1})  # a lock cannot be sent
    assert moved.observation == str(tmp_path)
    assert Path.cwd() == before


@pytest.mark.slow
def test_the_end_of_a_process_is_a_fault_of_one_episode():
    ends = {
        "exit 3": ("RuntimeError", "SystemExit: 3"),
        "vanish 7": ("EnvProcessDied", "exited with code 7"),
        "crash": ("EnvProcessDied", "killed by SIGSEGV"),
        "unreadable": ("Unreadable", "one two"),
        "nothing": ("AttributeError", "_nothing"),
    }
    actions = [action for end in ends for action in ("say x", end)]
    episodes = played(*actions, "say x", isolate="process")
    for episode, (kind, message) in zip(episodes[1::2], ends.values(), strict=True):
        assert episode.fault["kind"] == kind
        assert message in episode.fault["message"]
        assert episode.transient
    assert [episode.fault for episode in episodes[::2]] == [None] * (len(ends) + 1)


def test_sys_exit_in_a_thread_is_a_fault_of_one_episode():
    fault, last = played("exit 3", "say x", isolate="thread")
    assert fault.fault == {"kind": "RuntimeError", "message": "SystemExit: 3"}
    assert last.fault is None


@pytest.mark.parametrize("isolate", [None, "thread", A_PROCESS])
def test_a_constructor_that_exits_is_a_fault(isolate):
    episodes = played("say x", "say x", env_kwargs={"fails": True}, isolate=isolate)
    assert [episode.fault["message"] for episode in episodes] == ["SystemExit: 3"] * 2


@pytest.mark.slow
def test_a_hang_is_a_fault_and_its_process_is_killed():
    async def work():
        async with Pool(ODD, isolate="process", timeout=5) as pool:
            async with pool.episode() as episode:
                pid = int((await episode.step("pid")).observation)
                episode._worker.timeout = 0.2
                began = time.monotonic()
                await episode.step("sleep 60")
            assert time.monotonic() - began < 10
            wait_until(lambda: not alive({pid}))
            async with pool.episode() as after:
                await after.step("say x")
            return episode.fault, after.fault

    fault, after = asyncio.run(work())
    assert fault == {"kind": "TimeoutError", "message": "no answer from the environment in 0.2 s"}
    assert after is None


@pytest.mark.slow
def test_a_cancelled_step_kills_its_process_and_no_other():
    async def work():
        async with Pool(ODD, isolate="process") as pool:
            other = await pool.episode().begin()
            pids = []

            async def playing():
                async with pool.episode() as episode:
                    pids.append(int((await episode.step("pid")).observation))
                    await episode.step("sleep 60")

            task = asyncio.create_task(playing())
            while not pids:  # noqa: ASYNC110 - no event of the environment can be awaited
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.05)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            wait_until(lambda: not alive({pids[0]}))
            assert (await other.step("say x")).observation == "x"
            await other.end()

    asyncio.run(work())


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the limit of address space is enforced on Linux")
def test_a_limit_of_memory_is_a_fault():
    fault, last = played("fill 4000", "fill 1", isolate="process", memory_limit=2 * 2**30)
    assert fault.fault["kind"] == "MemoryError"
    assert last.fault is None


@pytest.mark.slow
def test_a_global_generator_is_everybody_s_but_in_processes():
    """Four episodes at once draw as one at a time."""

    async def draws(at_once):
        async with Pool(ODD, isolate="process") as pool:

            async def play(seed):
                async with pool.episode(seed=seed) as episode:
                    return [(await episode.step("draw")).observation for _ in range(5)]

            if at_once:
                return await asyncio.gather(*map(play, range(4)))
            return [await play(seed) for seed in range(4)]

    assert asyncio.run(draws(at_once=True)) == asyncio.run(draws(at_once=False))


@pytest.mark.parametrize("isolate", [None, "loop", "thread", A_PROCESS])
def test_coroutines_are_played_everywhere(isolate):
    (episode,) = played("say hello", env=odd_env.AwaitedOdd, isolate=isolate)
    assert (episode.fault, episode.observation) == (None, "hello")


def test_the_loop_cannot_await_what_blocks():
    (episode,) = played("say x", isolate="loop")
    assert isinstance(episode.error, BadOption)
    assert "use 'thread' or 'process'" in episode.fault["message"]


@pytest.mark.parametrize("isolate", ["processes", "", 3])
def test_an_invalid_isolation(isolate):
    with pytest.raises(BadOption, match="should be one of loop, thread, process"):
        Pool(ODD, isolate=isolate)


def test_a_function_that_cannot_be_sent_is_named():
    (episode,) = played("say x", env=lambda: odd_env.Odd(None), isolate="process")
    assert episode.fault["kind"] == "BadOption"
    assert "isolate='process' cannot send <function" in episode.fault["message"]


@pytest.mark.slow
def test_a_partial_function_can_be_sent():
    (episode,) = played("say x", env=functools.partial(odd_env.Odd, 3), isolate="process")
    assert episode.fault is None


@pytest.mark.slow  # a separate program
def test_a_class_of_a_script_is_named():
    program = """
        import asyncio
        from agentgym_gym.rollout import Pool
        from odd_env import Odd

        class Mine(Odd):
            pass

        async def main():
            async with Pool(Mine, isolate="process") as pool, pool.episode() as episode:
                print(episode.fault["kind"], episode.fault["message"])

        asyncio.run(main())
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        env=programs.environment(),
        capture_output=True,
        text=True,
        check=True,
    )
    assert ended.stdout.startswith("BadOption isolate='process' cannot import the maker of the environment")
    assert "define it in a module" in ended.stdout


def test_attributes_are_read_in_the_process():
    async def work():
        async with Pool(ODD, {"capacity": 3}, isolate="process") as pool, pool.episode() as episode:
            env = episode.env
            assert (env.capacity, env.system_prompt, env.unwrapped) == (3, "Do odd things.", env)
            assert env.action_space == odd_env.Odd.action_space
            assert env.observation_space == odd_env.Odd.observation_space
            assert env.get_wrapper_attr("capacity") == 3
            assert not hasattr(env, "nothing")
            assert episode.facts.capacity == 3

    asyncio.run(work())


def test_a_process_ends_with_the_program_even_in_the_middle_of_a_call(tmp_path):
    begun = tmp_path / "begun"
    program = """
        import asyncio
        import sys
        from agentgym_gym.rollout import Pool

        async def main():
            pool = Pool("odd_env:test/Odd-v0", isolate="process")
            episode = await pool.episode().begin()
            print((await episode.step("pid")).observation, flush=True)
            await episode.step(f"hang {sys.argv[1]}")

        asyncio.run(main())
    """
    running = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), str(begun)],
        env=programs.environment(),
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        pid = int(running.stdout.readline())
        wait_until(begun.exists, 60)
        assert alive({pid})
    finally:
        running.kill()
        running.communicate()
    wait_until(lambda: not alive({pid}))


@pytest.mark.slow  # a separate program
def test_ctrl_c_ends_a_program_with_processes_in_silence(tmp_path):
    begun = tmp_path / "begun"
    program = """
        import asyncio
        import sys
        from agentgym_gym.rollout import Pool

        async def main():
            async with Pool("odd_env:test/Odd-v0", isolate="process") as pool, pool.episode() as episode:
                print((await episode.step("pid")).observation, flush=True)
                await episode.step(f"hang {sys.argv[1]}")

        try:
            asyncio.run(main())
        except KeyboardInterrupt:
            print("interrupted")
    """
    running = programs.start(
        [sys.executable, "-c", textwrap.dedent(program), str(begun)],
        env=programs.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    try:
        pid = int(running.stdout.readline())
        wait_until(begun.exists, 60)
        os.killpg(running.pid, signal.SIGINT)
        try:
            out, err = running.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            # CPython itself loses a Ctrl-C that comes just before `asyncio.run` waits: the next one counts.
            os.killpg(running.pid, signal.SIGINT)
            out, err = running.communicate(timeout=60)
    finally:
        running.kill()
        running.communicate()
    assert (out, err) == ("interrupted\n", "")
    wait_until(lambda: not alive({pid}))


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_does_not_end_its_parent_s_processes():
    async def work():
        async with Pool(ODD, isolate="process") as pool:
            episode = await pool.episode().begin()
            child = os.fork()
            if not child:
                os._exit(0)
            os.waitpid(child, 0)  # noqa: ASYNC222 - it ends at once
            turn = await episode.step("say x")
            await episode.end()
            return turn.observation

    assert asyncio.run(work()) == "x"


def lake():
    """FrozenLake as text."""
    import gymnasium

    return TextAdapter(gymnasium.make("FrozenLake-v1", is_slippery=False), act={"down": 1, "right": 2})


@pytest.mark.slow
def test_an_adapted_environment_in_a_process():
    (episode,) = played("down", env=lake, isolate="process")
    assert (episode.fault, episode.observation) == (None, "4")


def test_threads_end_with_their_environments():
    before = set(threading.enumerate())  # also of environments that hang, of earlier tests
    played("say x", isolate="thread")
    wait_until(lambda: not [t for t in threading.enumerate() if t.name == "agentgym-env" and t not in before])
