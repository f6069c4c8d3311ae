"""Watches the global state of a process while an environment is made and played."""

from __future__ import annotations

import logging
import os
import pickle
import random
import signal
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from agentgym_gym.rollout._env_facts import attribute_of, describe_env
from agentgym_gym.rollout._workers import BlockingEnv, close_env

__all__ = ["STATES", "GlobalState", "WatchedEnv", "WatchedMaker"]

STATES: Mapping[str, str] = {
    "the global generator of random": "random.getstate()",
    "the global generator of numpy": "str(numpy.random.get_state(legacy=False))",
    "the working directory": "os.getcwd()",
    "os.environ": "dict(os.environ)",
    "the signal handlers": "[signal.getsignal(each) for each in sorted(signal.valid_signals())]",
    "warnings.filters": "list(warnings.filters)",
    "the level of the root logger": "logging.root.level",
    "sys.path": "list(sys.path)",
}
"""Expressions of the parts of the global state, for programs, too."""

_MODULES = {
    "random": random,
    "numpy": np,
    "os": os,
    "signal": signal,
    "warnings": warnings,
    "logging": logging,
    "sys": sys,
}


class GlobalState:
    """The global state of this process at some time."""

    def __init__(self) -> None:
        self._parts = {name: eval(text, dict(_MODULES)) for name, text in STATES.items()}  # noqa: S307 - ours
        self._generators = random.getstate(), np.random.get_state()  # noqa: NPY002 - the global one

    def changes(self, before: GlobalState) -> dict[str, str]:
        """Return the parts that differ from an earlier state, with their new values."""
        changed = {}
        for name, value in self._parts.items():
            old = before._parts[name]
            if name == "sys.path":
                value = value[: len(old)]  # noqa: PLW2901 - appending is allowed
            if value == old:
                continue
            changed[name] = ""
            if name == "os.environ":
                names = sorted(key for key in {**old, **value} if old.get(key) != value.get(key))
                changed[name] = ", ".join(names)
            elif name in {"the working directory", "the level of the root logger"}:
                changed[name] = str(value)
        return changed

    def restore(self) -> None:
        """Set this state again, except for the path of modules."""
        random.setstate(self._generators[0])
        np.random.set_state(self._generators[1])  # noqa: NPY002 - the global one
        os.chdir(self._parts["the working directory"])
        os.environ.clear()
        os.environ.update(self._parts["os.environ"])
        handlers = zip(sorted(signal.valid_signals()), self._parts["the signal handlers"], strict=True)
        for number, handler in handlers:
            if handler is not None and signal.getsignal(number) != handler:
                signal.signal(number, handler)
        warnings.filters[:] = self._parts["warnings.filters"]  # type: ignore[index]
        logging.root.setLevel(self._parts["the level of the root logger"])


class WatchedEnv:
    """An environment whose calls are compared with the global state before them.

    Args:
        make: Makes the environment.

    Attributes:
        changes: Part of the state, new value, and number of the call that changed it first: 0 for the
            constructor, 1 for the first reset, and 2 for the first step.
    """

    def __init__(self, make: Callable[[], Any]) -> None:
        self.changes: list[list[Any]] = []
        self._calls = 0
        self._last = GlobalState()
        env = make()
        self._env = BlockingEnv(env) if describe_env(env).awaited else env
        self._compare()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._env, name)

    def get_wrapper_attr(self, name: str) -> Any:
        """Return an attribute of a wrapper or of the environment, or the changes."""
        return self.changes if name == "changes" else attribute_of(self._env, name)

    def reset(self, **arguments: Any) -> Any:
        """Reset the environment."""
        try:
            return self._env.reset(**arguments)
        finally:
            self._compare()

    def step(self, action: Any) -> Any:
        """Step the environment."""
        try:
            return self._env.step(action)
        finally:
            self._compare()

    def close(self) -> None:
        """Close the environment."""
        close_env(self._env, "the environment")

    def _compare(self) -> None:
        now = GlobalState()
        known = {name for name, _, _ in self.changes}
        for name, value in now.changes(self._last).items():
            if name not in known:
                self.changes.append([name, value, self._calls])
        self._last = now
        self._calls += 1


@dataclass(frozen=True)
class WatchedMaker:
    """Makes a `WatchedEnv` after one episode, so that modules are imported before. Can be pickled.

    Attributes:
        pickled: The pickled maker of the environment.
        reset: The arguments of ``reset``.
        actions: The actions of the episode.
        folder: The working directory to play in.
        variables: The variables to play with.
    """

    pickled: bytes
    reset: Mapping[str, Any] = field(default_factory=dict)
    actions: Sequence[str] = ()
    folder: str = "."
    variables: Mapping[str, str] = field(default_factory=dict)

    def __call__(self) -> WatchedEnv:
        """Play the episode, restore the global state and make the environment."""
        os.chdir(self.folder)
        os.environ.clear()
        os.environ.update(self.variables)
        make = pickle.loads(self.pickled)  # noqa: S301 - of our own process
        before = GlobalState()
        env = WatchedEnv(make)
        try:
            env.reset(**self.reset)
            for action in self.actions:
                if any(env.step(action)[2:4]):
                    break
        except Exception:  # noqa: BLE001, S110 - `texts` and `interface` report it
            pass
        env.close()
        before.restore()
        return WatchedEnv(make)
