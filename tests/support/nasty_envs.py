"""Text environments that misbehave, each in its own way, in the episodes of odd seeds."""

from __future__ import annotations

import asyncio
import os
import random
import secrets
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np


class Nasty(gymnasium.Env):
    """Two turns that pay 1 each. What goes wrong at odd seeds is chosen by name."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, wrong: str = "", folder: str = "/") -> None:
        self.wrong, self.folder = wrong, folder
        self.odd, self.turn = False, 0
        if wrong == "make exit":
            sys.exit("no licence")
        if wrong == "make os._exit":
            os._exit(7)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start, or not."""
        super().reset(seed=seed)
        self.odd, self.turn = bool((seed or 0) % 2), 0
        if self.odd:
            match self.wrong:
                case "reset exit":
                    sys.exit(3)
                case "reset None":
                    return None
                case "reset info":
                    return "Begin.", None
        return "Begin.", {"task_id": "level-1"} if self.wrong == "task_id" else {}

    def step(self, action: str) -> Any:
        """Take a turn, or not."""
        self.turn += 1
        answer = ("Go on.", 1.0, self.turn == 2, False, {"task_id": "level-1"})
        if self.odd and self.wrong in ENDS:
            ENDS[self.wrong](self.folder)
        return ANSWERS[self.wrong](*answer) if self.odd and self.wrong in ANSWERS else answer


def _interrupt(_: str) -> None:
    raise KeyboardInterrupt


ENDS: dict[str, Callable[[str], object]] = {
    "step exit": lambda _: sys.exit(3),
    "step chdir": os.chdir,
    "step os._exit": lambda _: os._exit(9),
    "step abort": lambda _: os.abort(),
    "step hang": lambda _: time.sleep(600),
    "step interrupt": _interrupt,
}
"""What a step does to the program, by what is wrong."""

ANSWERS: dict[str, Callable[..., object]] = {
    "step info": lambda *answer: (*answer[:4], None),
    "step four": lambda *answer: answer[:4],
    "step six": lambda *answer: (*answer, None),
    "step nan": lambda text, _, *more: (text, float("nan"), *more),
    "step reward": lambda text, _, *more: (text, "much", *more),
    "step bytes": lambda _, *more: (b"Go on.", *more),
    "step array": lambda _, *more: (np.zeros(2), *more),
}
"""What a step returns, by what is wrong."""


class Unseeded(gymnasium.Env):
    """Its reset takes nothing."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    def reset(self) -> Any:  # type: ignore[override]
        """Start."""
        return "Begin.", {}

    def step(self, action: str) -> Any:
        """End."""
        return "End.", 1.0, True, False, {}


class Awaited(gymnasium.Env):
    """Its methods are coroutine functions."""

    observation_space = action_space = gymnasium.spaces.Text(100)

    async def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start."""
        await asyncio.sleep(0)
        return f"Begin {seed}.", {}

    async def step(self, action: str) -> Any:
        """End."""
        await asyncio.sleep(0.01)
        return "End.", 1.0, True, False, {"success": True}


class Wrapped(gymnasium.Wrapper):
    """A wrapper that is registered as an environment: the metadata of its class is a property."""

    def __init__(self, wrong: str = "") -> None:
        super().__init__(Nasty(wrong))


class EightSessions(Nasty):
    """Its server has eight sessions."""

    capacity = 8
    most = 0
    _lock = threading.Lock()
    _open = 0

    def __init__(self) -> None:
        super().__init__()
        with self._lock:
            if EightSessions._open == self.capacity:
                raise ConnectionRefusedError("all sessions are in use")
            EightSessions._open += 1
            EightSessions.most = max(EightSessions.most, EightSessions._open)

    def step(self, action: str) -> Any:
        """Take some time."""
        time.sleep(0.01)
        return super().step(action)

    def close(self) -> None:
        """End the session."""
        with self._lock:
            EightSessions._open -= 1


class OneAtATime(Nasty):
    """Plays only while no other is open in its process."""

    _open = 0

    def __init__(self) -> None:
        super().__init__()
        OneAtATime._open += 1

    def step(self, action: str) -> Any:
        """Refuse a concurrent episode."""
        if OneAtATime._open > 1:
            raise RuntimeError("another environment is open in this process")
        return super().step(action)

    def close(self) -> None:
        """Make room."""
        OneAtATime._open -= 1


class Somewhere(Nasty):
    """Observes where it is played."""

    @property
    def system_prompt(self) -> str:
        """Returns where it was created."""
        return f"You are in {os.getpid()}."

    def step(self, action: str) -> Any:
        """Return the process."""
        return (f"{os.getpid()} {Path.cwd()}", *super().step(action)[1:])


class HangsBesideAnother(OneAtATime):
    """Hangs while another is open in its process."""

    def step(self, action: str) -> Any:
        """Wait for good."""
        time.sleep(600 if OneAtATime._open > 1 else 0)
        return super().step(action)


class OneSession(OneAtATime):
    """Says so."""

    capacity = 1


class GlobalRandom(Nasty):
    """Seeds the generator of a module, which all environments of a process share."""

    generator: Any = random

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start."""
        self.generator.seed(seed)
        return super().reset(seed=seed, options=options)

    def step(self, action: str) -> Any:
        """Draw."""
        return (f"You drew {self.generator.random()}.", *super().step(action)[1:])


class NoSeed(Nasty):
    """Draws without a seed."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start."""
        return f"You drew {secrets.token_hex()}.", super().reset(seed=seed, options=options)[1]


class MainThread(Nasty):
    """Sets a handler of a signal."""

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start."""
        signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        return super().reset(seed=seed, options=options)


class Slow(Nasty):
    """Takes its time."""

    def step(self, action: str) -> Any:
        """Sleep."""
        time.sleep(0.1)
        return super().step(action)


class Fails(Nasty):
    """Fails at its reset with the error of another library."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Fail."""
        raise ValueError(self.text)


class Says:
    """An agent that replies with a word."""

    name = "says"

    def reset(self, env: Any, observation: str, info: dict[str, Any]) -> None:
        """Begin."""

    def act(self, observation: str, info: dict[str, Any]) -> str:
        """Reply."""
        return "go"


for _class in (
    *(Nasty, Unseeded, Awaited, Wrapped, EightSessions, OneAtATime, Somewhere),
    *(HangsBesideAnother, OneSession, GlobalRandom, NoSeed, MainThread, Slow, Fails),
):
    gymnasium.register(f"nasty/{_class.__name__}-v0", _class)
