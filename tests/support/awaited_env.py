"""An awaited environment with the methods of a synchronous one."""

from __future__ import annotations

import asyncio
from typing import Any

from agentgym_gym import AsyncAgentGymEnv


class Awaited:
    """An `AsyncAgentGymEnv` with the methods of an `AgentGymEnv`, which all run in one event loop."""

    def __init__(self, name: str, **options: Any) -> None:
        self._env = AsyncAgentGymEnv(name, **options)
        self._loop = asyncio.new_event_loop()

    def reset(self, **options: Any) -> tuple[str, dict[str, Any]]:
        return self._loop.run_until_complete(self._env.reset(**options))

    def step(self, action: Any) -> tuple[str, float, bool, bool, dict[str, Any]]:
        return self._loop.run_until_complete(self._env.step(action))

    def close(self) -> None:
        self._loop.run_until_complete(self._env.close())
        self._loop.close()
