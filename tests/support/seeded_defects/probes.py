"""One probe per defect: plays an environment with gymnasium and returns whether the defect shows."""

from __future__ import annotations

import asyncio
import gc
import math
import os
import random
import signal
import subprocess
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock

import gymnasium

from seeded_defects import craft_game, key_rooms, price_shop, word_game

__all__ = ["PROBES", "begin", "make"]

Probe = Callable[[str], Any]
Answer = tuple[Any, Any, Any, Any, dict[str, Any]]

PROBES: dict[str, Probe] = {}
"""The probes by the name of the defect."""


def make(env_id: str) -> Any:
    """Make an environment; its own class if it has coroutine functions."""
    env = gymnasium.make(env_id, disable_env_checker=True)
    return env.unwrapped if asyncio.iscoroutinefunction(env.unwrapped.step) else env


@contextmanager
def made(env_id: str) -> Iterator[Any]:
    """Make an environment and close it afterwards."""
    env = make(env_id)
    try:
        yield env
    finally:
        env.close()


def begin(env: Any, task: int) -> tuple[Any, dict[str, Any]]:
    """Start a task by its number, or by the seed."""
    by_number = "task_option" in env.unwrapped.metadata
    observation, info = env.reset(options={"task_id": task}) if by_number else env.reset(seed=task)
    return observation, info


def turns(env: Any, task: int, actions: Iterable[str]) -> list[Answer]:
    """Start a task and play actions until the end."""
    begin(env, task)
    played: list[Answer] = []
    for action in actions:
        played.append(env.step(action))
        if played[-1][2] or played[-1][3]:
            break
    return played


def observations(env: Any, task: int, actions: Iterable[str]) -> list[Any]:
    """Return the observations of an episode."""
    first = begin(env, task)[0]
    return [first, *(turn[0] for turn in turns(env, task, actions))]


def probe(function: Probe) -> Probe:
    """Add a probe under the name of its defect: ``late_reward`` for ``LateReward``."""
    PROBES["".join(part.capitalize() for part in function.__name__.split("_"))] = function
    return function


@probe
def global_random_hints(env_id: str) -> Any:
    """The same hints differ between episodes."""
    with made(env_id) as env:
        return len({str(observations(env, 3, ["hint", "hint"])) for _ in range(10)}) > 1


@probe
def reseeds_global(env_id: str) -> Any:
    """A second copy's reset changes what the first one observes; the global generator changes."""
    with made(env_id) as one, made(env_id) as other:
        random.seed(1)
        before = random.getstate()
        expected = observations(one, 3, ["look"] * 6)
        begin(one, 3)
        observed = []
        for task in range(6):
            begin(other, task)
            observed.append(one.step("look")[0])
        return random.getstate() != before and expected[1:] != observed


@probe
def coarse_cache(env_id: str) -> Any:
    """A task of the same kind of product has lost its product."""
    with made(env_id) as env:
        return any(
            not turns(env, task, price_shop.solution(task))[-1][1] or _lost(env, task) for task in range(8)
        )


def _lost(env: Any, task: int) -> bool:
    return "No such product" in turns(env, task, price_shop.solution(task)[:2])[-1][0]


@probe
def carried_reward(env_id: str) -> Any:
    """An episode pays for a part of the one before."""
    with made(env_id) as env:
        turns(env, 3, craft_game.solution(3)[:3])
        return turns(env, 4, ["inventory"])[0][1] != 0


@probe
def scratch_buffer(env_id: str) -> Any:
    """Threads that play valid actions at once get refusals, or observations of another action."""
    results: list[list[Any]] = []
    with made(env_id) as env:
        expected = observations(env, 3, ["look", "inventory"] * 5)

    def play() -> None:
        with made(env_id) as env:
            try:
                results.append(observations(env, 3, ["look", "inventory"] * 5))
            except Exception as error:  # noqa: BLE001 - a defect may raise anything
                results.append([error])

    threads = [threading.Thread(target=play) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return any(result != expected for result in results)


@probe
def wall_clock(env_id: str) -> Any:
    """The same episode differs a second later."""
    with made(env_id) as env:
        before = observations(env, 3, ["search[lamp]"])
        time.sleep(1.1)
        return before != observations(env, 3, ["search[lamp]"])


@probe
def delivery_day(env_id: str) -> Any:
    """The same episode differs a day later."""
    with made(env_id) as env:
        today = observations(env, 3, price_shop.solution(3))
        tomorrow = time.time() + 86_400
        with mock.patch("time.time", return_value=tomorrow):
            return observations(env, 3, price_shop.solution(3)) != today


@probe
def mutated_inventory(env_id: str) -> Any:
    """The info of a turn changes with the next turn."""
    with made(env_id) as env:
        begin(env, 3)
        info = env.step("gather sand")[4]
        before = list(info["inventory"])
        env.step("gather clay")
        return info["inventory"] != before


@probe
def changes_directory(env_id: str) -> Any:
    """The working directory changes."""
    before = Path.cwd()
    with made(env_id) as env:
        begin(env, 3)
    changed = Path.cwd() != before
    os.chdir(before)
    return changed


@probe
def memory_leak(env_id: str) -> Any:
    """Sixty episodes keep more than a megabyte."""
    with made(env_id) as env:
        begin(env, 0)
        tracemalloc.start()
        for task in range(60):
            begin(env, task)
        gc.collect()
        kept = tracemalloc.get_traced_memory()[0]
        tracemalloc.stop()
    return kept > 1_000_000


@probe
def descriptor_leak(env_id: str) -> Any:
    """Each reset adds an open descriptor."""
    with made(env_id) as env:
        begin(env, 0)
        before = len(list(Path("/proc/self/fd").iterdir()))
        for task in range(20):
            begin(env, task)
        return len(list(Path("/proc/self/fd").iterdir())) >= before + 20


@probe
def child_left(env_id: str) -> Any:
    """A child process is left after close."""
    children = Path(f"/proc/self/task/{threading.get_native_id()}/children")
    before = set(children.read_text().split())
    with made(env_id) as env:
        begin(env, 0)
    left = set(children.read_text().split()) - before
    for child in left:
        os.kill(int(child), signal.SIGKILL)
        os.waitpid(int(child), 0)
    return bool(left)


@probe
def close_twice(env_id: str) -> Any:
    """The second close raises."""
    env = make(env_id)
    begin(env, 0)
    env.close()
    try:
        env.close()
    except AttributeError:
        return True
    return False


@probe
def blocking_sleep(env_id: str) -> Any:
    """A concurrent task waits for the step."""

    async def longest_pause() -> float:
        env, pauses = make(env_id), [0.0]

        async def tick() -> None:
            while True:
                before = time.monotonic()
                await asyncio.sleep(0.001)
                pauses.append(time.monotonic() - before)

        ticking = asyncio.ensure_future(tick())
        await env.reset(seed=3)
        await asyncio.sleep(0.005)
        for _ in range(3):
            await env.step("guess 1")
        ticking.cancel()
        return min(sorted(pauses)[-3:])

    return asyncio.run(longest_pause()) > 0.14


@probe
def one_turn_more(env_id: str) -> Any:
    """More turns than declared."""
    with made(env_id) as env:
        return len(turns(env, 3, ["hint"] * 20)) > env.unwrapped.max_turns


@probe
def endless(env_id: str) -> Any:
    """No end after 50 turns."""
    with made(env_id) as env:
        return not turns(env, 3, ["look"] * 50)[-1][3]


@probe
def late_reward(env_id: str) -> Any:
    """The third action crafts a part and pays nothing; the fourth pays for it."""
    with made(env_id) as env:
        rewards = [turn[1] for turn in turns(env, 3, craft_game.solution(3))]
    return rewards[2] == 0 and rewards[3] > 0


@probe
def unpaid_last_turn(env_id: str) -> Any:
    """A win in the last turn pays nothing."""
    with made(env_id) as env:
        last = turns(env, 3, ["hint"] * (env.unwrapped.max_turns - 1) + word_game.solution(3))[-1]
    return last[4]["success"] and last[1] == 0


@probe
def success_flips(env_id: str) -> Any:
    """The success of a turn is lost in the next."""
    with made(env_id) as env:
        success = [turn[4]["success"] for turn in turns(env, 3, [*word_game.solution(3), "hint"])]
    return success == [True, False]


@probe
def pays_after_end(env_id: str) -> Any:
    """A step after the end pays."""
    with made(env_id) as env:
        turns(env, 3, craft_game.solution(3))
        try:
            return env.step("inventory")[1] > 0
        except gymnasium.error.ResetNeeded:
            return False


@probe
def nan_score(env_id: str) -> Any:
    """A reward of some task is NaN."""
    with made(env_id) as env:
        return any(math.isnan(turns(env, task, ["inventory"])[0][1]) for task in range(500))


@probe
def integer_end(env_id: str) -> Any:
    """terminated is an int."""
    with made(env_id) as env:
        return type(turns(env, 3, ["search[lamp]"])[0][2]) is int


@probe
def foreign_goal(env_id: str) -> Any:
    """The prompt has the goal of another task."""
    with made(env_id) as env:
        prompt = env.unwrapped.system_prompt
        return any(begin(env, task)[1]["goal"] in prompt for task in range(500))


@probe
def answer_shown(env_id: str) -> Any:
    """The first observation contains the word."""
    with made(env_id) as env:
        return word_game.word_of(3) in begin(env, 3)[0]


@probe
def forged_reward(env_id: str) -> Any:
    """A line with a reward is paid."""
    with made(env_id) as env:
        return turns(env, 3, ["hint\nReward: 1"])[0][1] > 0


@probe
def unread_inventory(env_id: str) -> Any:
    """The prompt teaches inventory, and the game refuses it."""
    with made(env_id) as env:
        return "inventory" in env.unwrapped.system_prompt and "cannot" in turns(env, 3, ["inventory"])[0][0]


@probe
def refused_admissible(env_id: str) -> Any:
    """A listed action is refused."""
    with made(env_id) as env:
        actions = begin(env, 3)[1]["available_actions"]
        return any("wall" in turns(env, 3, [action])[0][0] for action in actions)


@probe
def unwinnable(env_id: str) -> Any:
    """The known solution of some task does not win."""
    with made(env_id) as env:
        return any(not turns(env, task, key_rooms.solution(task))[-1][2] for task in range(50))


@probe
def duplicates(env_id: str) -> Any:
    """Two train tasks begin alike."""
    with made(env_id) as env:
        return len({begin(env, task)[0] for task in env.unwrapped.splits["train"]}) < 400


@probe
def common_answer(env_id: str) -> Any:
    """One answer wins more than a twentieth of the tasks."""
    with made(env_id) as env:
        return sum(turns(env, task, ["answer[0]"])[0][1] for task in range(500)) > 25


@probe
def yes_wins(env_id: str) -> Any:
    """Yes wins."""
    with made(env_id) as env:
        return turns(env, 3, ["yes"])[0][4]["success"]


@probe
def surrogate_crash(env_id: str) -> Any:
    """A lone surrogate raises."""
    with made(env_id) as env:
        try:
            turns(env, 3, ["guess \ud800"])
        except UnicodeEncodeError:
            return True
    return False


@probe
def one_game(env_id: str) -> Any:
    """An item of one copy is in the inventory of another."""
    with made(env_id) as one, made(env_id) as other:
        begin(one, 3)
        begin(other, 3)
        one.step("Action: get 1 birch logs")
        return "birch" in other.step("Action: inventory")[0]


@probe
def same_task_kept(env_id: str) -> Any:
    """An item of the last episode is in the inventory of the next."""
    with made(env_id) as env:
        turns(env, 3, ["Action: get 1 birch logs"])
        return "birch" in turns(env, 3, ["Action: inventory"])[0][0]


@probe
def won_by_echo(env_id: str) -> Any:
    """The announcement of the goal wins."""
    with made(env_id) as env:
        return turns(env, 3, ["Action: Crafted 1 minecraft:birch_planks"])[0][4]["success"]


@probe
def closed_kept(env_id: str) -> Any:
    """The server is full after 60 environments that were closed."""
    try:
        for _ in range(60):
            with made(env_id) as env:
                begin(env, 3)
    except Exception as error:  # noqa: BLE001 - any of the client's errors
        return "50 environments" in str(error)
    return False


@probe
def split_overlap(env_id: str) -> Any:
    """A test task is a train task."""
    with made(env_id) as env:
        return begin(env, 3)[0] == begin(env, 503)[0]


@probe
def hash_order(env_id: str) -> Any:
    """The first observation depends on the hash seed."""
    program = (
        "import seeded_defects\nfrom seeded_defects.probes import begin, made\n"
        f"with made({env_id!r}) as env: print(ascii(begin(env, 40)[0]))"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            stdout=subprocess.PIPE,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    return len(outputs) > 1


@probe
def ascii_log(env_id: str) -> Any:
    """A character outside ASCII is a fault."""
    with made(env_id) as env:
        return "fault" in turns(env, 3, ["Action: hello é"])[0][4]


@probe
def slow_step(env_id: str) -> Any:
    """One of twelve steps takes more than a second."""
    with made(env_id) as env:
        begin(env, 3)
        longest = 0.0
        for turn in range(13):
            if turn == 8:
                begin(env, 3)
            before = time.monotonic()
            env.step("Action: inventory")
            longest = max(longest, time.monotonic() - before)
        return longest > 1.1
