"""A program that gets a Ctrl-C at a random point of many resets or steps, and checks what follows each.

``python interrupted_program.py URL NAME KIND OPERATION COUNT SEED`` prints a line of JSON: the number of
interrupts during the operation, which is COUNT, and what was wrong after one. The server shows what stays
open.
"""

from __future__ import annotations

import asyncio
import importlib
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

import gymnasium

import agentgym_gym
from agentgym_gym import AgentGymEnv, AsyncAgentGymEnv

TASK = 3
LATE_SECONDS = 10
MOST = 100
"""The most attempts for each interrupt: one may come too late."""


class Sync:
    """An environment that waits in the calling thread."""

    def __init__(self, name: str, url: str) -> None:
        self.env: Any = AgentGymEnv(name, server=url)

    def reset(self) -> tuple[Any, ...]:
        return (self.env.reset(options={"task_id": TASK})[0],)

    def step(self, action: str) -> tuple[Any, ...]:
        observation, reward, terminated, _, info = self.env.step(action)
        return observation, float(reward), bool(terminated), "fault" in info

    def close(self) -> None:
        self.env.close()


class Awaited(Sync):
    """An environment with coroutines, each run by `asyncio.run`."""

    def __init__(self, name: str, url: str) -> None:
        self.env = AsyncAgentGymEnv(name, server=url)

    def reset(self) -> tuple[Any, ...]:
        return (self.run(self.env.reset(options={"task_id": TASK}))[0],)

    def step(self, action: str) -> tuple[Any, ...]:
        observation, reward, terminated, _, info = self.run(self.env.step(action))
        return observation, float(reward), bool(terminated), "fault" in info

    def close(self) -> None:
        self.run(self.env.close())

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        try:
            return asyncio.run(work)
        except asyncio.CancelledError as error:
            # asyncio forgets a Ctrl-C that comes just after it has installed its handler, which cancels.
            raise KeyboardInterrupt from error
        except RuntimeError as error:
            # asyncio raises this for a Ctrl-C while it shuts the event loop down.
            if "Event loop stopped" in str(error):
                raise KeyboardInterrupt from error
            raise


class Vector(Sync):
    """Two environments in a vector."""

    def __init__(self, name: str, url: str) -> None:
        self.env = gymnasium.make_vec(f"agentgym/{name}-v0", num_envs=2, server=url).unwrapped

    def reset(self) -> tuple[Any, ...]:
        first, second = self.env.reset(options={"task_id": TASK})[0]
        return (first if first == second else (first, second),)

    def step(self, action: str) -> tuple[Any, ...]:
        shown, rewards, terminated, _, infos = self.env.step([action, action])
        if shown[0] != shown[1]:
            return tuple(shown)
        return shown[0], float(rewards[0]), bool(terminated[0]), "fault" in infos


KINDS = {"sync": Sync, "awaited": Awaited, "vector": Vector}


def solution(name: str, url: str) -> list[str]:
    """Return replies that win the task: the oracle's, or three times the same on the tests' own server."""
    with AgentGymEnv(name, server=url, on_unknown="refuse") as env:
        observation, info = env.reset(options={"task_id": TASK})
        if observation.startswith("Goal: craft t"):
            return ["Action: inventory"] * 3
        module, _, path = str(agentgym_gym.find(name).oracle).partition(":")
        oracle, replies, over = getattr(importlib.import_module(module), path)(), list[str](), False
        oracle.reset(env, observation, info)
        while not over:
            action = oracle.act(observation, info)
            replies.append(env.action_format.render(action))
            observation, _, terminated, truncated, info = env.step(action)
            over = terminated or truncated
        assert info["success"]
        return replies


def interrupt(operation: Callable[[], object], span: float, moments: random.Random) -> bool:
    """Run an operation with a Ctrl-C at a random moment; return whether it came before the end.

    Python ignores one in a finalizer, where nothing can be raised; it counts as too late.

    Args:
        operation: The operation.
        span: The longest time to the Ctrl-C, in seconds.
        moments: Draws the moment.

    Raises:
        RuntimeError: The operation kept the Ctrl-C for itself.
    """
    came = False
    ignored = list[object]()
    sys.unraisablehook = lambda error: ignored.append(error.object)
    sending = threading.Timer(moments.uniform(0, span), os.kill, (os.getpid(), signal.SIGINT))
    try:
        sending.start()
        operation()
        came = True
        sending.join()  # it comes too late
        time.sleep(0 if ignored else LATE_SECONDS)
        if not ignored:
            raise RuntimeError("a Ctrl-C was swallowed")
    except KeyboardInterrupt:
        pass
    finally:
        sys.unraisablehook = sys.__unraisablehook__
    sending.join()
    return not came


def main() -> int:
    """Run the program."""
    url, name, kind, operation, count, seed = sys.argv[1:]
    moments = random.Random(int(seed))  # noqa: S311 - no secret
    replies = solution(name, url)
    make = KINDS[kind]

    def play(client: Sync) -> list[tuple[Any, ...]]:
        return [client.reset(), *(client.step(reply) for reply in replies)]

    client = make(name, url)
    right = play(client)
    began = time.perf_counter()
    for _ in range(5):
        client.reset()
    span = (time.perf_counter() - began) / 5 * 1.5
    wrong, hits, clients = list[str](), 0, [client]
    for number in range(MOST * int(count)):
        if hits == int(count):
            break
        try:
            if operation == "reset":
                client = make(name, url)
                clients.append(client)
                hit = interrupt(client.reset, span, moments)
            else:
                client.reset()
                client.step(replies[0])
                hit = interrupt(partial(client.step, replies[1 % len(replies)]), span, moments)
            hits, span = hits + hit, span * (1.05 if hit else 0.95)
            played = play(client)
            if played != right:
                wrong.append(f"{number}: {played}")
        except Exception as error:  # noqa: BLE001 - it is the finding
            wrong.append(f"{number}: {error!r}")
        if operation == "reset" and number % 3:
            clients.pop().close()  # the others at exit
    sys.stdout.write(json.dumps({"hits": hits, "wrong": wrong}) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
