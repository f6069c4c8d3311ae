"""Counting up to a number: a text environment that is not AgentGym's, and that fails on request."""

from __future__ import annotations

import itertools
import json
import random
from typing import Any

import gymnasium

opened: set[int] = set()
"""The environments that are open, by number."""

heard: list[str] = []
"""The actions sent to environments, in the order of their arrival."""

_numbers = itertools.count(1)


class Count(gymnasium.Env):
    """Say the next number. A right one earns 1, a wrong one nothing; no number is invalid, and may cost."""

    observation_space = gymnasium.spaces.Text(1_000)
    action_space = gymnasium.spaces.Text(1_000)

    def __init__(
        self,
        goal: int = 3,
        faults: tuple[str, ...] = (),
        rate: float = 0.0,
        seed: int = 0,
        rules: str = "",
        besides: str = "",
        invalid: float = 0.0,
    ):
        self.goal, self.faults, self.rate, self.rules = goal, list(faults), rate, rules
        self.besides, self.invalid = besides, invalid
        self.number = next(_numbers)
        self.random = random.Random(seed * 1_000 + self.number)  # noqa: S311
        self._fail("make")
        opened.add(self.number)

    def _fail(self, where: str) -> None:
        if where in self.faults or self.random.random() < self.rate:
            raise RuntimeError(f"broken at {where}")

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._fail("reset")
        self.at = (options or {}).get("start", 0)
        self.start = self.at
        return f"{self.rules}Count from {self.at} to {self.at + self.goal}.", {}

    def step(self, action: str):
        self._fail(f"step {self.at}")
        heard.append(action)
        said = action.rsplit("</think>", maxsplit=1)[-1].strip()
        if not said.lstrip("-").isdigit():
            return self._answer(f"{said!r} is no number.", self.invalid, invalid_action=True)
        right = int(said) == self.at + 1
        self.at += right
        return self._answer(f"You are at {self.at}.{self.besides}", float(right))

    def _answer(self, observation: str, reward: float, **info: Any):
        done = self.at == self.start + self.goal
        return observation, reward, done, False, {**info, "success": done}

    def close(self) -> None:
        opened.discard(self.number)


class Instructed(gymnasium.Wrapper):
    """Counting with a system prompt, which a wrapper has and the environment does not."""

    system_prompt = "You count. Reply with the next number, and with nothing else.\n"


class Summarizing(gymnasium.Wrapper):
    """Counting with a summary of what happened so far."""

    def __init__(self, env: gymnasium.Env) -> None:
        super().__init__(env)
        self.actions: list[str] = []

    def reset(self, **options: Any):
        self.actions = []
        return self.env.reset(**options)

    def step(self, action: str):
        self.actions.append(action)
        observation, *rest, info = self.env.step(action)
        summary = f"So far: {', '.join(self.actions)}.{self.unwrapped.besides}"
        return observation, *rest, {**info, "history_summary": summary}


def make_summarizing(**kwargs: Any) -> gymnasium.Env:
    return Summarizing(Count(**kwargs))


def summarize(messages: Any) -> str:
    """Summarize omitted turns by everything that their messages have, except the ids of calls."""
    facts = [
        (message["role"], message["content"] or "", [call["function"] for call in message["tool_calls"]])
        if message.get("tool_calls")
        else (message["role"], message["content"])
        for message in messages
    ]
    return f"Before: {json.dumps(facts)}"


def make_instructed(**kwargs: Any) -> gymnasium.Env:
    return Instructed(Count(**kwargs))


gymnasium.register("bridge/Count-v0", Count)
gymnasium.register("bridge/Instructed-v0", make_instructed)
gymnasium.register("bridge/Summarizing-v0", make_summarizing)
