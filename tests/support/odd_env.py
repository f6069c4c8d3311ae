"""A text environment that does what its actions name: for tests of isolation."""

from __future__ import annotations

import contextlib
import ctypes
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import gymnasium
import numpy as np


class Unreadable(RuntimeError):
    """An error that another process can write but not read."""

    def __init__(self, one, two):
        super().__init__(f"{one} {two}")


class Hook:
    """A value that would run code in a process that unpickles it."""

    def __reduce__(self):
        return os._exit, (9,)


class Hooked(Hook, RuntimeError):
    """The same as an error."""


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
        if name == "returns":
            parts = self._returns(argument)
            return "returned", parts["reward"], parts["terminated"], parts["truncated"], {}
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

    def _info(self, _):
        """Return every kind of value."""
        plain = {
            "none": None,
            "numbers": (1, 2.5, True, 2j, np.float32(0.5), np.bool_(True)),
            "bytes": b"\x00\xff",
            "array": np.arange(6).reshape(2, 3),
            "nothing": np.zeros((0, 2), dtype=np.float16),
            "days": np.array(["2026-11-29"], dtype="datetime64[D]"),
            "by number": {1: ["half \ud83d", {"~": "tag"}], (1, 2): {3}},
        }
        inner = {"kept": 1, "hook": Hook(), "list": [Hook()]}
        inner["itself"] = inner
        other = {"objects": np.array([Hook()]), "inner": inner, "function": print, "digits": 10**5_000}
        return "info", {**plain, **other}

    def _hooked(self, _):
        raise Hooked

    def _returns(self, name):
        """Return a reward or an end that is none."""
        parts = {"reward": 1.0, "terminated": False, "truncated": False}
        which, _, text = name.partition("=")
        parts[which] = eval(text, {"np": np})  # noqa: S307 - of a test
        return parts

    def _hold(self, file):
        """Make a file and keep the interpreter's lock."""
        Path(file).touch()
        ctypes.PyDLL(None).sleep(1_000)

    def _programs(self, file):
        """Start programs in this session and in one of its own, and write their process ids."""
        started = [
            subprocess.Popen(["sleep", "1000"], start_new_session=own)  # noqa: S607 - anywhere
            for own in (False, True)
        ]
        Path(file).write_text(" ".join(str(each.pid) for each in started), "utf-8")
        return "started", {}

    def _leave_helper(self, file):
        """Crash after starting a helper that keeps every file open."""
        helper = os.fork()
        if not helper:
            os.setsid()
            time.sleep(1_000)
        Path(file).write_text(str(helper), "utf-8")
        os.kill(os.getpid(), signal.SIGSEGV)

    def _garble(self, content):
        """Write something other than a reply to the sockets of this process, and wait."""
        text = content.encode()
        for descriptor in range(3, 64):
            with contextlib.suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode):
                    os.write(descriptor, len(text).to_bytes(8, "big") + text)
        time.sleep(1_000)

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
