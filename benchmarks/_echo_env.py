"""The environments of ``isolation.py`` and ``bridge_turn.py``, in a module that can be imported."""

from __future__ import annotations

from typing import Any

import gymnasium

__all__ = ["TEXT", "Echo", "EchoAsync"]

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


class EchoAsync:
    """Returns a text in its coroutines immediately; an episode has a fixed number of turns."""

    metadata: dict[str, Any] = {}  # noqa: RUF012 - as gymnasium has it
    spec = None

    def __init__(self, text: str, turns: int) -> None:
        self._text, self._turns, self._turn = text, turns, 0

    async def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Start an episode."""
        self._turn = 0
        return self._text, {}

    async def step(self, action: str) -> tuple[str, float, bool, bool, dict[str, Any]]:
        """Return the text."""
        self._turn += 1
        return self._text, 0.0, self._turn == self._turns, False, {"action": action}

    async def close(self) -> None:
        """Do nothing."""


class _Named(gymnasium.Env[str, str]):
    """The registered class, which names the async one."""

    observation_space = action_space = gymnasium.spaces.Text(1000)
    metadata: dict[str, Any] = {"asynchronous_entry_point": "_echo_env:EchoAsync"}  # noqa: RUF012

    def __init__(self, text: str, turns: int) -> None:
        """Do nothing."""


gymnasium.register("bench/EchoAsync-v0", entry_point="_echo_env:_Named")
