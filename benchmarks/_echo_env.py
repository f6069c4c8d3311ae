"""The environment of ``isolation.py``, in a module that another process can import."""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = ["TEXT", "Echo"]

TEXT = "x" * 1000


class Echo(gymnasium.Env[str, str]):
    """Returns a text immediately, and never ends."""

    observation_space = action_space = gymnasium.spaces.Text(1000)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        super().reset(seed=seed)
        return TEXT, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Return the text."""
        return TEXT, 0.0, False, False, {"action": action}
