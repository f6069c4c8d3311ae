"""A text environment that does what its actions name: for tests of isolation."""

from __future__ import annotations

import ctypes
import os
import random
import sys
import threading
import time
from pathlib import Path

import gymnasium


class Unreadable(RuntimeError):
    """An error that another process can write but not read."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class Odd(gymnasium.Env):
    """Each action names what happens."""

    observation_space = gymnasium.spaces.Text(1_000)
    action_space = gymnasium.spaces.Text(1_000)

    def __init__(self, capacity=None, fails=False, log=None):
        self.capacity = capacity
        self.log = log
        self.threads = [threading.get_ident()]
        if fails:
            sys.exit(3)

    @property
    def system_prompt(self):
        """The rules."""
        return "Do odd things."

    def reset(self, *, seed=None, options=None):
        self.threads.append(threading.get_ident())
        random.seed(seed)  # as some libraries do
        return f"seed {seed}", {}

    def step(self, action):
        self.threads.append(threading.get_ident())
        name, _, argument = action.partition(" ")
        observation, info = getattr(self, f"_{name}")(argument)
        return observation, 1.0, name == "end", False, info

    def close(self):
        self.threads.append(threading.get_ident())
        if self.log:
            with Path(self.log).open("a") as file:
                file.write(f"{len(set(self.threads))}\n")

    def _say(self, text):
        return text, {}

    def _end(self, _):
        return "end", {}

    def _draw(self, _):
        time.sleep(0.002)
        return str(random.random()), {}  # noqa: S311 - a game

    def _pid(self, _):
        return str(os.getpid()), {}

    def _exit(self, code):
        sys.exit(int(code))

    def _vanish(self, code):
        os._exit(int(code))

    def _crash(self, _):
        ctypes.string_at(0)

    def _sleep(self, seconds):
        time.sleep(float(seconds))
        return "slept", {}

    def _hang(self, file):
        """Make a file, which shows that the call has started, and do not return."""
        Path(file).touch()
        time.sleep(1_000)

    def _print(self, text):
        print(text, flush=True)  # noqa: T201 - as libraries do
        return "printed", {}

    def _lock(self, _):
        return "locked", {"lock": threading.Lock(), "kept": 1}

    def _unreadable(self, _):
        raise Unreadable("one", "two")

    def _fill(self, megabytes):
        return str(len(bytearray(int(megabytes) * 2**20))), {}

    def _chdir(self, folder):
        os.chdir(folder)
        return str(Path.cwd()), {}

    def _input(self, _):
        return repr(sys.stdin.readline()), {}


class AwaitedOdd:
    """The same with coroutines, and none of gymnasium's classes."""

    spec = None

    def __init__(self):
        self._env = Odd()

    async def reset(self, *, seed=None, options=None):
        return self._env.reset(seed=seed, options=options)

    async def step(self, action):
        return self._env.step(action)

    async def close(self):
        self._env.close()


gymnasium.register("test/Odd-v0", Odd)
