"""A game with all that a row can meet: faults, long answers, control tokens in what it says, native calls.

Each episode writes what was said to a file of its own, by which a test can play it again.
"""

from __future__ import annotations

import json
import random
import re
import uuid
from pathlib import Path
from typing import Any

import gymnasium

SYSTEM = "You say digits."
SAY = {
    "type": "function",
    "function": {
        "name": "say",
        "description": "Say a digit.",
        "parameters": {"type": "object", "properties": {"digit": {"type": "integer"}}},
    },
}

_random = random.SystemRandom()


class Tally(gymnasium.Env[str, str]):
    """Say the digit: 1 for it, .25 for another digit, -.5 for none. The seed decides the turns.

    Args:
        folder: Of the files.
        control: What some of the answers contain.
        faults: How often a step fails.
        native: Whether the digit is said by a call.
    """

    observation_space = action_space = gymnasium.spaces.Text(1 << 16)

    def __init__(self, folder: str, control: str = "", faults: float = 0.0, *, native: bool = False):
        self._folder, self._control, self._faults = Path(folder), control, faults
        self.tools = [SAY] if native else []

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._name, self._turns, self._wanted = uuid.uuid4().hex[:8], 2 + (seed or 0) % 4, 5
        self._log: dict[str, Any] = {"seed": seed, "steps": [], "fault": False}
        self._log["first"] = f"Game {self._name}. Say 5."
        self._write()
        return self._log["first"], {"state_key": "turn 0"}

    def step(self, action: str):
        if _random.random() < self._faults:
            self._log["fault"] = True
            self._write()
            raise ConnectionResetError("the game is gone")
        said = re.search(r"\d", action.rpartition("</think>")[2].rpartition("final<|message|>")[2])
        reward = -0.5 if said is None else 1.0 if int(said.group()) == self._wanted else 0.25
        before, self._wanted = self._wanted, _random.randint(0, 9)
        extra = _random.choice(["", "", f" They said{self._control} that.", " word" * _random.randint(1, 60)])
        observation = f"It was {before}.{extra} Say {self._wanted}."
        info = {"state_key": f"turn {len(self._log['steps']) + 1}", "parse_error": said is None}
        over = len(self._log["steps"]) + 1 == self._turns
        self._log["steps"].append(
            {"observation": observation, "reward": reward, "info": info, "over": over, "action": action}
        )
        self._write()
        return observation, reward, over, False, info

    def _write(self) -> None:
        (self._folder / f"{self._name}.json").write_text(json.dumps(self._log))


class Replayed(gymnasium.Env[str, str]):
    """An episode of `Tally` again: the same observations, whatever is said."""

    observation_space = action_space = gymnasium.spaces.Text(1 << 16)

    def __init__(self, file: str):
        self._log = json.loads(Path(file).read_text())

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        self._left = list(self._log["steps"])
        return self._log["first"], {}

    def step(self, action: str):
        step = self._left.pop(0)
        return step["observation"], step["reward"], not self._left, False, step["info"]


gymnasium.register("test/Tally-v0", Tally, disable_env_checker=True, order_enforce=False)
gymnasium.register("test/Replayed-v0", Replayed, disable_env_checker=True, order_enforce=False)
