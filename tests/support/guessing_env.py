"""A game of the tests: guess a digit. GUESSING_LOG names a file of its actions and rewards.

GUESSING_OPEN names a file with a line for each environment that is made, and for each that is closed.
"""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import gymnasium

TEXTS = (
    "You guess a digit.",
    "Guess a digit from 1 to 9.",
    "That is no digit.",
    "It is higher.",
    "It is lower.",
    "That is it!",
)


class Guessing(gymnasium.Env[str, str]):
    """Three guesses; 1 for the digit, 0.25 for a digit that is close, -0.5 for a reply without one."""

    observation_space = action_space = gymnasium.spaces.Text(1 << 16)

    def __init__(self, log: str | None = None):
        self._log = log or os.environ["GUESSING_LOG"]
        self._secret = self._guesses = 0
        self._paid: list[float] = []
        self._said: list[str] = []
        self._note("made")

    def _note(self, event):
        if "GUESSING_OPEN" in os.environ:
            with Path(os.environ["GUESSING_OPEN"]).open("a") as file:
                file.write(event + "\n")

    def close(self):
        self._note("closed")

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self._secret = int((options or {}).get("secret", 5))
        self._guesses, self._paid, self._said = 0, [], []
        return TEXTS[1], {}

    def step(self, action):
        self._guesses += 1
        found = re.search(r"[1-9]", action)
        if not found:
            reward, text = -0.5, TEXTS[2]
        else:
            off = self._secret - int(found.group())
            reward = {0: 1.0, 1: 0.25, -1: 0.25}.get(off, 0.0)
            text = TEXTS[5] if not off else TEXTS[3] if off > 0 else TEXTS[4]
        self._paid.append(reward)
        self._said.append(action)
        terminated, truncated = reward == 1.0, self._guesses == 3 and reward != 1.0
        if terminated or truncated:
            with Path(self._log).open("a") as log:
                episode = {"secret": self._secret, "paid": self._paid, "said": self._said}
                log.write(json.dumps(episode) + "\n")
        return text, reward, terminated, truncated, {"parse_error": not found}


gymnasium.register("test/Guessing-v0", Guessing, disable_env_checker=True, order_enforce=False)


class Failing(Guessing):
    """Fails by the option ``fails``: at its ``reset``, at its first ``step``, or in ``one`` episode.

    In ``one`` episode: the first that makes the file that the option ``mark`` names, next to the log.
    """

    def reset(self, *, seed=None, options=None):
        self._fails = (options or {}).get("fails")
        if self._fails == "one":
            self._fails = "step" if self._is_first(options["mark"]) else None
        if self._fails == "reset":
            raise ConnectionRefusedError("POST http://bob:secret@127.0.0.1:9/reset could not connect")
        return super().reset(seed=seed, options=options)

    def _is_first(self, mark):
        try:
            Path(f"{self._log}.{mark}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def step(self, action):
        if self._fails == "step":
            raise TimeoutError("POST http://127.0.0.1:9/step was not answered in 5 s")
        return super().step(action)


gymnasium.register("test/Failing-v0", Failing, disable_env_checker=True, order_enforce=False)


class Flat(Guessing):
    """Pays nothing, so all episodes of a task have the same score."""

    def step(self, action):
        text, _, terminated, truncated, info = super().step(action)
        return text, 0.0, terminated, truncated, info


gymnasium.register("test/Flat-v0", Flat, disable_env_checker=True, order_enforce=False)
