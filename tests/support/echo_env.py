"""An environment of another library, which says the number of its task."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import gymnasium

if TYPE_CHECKING:
    import pytest

OWN = "own/Echo-v0"


class Echo(gymnasium.Env[str, str]):
    """Pays for nothing.

    Args:
        size: One more than the words of the system prompt.
        says: How many characters the first observation has after the task.
    """

    observation_space = action_space = gymnasium.spaces.Text(100)

    def __init__(self, size: int = 1, says: int = 0) -> None:
        self.system_prompt = "Echo!" * (size - 1)
        self.says = says

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        super().reset(seed=seed)
        return f"Say {seed}." + "!" * self.says, {}

    def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return "No.", 0.0, False, False, {}


def register(monkeypatch: pytest.MonkeyPatch, env_id: str = OWN) -> str:
    """Register the environment for a test; return its id with its module."""
    registered = gymnasium.envs.registration.EnvSpec(env_id, "echo_env:Echo")
    monkeypatch.setitem(gymnasium.registry, env_id, registered)
    return f"echo_env:{env_id}"
