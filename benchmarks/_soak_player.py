"""An episode of the soak, which depends only on its number, and its outcome."""

from __future__ import annotations

import hashlib
import json
import random
from typing import TYPE_CHECKING, Any

from agentgym_gym import find
from agentgym_gym.evaluate import load_oracle

if TYPE_CHECKING:
    import gymnasium

__all__ = ["TASKS", "Player"]

TASKS = find("TextCraft").splits["all"]
"""The tasks; episode n plays the one at n modulo their number."""

_STYLES = {"oracle": 9, "careless": 8, "lost": 2, "fickle": 1}
_BAD_REPLIES = (
    "Action: inventory",
    "Action: get 1 oak logs",
    "Action: get 3 dragon eggs",
    "Action: craft 1 stick using 7 stick",
    "Action: dance",  # unknown, and sent in the agent's words
    "Thought: what now?",  # the rest cannot be parsed, and is not sent
    "",
    "Action: inventory\nAction: inventory",
    "Action: get a few logs",
    "\ud800 Action:",
)
_MOST_REPLIES = {"oracle": 50, "careless": 50, "lost": 50, "fickle": 2}


class Player:
    """Plays one episode; its replies depend on the seed, the number and the observations.

    The number selects one of four players: the oracle, the oracle with one random reply in four, one without
    any plan, and one that gives up after two replies.

    Args:
        env: The environment.
        seed: The seed of the soak.
        number: The number of the episode.
    """

    def __init__(self, env: gymnasium.Env[str, Any], seed: int, number: int) -> None:
        self._env = env
        self._draw = random.Random(f"{seed}:{number}")  # noqa: S311 - not a secret
        (self._style,) = self._draw.choices(list(_STYLES), list(_STYLES.values()))
        self._oracle = load_oracle(find("TextCraft"))
        self._digest = hashlib.sha256()
        self._planned = False  # whether the oracle needs the result of its last action
        self._replies = 0
        self._last: dict[str, Any] = {}
        self.number = number
        self.task_id = TASKS[number % len(TASKS)]
        self.over = False
        self.fault: dict[str, str] | None = None

    def begin(self, observation: str, info: dict[str, Any]) -> None:
        """Record the reset."""
        self._oracle.reset(self._env, observation, info)
        self._observation, self._info = observation, info
        self._digest_values(observation, info)
        self._last = {"score": info["score"], "turns": 0, "terminated": False, "truncated": False}

    def next_reply(self) -> str | None:
        """Return the next reply; None to give up."""
        if self._replies == _MOST_REPLIES[self._style]:
            return None
        self._replies += 1
        self._planned = self._style != "lost" and (self._style == "oracle" or self._draw.random() >= 1 / 4)
        if not self._planned:
            return self._draw.choice(_BAD_REPLIES)
        action = self._oracle.act(self._observation, self._info)
        return None if action is None else f"Thought: next.\nAction: {action}"

    def append_reply(
        self,
        reply: str,
        observation: str,
        reward: float,
        terminated: bool,
        truncated: bool,
        info: dict[str, Any],
    ) -> None:
        """Record a turn."""
        self.over = terminated or truncated
        self.fault = info.get("fault")
        if self._planned:
            self._observation, self._info = observation, info
        self._digest_values(reply, observation, reward, terminated, truncated, info)
        self._last = {
            "score": info["score"],
            "turns": info["turn"],
            "terminated": terminated,
            "truncated": truncated,
        }

    def outcome(self) -> dict[str, Any]:
        """Return all that must be the same in a replay, including replies, observations and infos."""
        return {"episode": self.number, **self._last, "digest": self._digest.hexdigest()[:32]}

    def _digest_values(self, *values: Any) -> None:
        self._digest.update(json.dumps(values, sort_keys=True).encode("ascii"))
